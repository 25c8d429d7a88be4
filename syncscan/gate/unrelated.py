"""Tell whether two states are of different programs, by their places and kernels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from syncscan.model.analysis import Analysis
from syncscan.model.diff import SiteChange
from syncscan.model.trace import Category

COMMON = 0.2
"""Least part of a state's kernel time in kernels that the other state runs too, for the two to be one program."""
UNRELATED = (
    "These seem to be two different programs: no sync is at the same place in both, and hardly a kernel runs in both. "
    "A diff compares states of one program."
)


def unrelated(before: Sequence[Analysis], after: Sequence[Analysis], changes: Sequence[SiteChange]) -> bool:
    """Return whether nothing suggests that both states are of one program; False where one has no kernels.

    Args:
        changes: their places, matched.
    """
    if any(change.before and change.after for change in changes):
        return False
    ours, theirs = _kernels(before), _kernels(after)
    if not ours or not theirs:
        return False
    return max(_common(ours, theirs), _common(theirs, ours)) < COMMON


def _kernels(side: Sequence[Analysis]) -> dict[str, float]:
    """Return the time of the kernels by name, ns."""
    times: dict[str, float] = {}
    for trace in (analysis.trace for analysis in side):
        s, rows = trace.slices, trace.device_rows
        rows = rows[s.category[rows] == int(Category.KERNEL)]
        took = np.bincount(s.name[rows], weights=s.end[rows] - s.ts[rows]) if len(rows) else np.zeros(0)
        for name in np.flatnonzero(took).tolist():
            text = trace.strings[name]
            times[text] = times.get(text, 0.0) + float(took[name])
    return times


def _common(one: dict[str, float], other: dict[str, float]) -> float:
    """Return the part of the first one's time in kernels that the other has."""
    return sum(us for name, us in one.items() if name in other) / sum(one.values())
