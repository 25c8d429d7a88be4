"""Set aside device times that can't be right: work without any times, and work that lasts over many later ones.

Profilers write both: kernels that begin at 0 and last 0 (pytorch/kineto#109), and on ROCm now and then a kernel with a
duration of seconds, over all later ones of its stream (AMD-AGI/TraceLens#669).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from syncscan.load.damage import Damage
from syncscan.model.arrays import Int64
from syncscan.model.duration import duration
from syncscan.model.trace import CALLS, DEVICE, NONE, of_categories

COVERED = 10
"""Later launches' work on a stream that work can't last over. A stream runs one task at a time; with programmatic
dependent launch a kernel overlaps the next one, and only kernels of one graph launch overlap further ones."""
FEW = 0.05
"""Largest share of a stream's work whose durations are taken to be wrong; with more, the stream is reported instead."""
LATER_NS = 50_000
"""A call that begins this long after the time 0 can't have launched work that was done then."""


def set_aside_wrong_times(columns: dict[str, Any], damage: Damage) -> None:
    """Leave out work without times, and end work that can't last as long where the next one begins, in place.

    Args:
        columns: columns of `Slices`, sorted.
        damage: where a sentence on each kind is noted.
    """
    rows = _timeless(columns)
    if len(rows):
        for name in columns:
            columns[name] = np.delete(columns[name], rows)
        damage.notes.append(f"{_records(len(rows), 'has', 'have')} no times (begin and length 0): left out.")
    count, longest = _shorten(columns)
    if count:
        lasts = f"a duration (up to {duration(longest / 1e3)}) that covers many later ones of the same stream"
        damage.notes.append(f"{_records(count, 'has', 'have')} {lasts}: taken to end where the next one begins.")


def _records(count: int, singular: str, plural: str) -> str:
    return f"1 device record {singular}" if count == 1 else f"{count:,} device records {plural}"


def _timeless(columns: dict[str, Any]) -> Int64:
    """Return the rows of device work that begins and ends at 0 though its call, or else any, comes later."""
    zero = (columns["ts"] == 0) & (columns["dur"] == 0)
    rows = np.flatnonzero(zero)
    rows = rows[of_categories(columns["category"][rows], DEVICE)]
    if not len(rows):
        return rows
    calls = np.flatnonzero(of_categories(columns["category"], CALLS) & (columns["correlation"] != NONE))
    calls = calls[np.argsort(columns["correlation"][calls], kind="stable")]
    ids, begins = columns["correlation"][calls], columns["ts"][calls]
    if not len(calls):
        return rows[:0]
    at = np.minimum(ids.searchsorted(columns["correlation"][rows]), len(ids) - 1)
    begun = np.where(ids[at] == columns["correlation"][rows], begins[at], begins.min())
    timeless: Int64 = rows[begun > LATER_NS]
    return timeless


def _shorten(columns: dict[str, Any]) -> tuple[int, int]:
    """Shorten the work that lasts over many later ones of its stream; return how many, and their longest duration."""
    rows = np.flatnonzero(of_categories(columns["category"], DEVICE) & (columns["stream"] != NONE))
    streams = columns["device"][rows].astype(np.int64) << 32 | columns["stream"][rows].astype(np.int64) & 0xFFFFFFFF
    rows = rows[np.lexsort((columns["ts"][rows], streams, columns["track"][rows]))]
    keys = np.stack([columns["track"][rows], columns["device"][rows], columns["stream"][rows]])
    borders = np.flatnonzero((keys[:, 1:] != keys[:, :-1]).any(axis=0)) + 1
    count, longest = 0, 0
    for stream_rows in np.split(rows, borders):
        wrong = _too_long(columns, stream_rows)
        if len(wrong):
            begins = columns["ts"][stream_rows]
            lengths = columns["dur"][stream_rows[wrong]]
            count, longest = count + len(wrong), max(longest, int(lengths.max()))
            columns["dur"][stream_rows[wrong]] = begins[wrong + 1] - begins[wrong]
    return count, longest


def _too_long(columns: dict[str, Any], rows: Int64) -> Int64:
    """Return the indices in a stream's rows, by begin, of the work that covers many later ones in full."""
    begins, ends = columns["ts"][rows], columns["ts"][rows] + columns["dur"][rows]
    behind = begins.searchsorted(ends) - np.arange(len(rows)) - 1
    wrong = [at for at in np.flatnonzero(behind >= COVERED).tolist() if _covers(columns, rows, ends, at)]
    if len(wrong) > max(1, FEW * len(rows)):
        return np.zeros(0, np.int64)
    return np.array(wrong, np.int64)


def _covers(columns: dict[str, Any], rows: Int64, ends: Int64, at: int) -> bool:
    """Return whether enough work of other launches begins and ends within this one's."""
    inside = slice(at + 1, int(columns["ts"][rows].searchsorted(ends[at])))
    others = columns["correlation"][rows[inside]] != columns["correlation"][rows[at]]
    return int(np.count_nonzero(others & (ends[inside] <= ends[at]))) >= COVERED
