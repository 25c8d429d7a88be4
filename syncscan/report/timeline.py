"""From an Analysis to what the report's timeline draws: lanes of packed slices, sync points, bubbles and steps.

A small trace is drawn whole. Of a big one the slices around the findings are kept and the rest is told as how busy each
lane was, so that a report stays small enough to be mailed (`choose` has the order in which slices are kept).
"""

from __future__ import annotations

import base64
import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from syncscan.model.analysis import Analysis
from syncscan.model.arrays import Int64
from syncscan.model.device_work import DeviceWork
from syncscan.model.finding import Finding, Occurrence
from syncscan.model.interval import Interval, union
from syncscan.model.names import is_engine
from syncscan.model.schedule import Schedule
from syncscan.model.trace import CALLS, DEVICE, HOST, NONE, Category, Trace
from syncscan.report.names import shown
from syncscan.report.packed import pack
from syncscan.report.phrases import real
from syncscan.report.timeline_intervals import choose, home, home_step, inside

MAX_SLICES = 120_000
"""Slices that a report holds at most: about 1.5 MB of it."""
MAX_SYNCS = 20_000
"""The costliest sync points that a report holds at most."""
MAX_ROWS = 24
"""Slices nested deeper than this aren't drawn."""
MAX_THREADS, OPEN_THREADS, OPEN_STREAMS = 40, 4, 6
MAX_NAMES = 500_000
"""Characters that all names together may take."""
BINS = 1024
CLOCK_SLACK_NS = 2_000
"""Work of one stream doesn't overlap; where the device's clock says it does, it is by less than this (H200: 1.3 µs)."""
SYNC_CALL = 9
"""What a runtime call that a sync point is made of is called in a lane's `what`, which else holds a `Category`."""

_ON_HOST = (*HOST, Category.OVERHEAD)


@dataclass(frozen=True, eq=False)
class Lane:
    """Rows of slices under one label: the scopes of a thread, its ops, or the work of a stream."""

    kind: str
    label: str
    rows: Int64


@dataclass(frozen=True, eq=False)
class Group:
    """What belongs together on the screen: a host thread (`track`), or a device (`device`)."""

    title: str
    track: int = NONE
    device: int = NONE
    open: bool = True
    lanes: list[Lane] = field(default_factory=list)


def timeline(analysis: Analysis, budget: int = MAX_SLICES) -> dict[str, Any]:
    """Everything the timeline draws, ready for JSON; times are ns since the first slice, which stands at `origin`.

    Args:
        analysis: any analysis, also of a trace without steps, device work or findings.
        budget: how many slices to keep at most.
    """
    trace = analysis.trace
    groups = _groups(trace, analysis.findings)
    drawn = np.sort(np.concatenate([np.zeros(0, np.int64), *(lane.rows for g in groups for lane in g.lanes)]))
    if not len(drawn):
        return {"origin": 0, "length": 0, "groups": [], "steps": [], "names": [], "intervals": [], "home": [0, 1]}
    origin, end = _extent(trace, drawn)
    plan = _plan(analysis)
    first = home(analysis, Interval(origin, end), plan)
    intervals = choose(analysis, drawn, budget, Interval(origin, end), first)
    book = _Names(trace)
    whole = intervals == [Interval(origin, end)]
    kept = drawn if whole else drawn[inside(trace, drawn, intervals)]
    calls = _sync_calls(analysis)
    return {
        "origin": origin,
        "length": end - origin,
        "whole": whole,
        "slices": len(kept),
        "of": len(drawn),
        "intervals": [[a - origin, b - origin] for a, b in intervals],
        "home": [t - origin for t in first],
        "steps": [[s.number, s.ts - origin, s.end - origin] for s in trace.steps],
        "groups": [_packed_group(trace, g, kept, calls, book, origin, end, whole) for g in groups],
        "syncs": _syncs(analysis, groups, origin),
        "replay": _replay(trace, plan, groups, book, origin) if plan else None,
        "names": book.texts(),
    }


def _extent(trace: Trace, drawn: Int64) -> Interval:
    """From the first begin to the last end of a slice or a step."""
    s = trace.slices
    start = min([int(s.ts[drawn].min()), *(step.ts for step in trace.steps)])
    return Interval(start, max([int(s.end[drawn].max()), start + 1, *(step.end for step in trace.steps)]))


