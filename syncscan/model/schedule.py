"""A replay of one step in detail: when each piece of device work would run, and how far the host would be."""

from __future__ import annotations

import msgspec
import numpy as np

from syncscan.model.arrays import Int64


class Blocked(msgspec.Struct, frozen=True):
    """A time in which the step's own thread would be blocked: at a sync that stays, or by a full launch queue."""

    finding: int
    """Number of the finding that waits; -1 for a full queue and for a wait that can't be removed."""
    recorded: int
    """When the recorded wait began, ns on the trace's clock; -1 for a full queue."""
    begin: int
    end: int
    """Predicted, ns on the trace's clock."""


class Schedule(msgspec.Struct, frozen=True, eq=False):
    """One recorded step as it would run without some findings; predicted, int64 ns on the trace's clock.

    The step starts at its recorded begin and is in proportion to the recorded step: it includes the same share of
    profiler overhead.
    """

    begin: int
    end: int
    """End of the recorded step: the begin of the next."""
    replayed_end: int
    rows: Int64
    """Rows of the device work launched in the step."""
    start: Int64
    """When each of `rows` would start; work that a host far ahead leaves to a later step is placed where the previous
    step's work does the same."""
    dur: Int64
    """0 for work that isn't done any more, as a compile fuses it into other work."""
    tracks: tuple[int, ...]
    """Host threads of the step: its own and those it hands work to."""
    host_from: Int64
    """Recorded times on those threads, ascending."""
    host_to: Int64
    """Replayed times for them, ascending."""
    host_end: int
    """When that step's own thread has done its part; before `replayed_end` where it runs ahead of the device."""
    blocked: tuple[Blocked, ...] = ()
    """When that thread would be blocked, in time order."""
    unplaced: int = 0
    """How long, ns, of the step's end belongs elsewhere in the step, at places that aren't known."""

    def host(self, ts: Int64) -> Int64:
        """Map recorded times on the step's threads to replayed ones, by linear interpolation."""
        out: Int64 = np.rint(np.interp(ts, self.host_from, self.host_to)).astype(np.int64)
        return out
