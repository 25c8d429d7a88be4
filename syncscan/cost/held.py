"""From the waits of sync points to how long any thread was held: time in which several wait counts once."""

from __future__ import annotations

from collections.abc import Iterable

from syncscan.model.finding import Occurrence

_BEFORE_ALL = -(2**63)


def time_held(occurrences: Iterable[Occurrence]) -> int:
    """How long at least one thread was blocked by these sync points, in ns.

    Threads of a server wait side by side: added up, their waits would be longer than the step that they are part of.
    """
    held, reach = 0, _BEFORE_ALL
    for begin, wait in sorted([(o.sync.ts, wait) for o in occurrences if (wait := o.cost.wait_ns) > 0]):
        end = begin + wait
        if end > reach:  # a loop: most findings have a few waits, and an array of them costs more than they do
            held += wait if begin >= reach else end - reach
            reach = end
    return held
