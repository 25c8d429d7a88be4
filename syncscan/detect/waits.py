"""From a runtime call to the device and stream it waits for, and to whether the host was measurably blocked."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from syncscan.model.arrays import Int64
from syncscan.model.device_work import DeviceWork
from syncscan.model.runtime_calls import is_of_a_stream, waits_by_nature
from syncscan.model.trace import NONE, Trace

SHORTEST_NS = 20_000
"""A wait for less can't be told from the call's own time: with nothing queued 90 % of 459 calls took up to 19.5 µs.

All figures here: H200, torch 2.11, sample_traces, printed by benchmarks/detect_thresholds.py.
"""
CLOCKS_NS = SHORTEST_NS
"""So much earlier than its work a call may seem to return: host and device have clocks of their own."""
PROMPT_NS = 100_000
"""A call that waited returns this soon after its work: 95 % of 313 waits within 29 µs. Of 50 calls of the allocator one
in ten takes longer than this by itself."""


class Waits:
    """What the calls of one trace wait for."""

    def __init__(self, trace: Trace, work: DeviceWork) -> None:
        self._trace, self._work = trace, work

    def place(self, rows: tuple[int, ...], api: str) -> tuple[int, int]:
        """Device and stream that a call waits for; stream NONE for all of the device, device NONE where none worked.

        Its copy says it, or the profiler's synchronisation row; else it is taken to be where the thread launched last.
        So it is with a stream that the row leaves open, as since CUDA 12.9.

        Args:
            rows: its runtime slices.
            api: the name of the last of them.
        """
        slices, of_a_stream = self._trace.slices, is_of_a_stream(api)
        device, stream = self.last_launch(rows[0])
        for told in (self._trace.copy_of(rows[0]), self._trace.sync_row_of(rows[-1])):
            if told != NONE and slices.device[told] != NONE:
                on, of = slices.device.item(told), slices.stream.item(told)
                if of != NONE or not of_a_stream:
                    return on, of
                return on, stream if device == on else NONE
        return device, stream if of_a_stream else NONE

    def last_launch(self, row: int) -> tuple[int, int]:
        """Device and stream of the work that this thread launched last before a call; the device's first without."""
        slices = self._trace.slices
        calls, work = self._launches
        at = int(calls.searchsorted(row, side="right")) - 1
        if at >= 0 and slices.track[calls[at]] == slices.track[row]:
            return slices.device.item(work[at]), slices.stream.item(work[at])
        return self.first_device, NONE

    @property
    def first_device(self) -> int:
        """The number of the first device that did work; NONE without any."""
        return next(iter(self._work.devices), NONE)

    def waited(self, begin: int, end: int, device: int, stream: int, api: str) -> bool:
        """Whether a call (ns) blocked the host, for most of its time, until work had ended that was queued before.

        Of calls that take long also with nothing queued, only one that returned promptly after the work counts.

        Args:
            begin, end: when it was called and when it returned.
            device, stream: what it waits for, as `place` says.
            api: the name of its first runtime call.
        """
        done = self._work.of(device, stream).last_end(begin) if device != NONE else None
        if done is None or done - begin <= SHORTEST_NS or end < done - CLOCKS_NS:
            return False
        if not waits_by_nature(api) and end - done > PROMPT_NS:
            return False
        return 2 * (min(done, end) - begin) >= end - begin

    @cached_property
    def _launches(self) -> tuple[Int64, Int64]:
        """Rows of calls that launched device work, ascending, and the row of the work of each."""
        work = self._trace.device_rows
        calls = self._trace.calls_of(work)
        launched = np.flatnonzero(calls != NONE)
        in_order = launched[np.argsort(calls[launched], kind="stable")]
        return calls[in_order], work[in_order]