# which lanes


def _groups(trace: Trace, findings: Sequence[Finding]) -> list[Group]:
    """From top to bottom: the threads that drive the device, the devices, and all other threads, folded up."""
    threads = _threads(trace, findings)
    driving = [g for g in threads if g.open]
    return [*driving, *_devices(trace), *(g for g in threads if not g.open)]


def _threads(trace: Trace, findings: Sequence[Finding]) -> list[Group]:
    """Host threads: that of the steps first, then those with sync points, then those that launch, then the busiest."""
    s = trace.slices
    rows = np.flatnonzero(trace.is_category(*_ON_HOST))
    tracks, counts = np.unique(s.track[rows], return_counts=True)
    steps = {step.track for step in trace.steps}
    waiting = {o.sync.track for f in findings for o in f.occurrences}
    launching = set(s.track[trace.is_category(*CALLS)].tolist())
    ranked = sorted(
        zip(tracks.tolist(), counts.tolist(), strict=True),
        key=lambda t: (t[0] not in steps, t[0] not in waiting, t[0] not in launching, -t[1]),
    )
    several = len({trace.tracks[t].pid for t in np.unique(s.track[rows[s.category[rows] == Category.CPU_OP]])}) > 1
    driving = steps | waiting | launching or set(tracks.tolist())
    return [
        Group(
            _thread(trace, t, several),
            track=t,
            open=at < OPEN_THREADS and t in driving,
            lanes=_host_lanes(trace, rows[s.track[rows] == t]),
        )
        for at, (t, _) in enumerate(ranked[:MAX_THREADS])
    ]


def _host_lanes(trace: Trace, mine: Int64) -> list[Lane]:
    scope = trace.slices.category[mine] == Category.ANNOTATION
    step = np.isin(mine, np.array([s.row for s in trace.steps], np.int64))
    lanes = [Lane("scopes", "scopes", mine[scope & ~step]), Lane("ops", "ops and calls", mine[~scope & ~step])]
    return [lane for lane in lanes if len(lane.rows)]


def _thread(trace: Trace, track: int, several: bool) -> str:
    """A thread's name, and what it does where that is known."""
    t = trace.tracks[track]
    mine = trace.track_rows(track)
    kinds = set(trace.slices.category[mine].tolist())
    if kinds == {Category.OVERHEAD}:
        return "profiler overhead"
    parts = [t.thread or f"thread {t.tid}", f"process {t.pid}" if several else ""]
    if any(is_engine(trace.strings[n]) for n in np.unique(trace.slices.name[mine]).tolist()):
        parts.append("autograd")
    return shown(" · ".join(p for p in parts if p), 80)


def _devices(trace: Trace) -> list[Group]:
    s = trace.slices
    rows = np.flatnonzero(trace.is_category(*DEVICE))
    groups: list[Group] = []
    for device in np.unique(s.device[rows]).tolist():
        mine = rows[s.device[rows] == device]
        streams, counts = np.unique(s.stream[mine], return_counts=True)
        busiest = [n for _, n in sorted(zip((-counts).tolist(), streams.tolist(), strict=True))][: 4 * OPEN_STREAMS]
        lanes = [Lane("stream", f"stream {n}", mine[s.stream[mine] == n]) for n in sorted(busiest)]
        groups.append(Group(_device(trace, device), device=device, open=len(groups) < 4, lanes=lanes))
    return groups


def _device(trace: Trace, device: int) -> str:
    names = trace.info.devices
    return shown(f"Device {device} · {names[device]}" if 0 <= device < len(names) else f"Device {max(device, 0)}", 80)


# columns


