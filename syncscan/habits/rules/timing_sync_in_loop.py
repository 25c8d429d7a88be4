"""Yield the habit if every step of several has a timed interval after which the device idles for a notable time.

The gain without the wait is reported with the sync itself.
"""

from __future__ import annotations

from collections.abc import Iterable

from syncscan.habits.context import Context
from syncscan.habits.event_timing import event_timings
from syncscan.model.duration import duration
from syncscan.model.habit import Habit
from syncscan.rules.pages import advice_of


def find(context: Context) -> Iterable[Habit]:
    syncs = [timing.sync for timing in context.kept(event_timings)]
    idle = _idle_behind(context, syncs)
    if len(syncs) < max(2, context.count) or idle < context.notable_us:
        return
    yield context.habit(
        advice_of("timing-sync-in-loop"),
        syncs,
        None,
        [
            f"{context.trace.name(syncs[0])} {len(syncs) / context.count:.0f} times per step; events are read after it",
            f"the device then idles for {duration(idle)} until the next repetition's first kernel",
        ],
    )


def _idle_behind(context: Context, syncs: list[int]) -> float:
    """Return the mean time from a synchronize to the next device work, in µs per step."""
    s, gaps = context.trace.slices, list[int]()
    starts = [context.work.of(d).busy_from for d in context.work.devices]
    for row in syncs:
        begin, end = s.ts.item(row), s.end.item(row)
        later = [b.item(int(b.searchsorted(begin, side="right"))) for b in starts if b[-1] > end]
        gaps += [min(later) - end] if later else []
    return max(0.0, sum(gaps) / max(1, len(gaps)) / 1e3)
