"""From a device's work to how long it stood idle although it had been launched something: that is no host's fault."""

from __future__ import annotations

import numpy as np

from syncscan.model.arrays import Int64
from syncscan.model.device_work import DeviceWork
from syncscan.model.trace import NONE, Trace

_NEVER = np.iinfo(np.int64).max


class Queued:
    """Knows when the work of each device was launched and when it started.

    Work whose launch isn't in the trace is left out: nobody knows whether it was waiting.
    """

    def __init__(self, trace: Trace, work: DeviceWork) -> None:
        self._trace, self._work = trace, work
        self._launches: dict[int, tuple[Int64, Int64]] = {}

    def idle(self, device: int, since: int, until: int, launched_before: int) -> int:
        """How long a device stood idle while work was waiting, in ns.

        Args:
            device: its number.
            since, until: between which times.
            launched_before: what was launched from this time on isn't counted.
        """
        work = self._work.of(device)
        first, last = np.searchsorted(work.busy_from, since, side="right"), np.searchsorted(work.busy_from, until)
        ends = work.busy_from[first : last + 1]
        begins = np.maximum(np.concatenate([[since], work.busy_to])[first : last + 1][: len(ends)], since)
        launched = self._launched_for(device, ends)
        waited = np.minimum(ends, until) - np.maximum(begins, launched)
        return int(waited[(launched < launched_before) & (waited > 0)].sum())

    def _launched_for(self, device: int, times: Int64) -> Int64:
        """For each of these times the earliest launch of work that started then or later."""
        if device not in self._launches:
            self._launches[device] = self._found(device)
        starts, earliest = self._launches[device]
        found: Int64 = earliest[np.searchsorted(starts, times)]
        return found

    def _found(self, device: int) -> tuple[Int64, Int64]:
        """When work started, ascending, and the earliest launch from there on; one more at the end, which never is."""
        work, slices = self._work.of(device), self._trace.slices
        known = self._trace.calls_of(work.rows) != NONE
        starts, launched = slices.ts[work.rows[known]], work.launched[known]
        order = np.argsort(starts, kind="stable")
        earliest = np.minimum.accumulate(launched[order][::-1])[::-1]
        return starts[order], np.append(earliest, _NEVER)
