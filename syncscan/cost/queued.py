"""Find since when work was queued on a device: idle time with work queued isn't the host's fault."""

from __future__ import annotations

import numpy as np

from syncscan.facts.device_work import DeviceWork
from syncscan.model.arrays import Int64
from syncscan.model.trace import NONE, Trace

_NEVER = np.iinfo(np.int64).max


class Queued:
    """When the work of each device was launched and when it started.

    Work whose launch isn't in the trace is left out, since it is unknown whether it was queued.
    """

    def __init__(self, trace: Trace, work: DeviceWork) -> None:
        self._trace, self._work = trace, work
        self._launches: dict[int, tuple[Int64, Int64]] = {}

    def waiting_from(self, device: int, times: Int64) -> Int64:
        """Return the earliest launch, ns, of the work that begins at or after each time: work was queued from then on.

        The result is later than any time where no more work begins.
        """
        if device not in self._launches:
            self._launches[device] = self._ordered(device)
        starts, earliest = self._launches[device]
        return np.append(earliest, _NEVER)[np.searchsorted(starts, times)]

    def _ordered(self, device: int) -> tuple[Int64, Int64]:
        """Return when work started, ascending, and the earliest launch from there on."""
        work, slices = self._work.of(device), self._trace.slices
        linked = np.zeros(len(slices), np.bool_)
        linked[self._trace.device_rows[self._trace.device_calls != NONE]] = True
        known = linked[work.rows]
        starts, launched = slices.ts[work.rows[known]], work.launched[known]
        if (starts[1:] >= starts[:-1]).all():  # as on one stream: no work starts before work that was launched earlier
            return starts, launched
        order = np.argsort(starts, kind="stable")
        earliest = np.minimum.accumulate(launched[order][::-1])[::-1]
        return starts[order], earliest
