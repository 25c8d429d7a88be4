"""What a replay says of one step in detail: when each piece of device work would run, and how far the host would be."""

from __future__ import annotations

import msgspec
import numpy as np

from syncscan.model.arrays import Int64


class Schedule(msgspec.Struct, frozen=True, eq=False):
    """One recorded step as it would run without some findings; predicted, int64 ns on the trace's clock.

    The step is drawn from its recorded begin on, in proportion to the step as recorded: the profiler's part in its
    time is neither more nor less than there.
    """

    begin: int
    end: int
    """Of the step as recorded, up to the begin of the next."""
    replayed_end: int
    rows: Int64
    """Rows of the device work launched in the step."""
    start: Int64
    """When each of `rows` would start; work that a host far ahead leaves to a later step stands where the work of the
    step before does the same."""
    dur: Int64
    tracks: tuple[int, ...]
    """The host threads that are the step's own: its thread and those it hands over to."""
    host_from: Int64
    """Recorded times on those threads, ascending."""
    host_to: Int64
    """The replayed times for them, ascending."""

    def host(self, ts: Int64) -> Int64:
        """Recorded times on the step's own threads as replayed ones; between two known times, in proportion."""
        out: Int64 = np.rint(np.interp(ts, self.host_from, self.host_to)).astype(np.int64)
        return out
