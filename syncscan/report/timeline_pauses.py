"""Find the pauses of host threads that a fix takes out: the collector's, first loads, first touches of memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from syncscan.model.analysis import Analysis
from syncscan.model.habit import Basis, Habit
from syncscan.model.interval import ThreadInterval
from syncscan.report.packed import pack
from syncscan.report.phrases import replayed
from syncscan.report.timeline_lanes import DrawnNames, stacked

PAUSE = 12
"""Kind of these slices in the timeline, besides a `Category`."""
NOTABLE = 0.001
"""Least part of the step that an interval takes to be drawn as a pause."""


def pauses(analysis: Analysis) -> Iterator[tuple[Habit, tuple[ThreadInterval, ...]]]:
    """Yield each replayed habit whose likely change takes notable intervals out of host threads, with these."""
    least = NOTABLE * replayed(analysis.step) * 1e3
    for habit in analysis.habits:
        if habit.gain is None or habit.gain.basis is not Basis.REPLAY or not habit.changes:
            continue
        long = tuple(i for i in habit.changes[0].host if i.end - i.begin >= least)
        if long:
            yield habit, long


def pause_lanes(analysis: Analysis, tracks: Sequence[int], book: DrawnNames, origin: int) -> dict[int, dict[str, Any]]:
    """Return a lane of pauses for each of these threads that has some, by track, as the page's script reads it."""
    by_track: dict[int, list[tuple[int, int, int]]] = {track: [] for track in tracks}
    for habit, intervals in pauses(analysis):
        own = [i for i in intervals if i.track in by_track and i.begin >= origin]
        number = book.add(habit.advice.title, len(own)) if own else 0
        for track, begin, end in own:
            by_track[track].append((begin, end, number))
    return {track: _lane(sorted(each), origin) for track, each in by_track.items() if each}


def _lane(pauses: Sequence[tuple[int, int, int]], origin: int) -> dict[str, Any]:
    begin, end, name = (np.array(column, np.int64) for column in zip(*pauses, strict=True))
    row = stacked(begin, end)
    return {
        "kind": "pauses",
        "label": "pauses",
        "rows": int(row.max()) + 1,
        "start": pack(begin - origin, delta=True),
        "dur": pack(end - begin),
        "name": pack(name),
        "row": pack(row),
        "what": pack(np.full(len(begin), PAUSE, np.int64)),
    }
