"""Select the Python frames that can locate a sync, and those that reports draw."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from syncscan.model.arrays import Bool, Int32, Int64, among, distinct
from syncscan.model.trace import NONE, Category, Flows, Frames, Slices

_IDLE = re.compile(
    r"\w*(Launch|EventQuery|StreamQuery|EventRecord|IsCapturing|GetCaptureInfo|GetAttributes|GetDevice|Occupancy"
    r"|PeekAtLastError|GetLastError|CallConfiguration|StreamWaitEvent|Memset\w*Async|EventCreate|EventDestroy)\w*"
)
"""Calls that don't wait unless they take long (`_LONG_NS`): a full queue, a lazily loaded kernel."""
_LONG_NS = 20_000
"""Length from which such a call counts as a wait: 99 % of the 38,088 of them in sample_traces/ (H200, torch 2.11) take
less than 23 µs."""


def useful_frames(strings: Sequence[str], slices: Slices, frames: Frames, flows: Flows) -> Bool:
    """Mark the frames around a call that may wait, or around the forward op of a backward op around such a call."""
    if not len(frames):
        return np.zeros(0, np.bool_)
    calls = _calls(strings, slices)
    track, ts = slices.track[calls], slices.ts[calls]
    sync_rows = _lone_syncs(slices)
    above = _above(slices, calls)
    for other in (_forward(slices, above), _arrow_tails(slices, flows, above)):
        track, ts = np.append(track, other[0]), np.append(ts, other[1])
    return _around(frames, track, ts) | _holds(frames.ts, frames.end, np.sort(slices.ts[sync_rows]))


def _calls(strings: Sequence[str], s: Slices) -> Int64:
    calls = np.flatnonzero((s.category == Category.RUNTIME) | (s.category == Category.DRIVER))
    idle = np.zeros(len(strings), np.bool_)
    for number in distinct(s.name[calls]).tolist():
        idle[number] = bool(_IDLE.fullmatch(strings[number]))
    return calls[~idle[s.name[calls]] | (s.dur[calls] >= _LONG_NS)]


def _lone_syncs(s: Slices) -> Int64:
    """Return synchronization rows without a host call, which don't state the thread that waited."""
    rows = np.flatnonzero(s.category == Category.SYNC)
    calls = (s.category == Category.RUNTIME) | (s.category == Category.DRIVER)
    return rows[~among(s.correlation[rows], s.correlation[calls])] if len(rows) else rows


def _above(s: Slices, rows: Int64) -> Int64:
    seen = np.zeros(len(s), np.bool_)
    while len(rows):
        rows = distinct(s.parent[rows].astype(np.int64))
        rows = rows[rows != NONE]
        rows = rows[~seen[rows]]
        seen[rows] = True
    return np.flatnonzero(seen)


def _forward(s: Slices, above: Int64) -> tuple[Int32, Int64]:
    """Return track and start of the ops that share a sequence number with one of the ops above.

    A forward op has 0 for its `Fwd thread id`, a backward op the number of its forward op's thread, from 1
    (torch/csrc/profiler/kineto_shim and collection.cpp).
    """
    sequences = distinct(s.sequence[above[s.fwd_thread[above] > 0]])
    op = (s.category == Category.CPU_OP) & (s.sequence != NONE) & (s.fwd_thread <= 0)
    rows = np.flatnonzero(op)
    rows = rows[among(s.sequence[rows], sequences)]
    return s.track[rows], s.ts[rows]


def _arrow_tails(s: Slices, flows: Flows, above: Int64) -> tuple[Int32, Int64]:
    """Return track and time of the starts of arrows that end in one of the ops above."""
    ops = above[s.category[above] == Category.CPU_OP]
    hit = _contained(s.track[ops], s.ts[ops], s.end[ops], flows.to_track, flows.to_ts)
    return flows.from_track[hit], flows.from_ts[hit]


def _contained(on_track: Int32, start: Int64, end: Int64, track: Int32, ts: Int64) -> Bool:
    """Return which of these points lie in at least one interval, by counting starts and ends before each."""
    inside = np.zeros(len(ts), np.bool_)
    for t in distinct(track).tolist():
        on, points = on_track == t, np.flatnonzero(track == t)
        starts, ends = np.sort(start[on]), np.sort(end[on])
        opened = np.searchsorted(starts, ts[points], side="right")
        closed = np.searchsorted(ends, ts[points], side="left")
        inside[points] = opened > closed
    return inside


def _around(frames: Frames, track: Int32, ts: Int64) -> Bool:
    """Return which frames contain at least one of these points."""
    around = np.zeros(len(frames), np.bool_)
    for t in distinct(track).tolist():
        lo, hi = np.searchsorted(frames.track, [t, t + 1])
        points = np.sort(ts[track == t])
        around[lo:hi] = _holds(frames.ts[lo:hi], frames.end[lo:hi], points)
    return around


def _holds(start: Int64, end: Int64, points: Int64) -> Bool:
    """Return which of these intervals contain at least one of the ascending points."""
    if not len(points):
        return np.zeros(len(start), np.bool_)
    first = np.searchsorted(points, start)
    held: Bool = (first < len(points)) & (points.take(first, mode="clip") <= end)
    return held
