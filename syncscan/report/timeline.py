"""Build the data of the report's timeline: lanes of packed slices, sync points, bubbles and steps.

A small trace is drawn whole. Of a big one, only the slices around the findings are kept, and the rest becomes a
curve of how busy each lane was, so that a report stays small enough to mail (`choose` defines which slices are kept).
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np

from syncscan.facts.device_work import DeviceWork
from syncscan.model.analysis import Analysis
from syncscan.model.arrays import Int64
from syncscan.model.finding import SyncPoint
from syncscan.model.interval import Cover, Interval, union
from syncscan.model.slice_names import is_collective_kernel, is_host_collective, is_loader
from syncscan.model.trace import DEVICE, HOST, NONE, Category, Trace
from syncscan.report.timeline_extract import choose, home, inside, packed_steps, steps_without, why_none
from syncscan.report.timeline_frames import python_frames
from syncscan.report.timeline_lanes import DrawnNames, LaneGroup, groups_of, habit_lanes, pack, stacked

MAX_SLICES = 100_000
"""Most slices in a report: about 1.3 MB."""
MAX_SYNCS = 20_000
"""Most sync points in a report, costliest first."""
MAX_ROWS = 24
"""Most rows of nested slices that are drawn."""
BINS = 1024
CLOCK_SLACK_NS = 2_000
"""Tolerated overlap on a stream, ns. Work of one stream doesn't overlap; the device's clock may show up to this (H200:
1.3 µs)."""
SYNC_CALL, INPUT, COMMUNICATION = 9, 10, 11
"""Kinds of slices besides a `Category`: a runtime call that is part of a sync point, a loader's `__next__`, a
collective."""

_NOTHING: dict[str, Any] = {"length": 0, "home": [0, 1], "without": [], "why_none": "", "unprofiled": 0}
_NOTHING |= {"groups": [], "steps": [], "names": [], "intervals": [], "habits": {}, "python": None}


def timeline(analysis: Analysis, budget: int = MAX_SLICES) -> dict[str, Any]:
    """Return all data of the timeline, ready for JSON; times are ns since the first slice."""
    trace = analysis.trace
    groups = groups_of(trace, analysis.findings)
    drawn = np.sort(np.concatenate([np.zeros(0, np.int64), *(rows for g in groups for _, _, rows in g.lanes)]))
    if not len(drawn) or trace.info.capture.pretended:
        return dict(_NOTHING)
    origin, end = _extent(trace, drawn)
    without = steps_without(analysis)
    first = home(analysis, Interval(origin, end), without[0].schedule if without else None)
    intervals = choose(analysis, drawn, budget, Interval(origin, end), first)
    book = DrawnNames(trace)
    is_whole = intervals == [Interval(origin, end)]
    kept_rows = drawn if is_whole else drawn[inside(trace, drawn, intervals)]
    kinds = _kinds(analysis)
    threads = [g.track for g in groups if g.device == NONE]
    driving = next((g.track for g in groups if g.device == NONE and g.lanes), NONE)
    lanes_of_habits, habits = habit_lanes(analysis, threads, book, origin)
    return {
        "length": end - origin,
        "whole": is_whole,
        "slices": len(kept_rows),
        "of": len(drawn),
        "intervals": [[a - origin, b - origin] for a, b in intervals],
        "home": [t - origin for t in first],
        "steps": [[s.number, s.ts - origin, s.end - origin] for s in trace.steps],
        "groups": [
            _packed_group(trace, g, kept_rows, kinds, book, origin, end, is_whole, lanes_of_habits.get(g.track, []))
            for g in groups
        ],
        "python": python_frames(trace, driving, intervals, Interval(origin, end)),
        "habits": habits,
        "syncs": _syncs(analysis, groups, origin),
        "unprofiled": round((analysis.step.unprofiled_us or 0.0) * 1e3),
        "without": packed_steps(without, trace, groups, book, origin),
        "why_none": why_none(analysis, without),
        "counts": book.counts(drawn),  # before the names, to which it adds those that no kept slice has
        "names": book.texts(),
    }


def _extent(trace: Trace, drawn: Int64) -> Interval:
    """Return the interval from the first begin to the last end of a slice or step."""
    s = trace.slices
    start = min([int(s.ts[drawn].min()), *(step.ts for step in trace.steps)])
    return Interval(start, max([int(s.end[drawn].max()), start + 1, *(step.end for step in trace.steps)]))


# columns


def _packed_group(
    trace: Trace,
    group: LaneGroup,
    kept_rows: Int64,
    kinds: Int64,
    book: DrawnNames,
    origin: int,
    end: int,
    is_whole: bool,
    habits: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    lanes = []
    for kind, label, rows in group.lanes:
        packed = _packed_lane(trace, kind, rows[np.isin(rows, kept_rows)], kinds, book, origin)
        if not is_whole:
            packed["busy"] = _busy(trace, rows, origin, end)
        lanes.append({"kind": kind, "label": label, **packed})
    lanes += habits  # last, since replayed steps number the others
    side = "host" if group.device == NONE else "device"
    return {"title": group.title, "side": side, "open": group.open, "lanes": lanes}


def _packed_lane(trace: Trace, kind: str, rows: Int64, kinds: Int64, book: DrawnNames, origin: int) -> dict[str, Any]:
    s = trace.slices
    rows = rows[np.lexsort((-s.dur[rows], s.ts[rows]))]
    row = stacked(s.ts[rows], s.end[rows], CLOCK_SLACK_NS if kind == "stream" else 0)
    rows, row = rows[row < MAX_ROWS], row[row < MAX_ROWS]
    return {
        **({"lag": pack(_lag(trace, rows))} if kind == "stream" else {}),
        "rows": int(row.max()) + 1 if len(row) else 1,
        "start": pack(s.ts[rows] - origin, delta=True),
        "dur": pack(np.maximum(s.dur[rows], 0)),
        "name": pack(book.numbers(rows)),
        "row": pack(row),
        "what": pack(kinds[rows]),
    }


def _kinds(analysis: Analysis) -> Int64:
    trace = analysis.trace
    kinds = trace.slices.category.astype(np.int64)
    kinds[kinds == int(Category.OS_CALL)] = int(Category.RUNTIME)
    kinds[trace.named(is_loader) & trace.is_category(*HOST)] = INPUT
    kinds[trace.named(is_collective_kernel) & trace.is_category(*DEVICE)] = COMMUNICATION
    kinds[trace.named(is_host_collective) & trace.is_category(*HOST)] = COMMUNICATION
    kinds[[row for f in analysis.findings for o in f.occurrences for row in o.calls]] = SYNC_CALL
    return kinds


def _lag(trace: Trace, rows: Int64) -> Int64:
    """Return how long before its start device work was launched, ns; 0 where the launch wasn't recorded."""
    work = trace.device_rows
    order = np.argsort(work)
    launched = trace.launched_at[order[np.searchsorted(work[order], rows)]]
    start = trace.slices.ts[rows]
    return np.where(launched >= trace.slices.ts.min(), start - launched, 0)


