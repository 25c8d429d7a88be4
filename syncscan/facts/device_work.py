"""The device's side of a trace, as sorted arrays: when work was launched, when it ran, when the device was busy."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property

import msgspec
import numpy as np

from syncscan.facts.device_names import DeviceNames
from syncscan.model.arrays import Bool, Int64, distinct
from syncscan.model.finding import Place
from syncscan.model.interval import union
from syncscan.model.names import COLLECTIVE_WORDS, is_collective_kernel
from syncscan.model.trace import NONE, Trace, once


class Work(msgspec.Struct, frozen=True, eq=False):
    """The work of one stream, or of all streams of a device, in order of launch; int64 ns, one entry a kernel or copy.

    `done` is the latest end of all work launched up to and with the entry.
    """

    rows: Int64
    launched: Int64
    done: Int64
    busy_from: Int64
    """Starts of the busy intervals, ascending."""
    busy_to: Int64
    """Their ends."""
    busy_sum: Int64
    """Busy time up to and with each of them."""
    begins: Int64
    """When the entries began, ascending."""

    def last_ends(self, launched_before: Int64) -> tuple[Int64, Bool]:
        """Return when the work launched before each of these times ends, and whether there is any."""
        at = self.launched.searchsorted(launched_before)
        return (self.done[at - 1], at > 0) if len(self.done) else (np.zeros(len(at), np.int64), at > 0)

    def busy_within(self, start: int, end: int) -> int:
        """How long the device worked between these times, in ns."""
        if end <= start:
            return 0
        return self._busy_until(end) - self._busy_until(start)

    def idle_from(self, times: Int64) -> Int64:
        """Return from when on nothing ran: each of these times (ns), or else the end of what ran then."""
        k = self.busy_from.searchsorted(times, side="right")
        return np.where(k > 0, np.maximum(times, self.busy_to[k - 1]), times) if len(self.busy_to) else times

    def _busy_until(self, at: int) -> int:
        k = int(self.busy_from.searchsorted(at))
        if k == 0:
            return 0
        return self.busy_sum.item(k - 1) - max(0, self.busy_to.item(k - 1) - at)


class DeviceWork:
    """Finds the `Work` of a device or stream of one trace, and keeps what it has sorted once.

    Args:
        trace: whose work it is.
        counted: a mask over `trace.device_rows`: the rows that count; by default all of them.
    """

    def __init__(self, trace: Trace, counted: Bool | None = None) -> None:
        counted = np.ones(len(trace.device_rows), np.bool_) if counted is None else counted
        self._slices = trace.slices  # and not the trace, which may keep this: no cycle may hold its columns
        self._rows = trace.device_rows[counted]
        self._launched = trace.launched_at[counted]
        self._device = trace.slices.device[self._rows]
        self._stream = trace.slices.stream[self._rows]
        self._kept: dict[tuple[int, int], Work] = {}
        self._streams: dict[int, tuple[int, ...]] = {}

    @cached_property
    def devices(self) -> tuple[int, ...]:
        """Numbers of the devices that did work."""
        return tuple(int(d) for d in distinct(self._device))

    def streams(self, device: int) -> tuple[int, ...]:
        """Numbers of the streams of this device that did work."""
        if device not in self._streams:
            self._streams[device] = tuple(distinct(self._stream[self._device == device]).tolist())
        return self._streams[device]

    def of(self, device: int, stream: int = NONE) -> Work:
        """The work of one stream, or of the whole device (`stream=NONE`)."""
        key = (device, stream)
        if key not in self._kept:
            if stream == NONE and len(self.streams(device)) == 1:  # the same work, sorted once
                self._kept[key] = self.by_stream(device)[self.streams(device)[0]]
            else:
                mask = self._device == device
                if stream != NONE:
                    mask &= self._stream == stream
                self._kept[key] = self._sorted(mask)
        return self._kept[key]

    def by_stream(self, device: int) -> dict[int, Work]:
        """The work of each stream of this device, by their numbers; what names no stream counts as one of its own."""
        nameless = (self._device == device) & (self._stream == NONE)
        return {k: self._sorted(nameless) if k == NONE else self.of(device, k) for k in self.streams(device)}

    def last_ends(self, places: Sequence[Place], launched_before: Int64) -> tuple[Int64, Bool]:
        """When the work at each place ends that was launched before each time, and whether there is any.

        Args:
            places: device and stream, NONE for all streams; no device, no work.
            launched_before: as many times, ns; each is its own end where there is no work.
        """
        on: defaultdict[Place, list[int]] = defaultdict(list)
        for at, place in enumerate(places):
            on[place].append(at)
        ends, some = launched_before.copy(), np.zeros(len(places), np.bool_)
        for (device, stream), those in on.items():
            here = np.array(those, np.int64)
            done, any_ = self.of(device, stream).last_ends(launched_before[here])
            ends[here], some[here] = np.where(any_, done, ends[here]), any_ & (device != NONE)
        return ends, some

    def _sorted(self, mask: Bool) -> Work:
        rows, launched = (self._rows, self._launched) if mask.all() else (self._rows[mask], self._launched[mask])
        s = self._slices
        begins, done = s.ts[rows], s.end[rows]
        starts, ends = union(begins, done)
        if not (launched[1:] >= launched[:-1]).all():  # a stream's work comes in order
            order = np.argsort(launched, kind="stable")
            rows, launched, done = rows[order], launched[order], done[order]
        np.maximum.accumulate(done, out=done)
        return Work(rows, launched, done, starts, ends, np.cumsum(ends - starts), begins)


@once
def communicating(trace: Trace) -> Bool:
    """A mask over `trace.device_rows`: the kernels of collectives, which wait for other ranks."""
    collectives = trace.kept(DeviceNames).that(is_collective_kernel, COLLECTIVE_WORDS)
    mask: Bool = collectives.take(trace.slices.name.take(trace.device_rows))
    return mask
