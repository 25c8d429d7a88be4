"""From the waits of sync points to how long any thread was held: time in which several wait counts once."""

from __future__ import annotations

from collections.abc import Iterable

from syncscan.model.finding import Occurrence
from syncscan.model.interval import Interval, union_of


def time_held(occurrences: Iterable[Occurrence]) -> int:
    """How long at least one thread was blocked by these sync points, in ns.

    Threads of a server wait side by side: added up, their waits would be longer than the step that they are part of.
    """
    waits = [Interval(o.sync.ts, o.sync.ts + o.cost.wait_ns) for o in occurrences if o.cost.wait_ns > 0]
    return sum(held.length for held in union_of(waits))