def _busy(trace: Trace, rows: Int64, origin: int, end: int) -> str:
    """Return how busy a lane is in each of `BINS` equal parts of the trace, 0 to 255, as base64 bytes."""
    s = trace.slices
    rows = rows[np.argsort(s.ts[rows], kind="stable")]
    start, stop = union(s.ts[rows], s.end[rows])
    edges = np.linspace(origin, end, BINS + 1).astype(np.int64)
    part = Cover(start, stop).within(edges[:-1], edges[1:]) / max((end - origin) / BINS, 1.0)
    return base64.b64encode(np.clip(np.ceil(part * 255), 0, 255).astype(np.uint8).tobytes()).decode("ascii")


# sync points


def _syncs(analysis: Analysis, groups: Sequence[LaneGroup], origin: int) -> dict[str, Any]:
    """Return sync points as columns ordered by time, and the device's idle time behind them."""
    occurrences = [(o, number) for number, f in enumerate(analysis.findings) for o in f.occurrences]
    occurrences.sort(key=lambda pair: -(pair[0].wait_ns + pair[0].bubble_ns))
    host = {g.track: at for at, g in enumerate(groups) if g.device == NONE}
    occurrences = [pair for pair in occurrences if pair[0].track in host][:MAX_SYNCS]
    occurrences.sort(key=lambda pair: pair[0].ts)
    points = [o for o, _ in occurrences]
    return {
        "start": pack([max(p.ts - origin, 0) for p in points], delta=True),
        "dur": pack([max(p.end - p.ts, 0) for p in points]),
        "wait": pack([max(o.wait_ns, 0) for o, _ in occurrences]),
        "bubble": pack([max(o.bubble_ns, 0) for o, _ in occurrences]),
        "finding": pack([number for _, number in occurrences]),
        "group": pack([host[p.track] for p in points]),
        "idle": _idle(analysis.trace, [o for o, _ in occurrences], groups, origin),
    }


def _idle(trace: Trace, occurrences: Sequence[SyncPoint], groups: Sequence[LaneGroup], origin: int) -> dict[str, str]:
    """Return the bubbles as columns: each begins when its sync point's wait is over and the device has no work."""
    work = trace.cached(DeviceWork)
    group = {g.device: at for at, g in enumerate(groups) if g.device != NONE}
    parts: list[tuple[int, int, int, int]] = []
    for device, number in group.items():
        of_device = [(at, o) for at, o in enumerate(occurrences) if o.device == device and o.bubble_ns > 0]
        begins = work.of(device).idle_from(np.array([o.released for _, o in of_device], np.int64)).tolist()
        parts += [(begin, o.bubble_ns, at, number) for begin, (at, o) in zip(begins, of_device, strict=True)]
    columns = list(zip(*sorted(parts), strict=True)) if parts else [(), (), (), ()]
    return {
        "start": pack([t - origin for t in columns[0]], delta=True),
        "dur": pack(columns[1]),
        "sync": pack(columns[2]),
        "group": pack(columns[3]),
    }