class _Names:
    """The names that are drawn, numbered as they turn up."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._known: dict[int, int] = {}

    def numbers(self, rows: Int64) -> Int64:
        known = self._known
        distinct, at = np.unique(self._trace.slices.name[rows], return_inverse=True)
        numbers = [known.setdefault(n, len(known)) for n in distinct.tolist()]
        return np.array(numbers, np.int64)[at.reshape(-1)] if len(rows) else np.zeros(0, np.int64)

    def texts(self) -> list[str]:
        limit = max(12, min(200, MAX_NAMES // max(1, len(self._known))))
        return [shown(self._trace.strings[n], limit) for n in self._known]


def _packed_group(
    trace: Trace, group: Group, kept: Int64, calls: Int64, book: _Names, origin: int, end: int, whole: bool
) -> dict[str, Any]:
    lanes = []
    for lane in group.lanes:
        packed = _packed_lane(trace, lane.kind, lane.rows[np.isin(lane.rows, kept)], calls, book, origin)
        if not whole:
            packed["busy"] = _busy(trace, lane.rows, origin, end)
        lanes.append({"kind": lane.kind, "label": lane.label, **packed})
    side = "host" if group.device == NONE else "device"
    return {"title": group.title, "side": side, "open": group.open, "lanes": lanes}


def _packed_lane(trace: Trace, kind: str, rows: Int64, calls: Int64, book: _Names, origin: int) -> dict[str, Any]:
    s = trace.slices
    rows = rows[np.lexsort((-s.dur[rows], s.ts[rows]))]
    row = stacked(s.ts[rows], s.end[rows], CLOCK_SLACK_NS if kind == "stream" else 0)
    rows, row = rows[row < MAX_ROWS], row[row < MAX_ROWS]
    what = np.where(np.isin(rows, calls), SYNC_CALL, s.category[rows])
    return {
        **({"lag": pack(_lag(trace, rows))} if kind == "stream" else {}),
        "rows": int(row.max()) + 1 if len(row) else 1,
        "start": pack(s.ts[rows] - origin, delta=True),
        "dur": pack(np.maximum(s.dur[rows], 0)),
        "name": pack(book.numbers(rows)),
        "row": pack(row),
        "what": pack(what),
    }


def _lag(trace: Trace, rows: Int64) -> Int64:
    """How long before it began device work was launched, in ns; 0 where the launch wasn't recorded."""
    work = trace.device_rows
    order = np.argsort(work)
    launched = trace.launched_at[order[np.searchsorted(work[order], rows)]]
    start = trace.slices.ts[rows]
    return np.where(launched >= trace.slices.ts.min(), start - launched, 0)


def stacked(start: Int64, end: Int64, slack: int = 0) -> Int64:
    """The row each slice is drawn in: the first that is free when it starts.

    For slices that nest this is their depth; those that overlap without nesting don't cover each other either.

    Args:
        start, end: int64 ns, sorted by (start, -end).
        slack: slices that overlap by less than this many ns are drawn side by side.
    """
    end = end - slack
    if len(start) < 2 or bool((start[1:] >= np.maximum.accumulate(end)[:-1]).all()):
        return np.zeros(len(start), np.int64)
    out = np.empty(len(start), np.int64)
    free: list[int] = []
    running: list[tuple[int, int]] = []
    rows = 0
    for number, (begins, ends) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        while running and running[0][0] <= begins:
            heapq.heappush(free, heapq.heappop(running)[1])
        if free:
            at = heapq.heappop(free)
        else:
            at, rows = rows, rows + 1
        heapq.heappush(running, (max(ends, begins + 1), at))
        out[number] = at
    return out


def _busy(trace: Trace, rows: Int64, origin: int, end: int) -> str:
    """How much of each of `BINS` equal parts of the trace a lane is busy, 0 to 255, as base64 bytes."""
    s = trace.slices
    rows = rows[np.argsort(s.ts[rows], kind="stable")]
    start, stop = union(s.ts[rows], s.end[rows])
    edges = np.linspace(origin, end, BINS + 1)
    at = np.stack([start, stop], axis=1).reshape(-1)
    done = np.repeat(np.cumsum(stop - start), 2) - np.stack([stop - start, np.zeros_like(start)], axis=1).reshape(-1)
    part = np.diff(np.interp(edges, at, done, left=0.0)) / max((end - origin) / BINS, 1.0)
    return base64.b64encode(np.clip(np.ceil(part * 255), 0, 255).astype(np.uint8).tobytes()).decode("ascii")


# the replayed step


