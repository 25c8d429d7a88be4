"""Device work of a trace as sorted arrays: when it was launched and ran, and how much of a step the device is busy."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property

import msgspec
import numpy as np

from syncscan.model.arrays import Bool, Int64, distinct, quantile
from syncscan.model.finding import Place
from syncscan.model.interval import Cover, cover_of, union
from syncscan.model.runtime_calls import is_launch
from syncscan.model.slice_names import is_collective_kernel, is_host_collective
from syncscan.model.step import DeviceTime, RunAhead, ShareBasis, StepSummary
from syncscan.model.trace import HOST, NONE, Category, Trace, once


class Work(msgspec.Struct, frozen=True, eq=False):
    """The work of one stream or of a whole device in launch order; one entry per kernel or copy, int64 ns.

    `done` is the latest end of the work up to and including the entry.
    """

    rows: Int64
    launched: Int64
    done: Int64
    busy: Cover
    """When any of it ran."""
    begins: Int64
    """When the entries began, ascending."""

    def last_ends(self, launched_before: Int64) -> tuple[Int64, Bool]:
        """Return when the work launched before each of these times ends, and whether there is any."""
        at = self.launched.searchsorted(launched_before)
        return (self.done[at - 1], at > 0) if len(self.done) else (np.zeros(len(at), np.int64), at > 0)

    def idle_from(self, times: Int64) -> Int64:
        """Return from when on the device is idle: each of these times, or the end of the work that runs then; ns."""
        k, ends = self.busy.starts.searchsorted(times, side="right"), self.busy.ends
        return np.where(k > 0, np.maximum(times, ends[k - 1]), times) if len(ends) else times


class DeviceWork:
    """Provides the `Work` of devices and streams of one trace, sorted once; `counted` masks `trace.device_rows`."""

    def __init__(self, trace: Trace, counted: Bool | None = None) -> None:
        counted = np.ones(len(trace.device_rows), np.bool_) if counted is None else counted
        self._slices = trace.slices  # not the trace, which may hold this object: a cycle would keep its columns alive
        self._rows = trace.device_rows[counted]
        self._launched = trace.launched_at[counted]
        self._device = trace.slices.device[self._rows]
        self._stream = trace.slices.stream[self._rows]
        self._cache: dict[tuple[int, int], Work] = {}
        self._streams: dict[int, tuple[int, ...]] = {}

    @cached_property
    def devices(self) -> tuple[int, ...]:
        return tuple(int(d) for d in distinct(self._device))

    def streams(self, device: int) -> tuple[int, ...]:
        if device not in self._streams:
            self._streams[device] = tuple(distinct(self._stream[self._device == device]).tolist())
        return self._streams[device]

    def of(self, device: int, stream: int = NONE) -> Work:
        key = (device, stream)
        if key not in self._cache:
            if stream == NONE and len(self.streams(device)) == 1:  # the same work, so sort it once
                self._cache[key] = self.by_stream(device)[self.streams(device)[0]]
            else:
                mask = self._device == device
                if stream != NONE:
                    mask &= self._stream == stream
                self._cache[key] = self._sort_work(mask)
        return self._cache[key]

    def by_stream(self, device: int) -> dict[int, Work]:
        """Return the work of each stream of this device by number; work without a stream counts as one of its own."""
        nameless = (self._device == device) & (self._stream == NONE)
        return {k: self._sort_work(nameless) if k == NONE else self.of(device, k) for k in self.streams(device)}

    def last_ends(self, places: Sequence[Place], launched_before: Int64) -> tuple[Int64, Bool]:
        """Return when the work launched at each place before each time (ns) ends, and whether there is any.

        NONE for a place's stream stands for all of them; without a device there is no work. Without work, the time
        itself is the end.
        """
        on: defaultdict[Place, list[int]] = defaultdict(list)
        for at, place in enumerate(places):
            on[place].append(at)
        ends, some = launched_before.copy(), np.zeros(len(places), np.bool_)
        for (device, stream), those in on.items():
            chosen = np.array(those, np.int64)
            done, any_ = self.of(device, stream).last_ends(launched_before[chosen])
            ends[chosen], some[chosen] = np.where(any_, done, ends[chosen]), any_ & (device != NONE)
        return ends, some

    def _sort_work(self, mask: Bool) -> Work:
        rows, launched = (self._rows, self._launched) if mask.all() else (self._rows[mask], self._launched[mask])
        s = self._slices
        begins, done = s.ts[rows], s.end[rows]
        busy = Cover(*union(begins, done))
        if not (launched[1:] >= launched[:-1]).all():  # the work of a single stream is in order
            order = np.argsort(launched, kind="stable")
            rows, launched, done = rows[order], launched[order], done[order]
        np.maximum.accumulate(done, out=done)
        return Work(rows, launched, done, busy, begins)


@once
def communicating(trace: Trace) -> Bool:
    """Return a mask over `trace.device_rows` of the kernels of collectives, which wait for other ranks."""
    return trace.called(trace.device_rows, is_collective_kernel)


@once
def share_in_all_steps(trace: Trace) -> float:
    """Return the part of the steps' kernels that each step launches, by their names.

    With less than all, shapes or control flow change.
    """
    s, rows = trace.slices, trace.device_rows
    rows = rows[s.category[rows] == int(Category.KERNEL)]
    launched = trace.launched_at[s.category[trace.device_rows] == int(Category.KERNEL)]
    begins = np.array([step.ts for step in trace.main_steps], np.int64)
    of = np.searchsorted(begins, launched, side="right") - 1
    rows, of = rows[of >= 0], of[of >= 0]
    if not len(rows):
        return 1.0 if not len(begins) else 0.0
    _, name = np.unique(s.name[rows], return_inverse=True)
    counts = np.zeros((len(begins), int(name.max()) + 1), np.int64)
    np.add.at(counts, (of, name.reshape(-1)), 1)
    return float(counts.min(axis=0).sum() * len(begins) / len(rows))


def device_times(trace: Trace, steps: Sequence[tuple[int, int]]) -> tuple[DeviceTime, ...]:
    """Return how each device spends a step, in mean µs; the busiest device first.

    A backend that communicates on the host (gloo, MPI, UCC) leaves no device work. Its collectives count as
    communication while the device is idle and the host launches nothing.
    """
    inside = trace.launched_in(steps)
    rows, computing = trace.device_rows[inside], ~communicating(trace)[inside]
    devices, on_host = trace.slices.device[rows], _on_host(trace, steps)
    times = []
    for device in distinct(devices).tolist():
        own = devices == device
        starts, ends = _busy(trace, rows[own])
        busy = _length(starts, ends) if computing.all() else _length(*_busy(trace, rows[own & computing]))
        exposed = _length(starts, ends) - busy + _idle_within(trace, on_host, starts, ends)
        times.append(DeviceTime(int(device), busy / len(steps) / 1e3, exposed / len(steps) / 1e3))
    return tuple(sorted(times, key=lambda d: (-d.busy_us - d.communication_us, d.device)))


def _on_host(trace: Trace, steps: Sequence[tuple[int, int]]) -> tuple[Int64, Int64]:
    """Return when a host-side backend communicated in these steps, as disjoint ascending intervals."""
    s = trace.slices
    rows = trace.where(is_host_collective, *HOST)
    if len(rows):
        rows = rows[cover_of(steps).holds(s.ts[rows])]
    return _busy(trace, rows[np.argsort(s.ts[rows], kind="stable")])


@once
def _launches(trace: Trace) -> Int64:
    return np.sort(trace.slices.ts[trace.named(is_launch)])


def _idle_within(trace: Trace, within: tuple[Int64, Int64], starts: Int64, ends: Int64) -> float:
    """Return the idle time within these intervals, in ns, without pauses in which something is launched."""
    total = 0
    for begin, end in zip(*within, strict=True):
        launches = _launches(trace)
        first, last = np.searchsorted(ends, begin, side="right"), np.searchsorted(starts, end)
        froms = np.concatenate([[begin], ends[first:last]])
        tos = np.concatenate([starts[first:last], [end]])
        quiet = np.searchsorted(launches, froms) == np.searchsorted(launches, tos)
        total += int(np.maximum(tos - froms, 0)[quiet].sum())
    return float(total)


def _busy(trace: Trace, rows: Int64) -> tuple[Int64, Int64]:
    """Return the union of these slices, which are ordered by start."""
    return union(trace.slices.ts[rows], trace.slices.end[rows])


def _length(starts: Int64, ends: Int64) -> float:
    return float((ends - starts).sum())


def run_ahead(trace: Trace, steps: Sequence[tuple[int, int]], device: int) -> RunAhead | None:
    """Return how far ahead the launches of a step are, over the steps (ns); None where no call launches work.

    Who serves a model steers by it: a host that came 19 ms ahead where it had been 50 µs late gave 12 to 13 % more
    tokens (https://github.com/sgl-project/sglang/pull/31468).

    A launch is ahead by the time until the device, with all of its streams, has done what was launched before; it is
    late, a negative number, where the device has been idle since.
    """
    if not (trace.device_calls != NONE).any():
        return None
    work = DeviceWork(trace).of(device)
    launched, first = np.unique(work.launched, return_index=True)
    launched, ahead = launched[1:], work.done[first[1:] - 1] - launched[1:]
    of = [ahead[slice(*np.searchsorted(launched, step).tolist())] for step in steps]
    of = [of_step for of_step in of if len(of_step)]
    if not of:
        return None
    least = quantile([of_step.min() for of_step in of], 0.5) / 1e3
    middle = quantile([quantile(of_step, 0.5) for of_step in of], 0.5) / 1e3
    return RunAhead(least, middle)


_ALIKE = 0.015
"""Two shares that lie no further apart than this are stated as one: the recorded one."""


def device_works(step: StepSummary) -> str:
    """Return the device's share: `45% of the step in the trace, about 79% without the profiler (estimated)`.

    Bars and times of a report are those of the recorded step, so its share comes first; the unprofiled step's follows
    with its basis where it differs.
    """
    recorded = step.recorded_device_share
    unprofiled = recorded if step.device_share is None else step.device_share
    return shares(recorded, unprofiled, step.device_share_basis, " of the step")


def shares(recorded: float, unprofiled: float, basis: ShareBasis | None, of: str = "") -> str:
    """Return two shares of a step in words; the recorded one alone where they hardly differ."""
    if alike(recorded, unprofiled):
        return f"{recorded:.0%}{of}"
    return f"{recorded:.0%}{of} in the trace, {without_profiler(unprofiled, basis)}"


def without_profiler(share: float, basis: ShareBasis | None, of: str = "") -> str:
    """Return a share of the unprofiled step with its basis: `about 79% without the profiler (estimated)`."""
    estimated = basis is ShareBasis.ESTIMATED
    return f"{'about ' if estimated else ''}{share:.0%}{of} without the profiler{' (estimated)' if estimated else ''}"


def alike(recorded: float, unprofiled: float | None) -> bool:
    """Return whether a share of the unprofiled step is unknown, or hardly differs from the recorded step's."""
    return unprofiled is None or abs(recorded - unprofiled) <= _ALIKE
