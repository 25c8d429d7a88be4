"""Draw habits on the threads of the timeline: the pauses that a fix takes out of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from syncscan.model.analysis import Analysis
from syncscan.model.habit import Basis, Habit
from syncscan.model.interval import ThreadInterval
from syncscan.report.phrases import replayed
from syncscan.report.timeline_lanes import DrawnNames, pack, stacked

PAUSE = 12
"""Kind of slices besides a `Category`: a pause that a fix takes out."""
NOTABLE = 0.001
"""Least part of the step that an interval takes to be drawn."""


def pauses(analysis: Analysis) -> Iterator[tuple[Habit, tuple[ThreadInterval, ...]]]:
    """Yield each replayed habit whose likely change takes notable intervals out of host threads, with these."""
    least = NOTABLE * replayed(analysis.step) * 1e3
    for habit in analysis.habits:
        if habit.gain is None or habit.gain.basis is not Basis.REPLAY or not habit.changes:
            continue
        long = tuple(i for i in habit.changes[0].host if i.end - i.begin >= least)
        if long:
            yield habit, long


def habit_lanes(
    analysis: Analysis, tracks: Sequence[int], book: DrawnNames, origin: int
) -> tuple[dict[int, list[dict[str, Any]]], dict[int, str]]:
    """Return the lanes of pauses, by thread, as the page's script reads them.

    Each habit adds a name to `book`; the second value maps the number of that name to the habit's id.
    """
    slices: dict[int, list[tuple[int, int, int]]] = {track: [] for track in tracks}
    habits: dict[int, str] = {}
    for habit, intervals in pauses(analysis):
        in_view = [i for i in intervals if i.track in slices and i.begin >= origin]
        if in_view:
            number = book.add(habit.advice.title, len(in_view))
            habits[number] = habit.id
        for track, begin, end in in_view:
            slices[track].append((begin - origin, end - origin, number))
    lanes = {track: [_lane(own)] for track, own in slices.items() if own}
    return lanes, habits


def _lane(slices: Sequence[tuple[int, int, int]]) -> dict[str, Any]:
    begin, end, name = (np.array(column, np.int64) for column in zip(*sorted(slices), strict=True))
    row = stacked(begin, end)
    return {
        "kind": "pauses",
        "label": "pauses",
        "rows": int(row.max()) + 1,
        "start": pack(begin, delta=True),
        "dur": pack(end - begin),
        "name": pack(name),
        "row": pack(row),
        "what": pack(np.full(len(begin), PAUSE, np.int64)),
    }