def _plan(analysis: Analysis) -> Schedule | None:
    """The step of the worst sync point, replayed without any of the syncs that are the program's own."""
    if not analysis.replayable or not real(analysis.findings):
        return None
    step = home_step(analysis)
    return analysis.schedule("all", at=step.ts if step else None)


def _replay(trace: Trace, plan: Schedule, groups: Sequence[Group], book: _Names, origin: int) -> dict[str, Any]:
    lanes = []
    for at, group in enumerate(groups):
        for number, lane in enumerate(group.lanes):
            if lane.kind == "stream":
                mine = np.isin(plan.rows, lane.rows)
                packed = _replayed(plan.rows[mine], plan.start[mine], plan.dur[mine], book, origin)
            elif lane.kind == "scopes" and group.track in plan.tracks:
                packed = _replayed_scopes(trace, plan, lane.rows, book, origin)
            else:
                continue
            lanes.append({"group": at, "lane": number, **packed})
    return {"start": plan.begin - origin, "end": plan.replayed_end - origin, "lanes": lanes}


def _replayed_scopes(trace: Trace, plan: Schedule, rows: Int64, book: _Names, origin: int) -> dict[str, str]:
    """The outermost scopes of the step."""
    s = trace.slices
    rows = rows[(s.ts[rows] >= plan.begin) & (s.end[rows] <= plan.end)]
    rows = rows[stacked(s.ts[rows], s.end[rows]) == 0]
    start, end = plan.host(s.ts[rows]), plan.host(s.end[rows])
    return _replayed(rows, start, end - start, book, origin)


def _replayed(rows: Int64, start: Int64, dur: Int64, book: _Names, origin: int) -> dict[str, str]:
    order = np.argsort(start, kind="stable")
    return {
        "start": pack(np.maximum(start[order] - origin, 0), delta=True),
        "dur": pack(np.maximum(dur[order], 0)),
        "name": pack(book.numbers(rows[order])),
    }


# sync points


def _sync_calls(analysis: Analysis) -> Int64:
    rows = [row for f in analysis.findings for o in f.occurrences for row in o.sync.calls]
    return np.array(sorted(rows), np.int64)


def _syncs(analysis: Analysis, groups: Sequence[Group], origin: int) -> dict[str, Any]:
    """Sync points as columns in order of time, and the idle time of the device behind them."""
    found = [(o, number) for number, f in enumerate(analysis.findings) for o in f.occurrences]
    found.sort(key=lambda pair: -(pair[0].cost.wait_ns + pair[0].cost.bubble_ns))
    host = {g.track: at for at, g in enumerate(groups) if g.device == NONE}
    found = [pair for pair in found if pair[0].sync.track in host][:MAX_SYNCS]
    found.sort(key=lambda pair: pair[0].sync.ts)
    points = [o.sync for o, _ in found]
    return {
        "start": pack([max(p.ts - origin, 0) for p in points], delta=True),
        "dur": pack([max(p.end - p.ts, 0) for p in points]),
        "wait": pack([max(o.cost.wait_ns, 0) for o, _ in found]),
        "bubble": pack([max(o.cost.bubble_ns, 0) for o, _ in found]),
        "finding": pack([number for _, number in found]),
        "group": pack([host[p.track] for p in points]),
        "idle": _idle(analysis.trace, [o for o, _ in found], groups, origin),
    }


def _idle(trace: Trace, found: Sequence[Occurrence], groups: Sequence[Group], origin: int) -> dict[str, str]:
    """Where the bubbles lie: each from when its sync point's wait was over and the device had nothing to do."""
    work = DeviceWork(trace)
    group = {g.device: at for at, g in enumerate(groups) if g.device != NONE}
    parts = [
        (work.of(o.sync.device).idle_from(o.sync.released), o.cost.bubble_ns, at, group[o.sync.device])
        for at, o in enumerate(found)
        if o.sync.device in group and o.cost.bubble_ns > 0
    ]
    columns = list(zip(*sorted(parts), strict=True)) if parts else [(), (), (), ()]
    return {
        "start": pack([t - origin for t in columns[0]], delta=True),
        "dur": pack(columns[1]),
        "sync": pack(columns[2]),
        "group": pack(columns[3]),
    }
