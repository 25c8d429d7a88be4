"""Arrange a trace into the timeline's lanes, also the pauses that a fix takes out, and slices into rows."""

from __future__ import annotations

import base64
import heapq
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from syncscan.model.analysis import Analysis
from syncscan.model.arrays import Int64, distinct
from syncscan.model.finding import Finding
from syncscan.model.habit import Basis, Habit
from syncscan.model.interval import ThreadInterval
from syncscan.model.slice_names import is_engine
from syncscan.model.trace import CALLS, DEVICE, HOST, NONE, Category, Trace
from syncscan.report.phrases import replayed
from syncscan.report.printable import shown

MAX_THREADS, OPEN_THREADS, OPEN_STREAMS = 40, 4, 6
MAX_NAMES = 500_000
"""Characters that all names together may take."""

_ON_HOST = (*HOST, Category.OVERHEAD, Category.OS_CALL)


TimelineLane = tuple[str, str, Int64]
"""Kind, label and rows of slices: a thread's scopes, its ops, or a stream's work."""


class LaneGroup(msgspec.Struct, frozen=True, eq=False):
    """Lanes shown together: of a host thread (`track`) or a device (`device`)."""

    title: str
    track: int = NONE
    device: int = NONE
    open: bool = True
    lanes: list[TimelineLane] = msgspec.field(default_factory=list)


def groups_of(trace: Trace, findings: Sequence[Finding]) -> list[LaneGroup]:
    """Return groups from top to bottom: threads that drive the device, devices, then all other threads, folded."""
    threads = _threads(trace, findings)
    driving = [g for g in threads if g.open]
    return [*driving, *_devices(trace), *(g for g in threads if not g.open)]


def _threads(trace: Trace, findings: Sequence[Finding]) -> list[LaneGroup]:
    """Return host threads, those with steps first, then with sync points, then with launches, then the busiest.

    Open are those with steps or sync points; without any, those that launch.
    """
    s = trace.slices
    rows = np.flatnonzero(trace.is_category(*_ON_HOST))
    tracks, counts = np.unique(s.track[rows], return_counts=True)
    steps = {step.track for step in trace.steps}
    waiting = {o.track for f in findings for o in f.occurrences}
    launching = set(s.track[trace.is_category(*CALLS)].tolist())
    ranked = sorted(
        zip(tracks.tolist(), counts.tolist(), strict=True),
        key=lambda t: (t[0] not in steps, t[0] not in waiting, t[0] not in launching, -t[1]),
    )
    several = len({trace.tracks[t].pid for t in distinct(s.track[rows[s.category[rows] == Category.CPU_OP]])}) > 1
    driving = steps | waiting or launching or set(tracks.tolist())
    return [
        LaneGroup(
            _thread(trace, t, several),
            track=t,
            open=at < OPEN_THREADS and t in driving,
            lanes=_host_lanes(trace, rows[s.track[rows] == t]),
        )
        for at, (t, _) in enumerate(ranked[:MAX_THREADS])
    ]


def _host_lanes(trace: Trace, rows: Int64) -> list[TimelineLane]:
    scope = trace.slices.category[rows] == Category.ANNOTATION
    step = np.isin(rows, np.array([s.row for s in trace.steps], np.int64))
    lanes = [
        ("scopes", "scopes", rows[scope & ~step]),
        ("ops", "ops and calls", rows[~scope & ~step]),
    ]
    return [lane for lane in lanes if len(lane[2])]


def _thread(trace: Trace, track: int, several: bool) -> str:
    """Return a thread's name, and what it does where that is known."""
    t = trace.tracks[track]
    own = trace.track_rows(track)
    kinds = set(trace.slices.category[own].tolist())
    if kinds == {Category.OVERHEAD}:
        return "profiler overhead"
    parts = [t.thread or f"thread {t.tid}", f"process {t.pid}" if several else ""]
    if any(is_engine(trace.strings[n]) for n in distinct(trace.slices.name[own]).tolist()):
        parts.append("autograd")
    return shown(" · ".join(p for p in parts if p), 80)


def _devices(trace: Trace) -> list[LaneGroup]:
    s = trace.slices
    rows = np.flatnonzero(trace.is_category(*DEVICE))
    groups: list[LaneGroup] = []
    for device in distinct(s.device[rows]).tolist():
        own = rows[s.device[rows] == device]
        streams, counts = np.unique(s.stream[own], return_counts=True)
        busiest = [n for _, n in sorted(zip((-counts).tolist(), streams.tolist(), strict=True))][: 4 * OPEN_STREAMS]
        lanes = [("stream", f"stream {n}", own[s.stream[own] == n]) for n in sorted(busiest)]
        groups.append(LaneGroup(_device(trace, device), device=device, open=len(groups) < 4, lanes=lanes))
    return groups


def _device(trace: Trace, device: int) -> str:
    names = trace.info.devices
    name = names[device] if 0 <= device < len(names) else ""
    return shown(f"Device {max(device, 0)}" + (f" · {name}" if name else ""), 80)


class DrawnNames:
    """Names that are drawn, numbered in order of first use."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._known: dict[int, int] = {}
        self._own: dict[int, tuple[str, int]] = {}

    def numbers(self, rows: Int64) -> Int64:
        known = self._known
        distinct, at = np.unique(self._trace.slices.name[rows], return_inverse=True)
        numbers = [known.setdefault(n, len(known)) for n in distinct.tolist()]
        return np.array(numbers, np.int64)[at.reshape(-1)] if len(rows) else np.zeros(0, np.int64)

    def add(self, text: str, count: int) -> int:
        """Return the number of a text that is no name of the trace, of so many slices."""
        number = len(self._known)
        self._known[-1 - number] = number
        self._own[number] = text, count
        return number

    def counts(self, rows: Int64) -> list[int]:
        """Return how many of these slices have each name, by number; their names get numbers, too."""
        numbers = self.numbers(rows)
        counts: list[int] = np.bincount(numbers, minlength=len(self._known)).tolist()
        for number, (_, count) in self._own.items():
            counts[number] = count
        return counts

    def texts(self) -> list[str]:
        """Return the names by number, safe to show."""
        limit = max(12, min(200, MAX_NAMES // max(1, len(self._known))))
        own = {number: text for number, (text, _) in self._own.items()}
        names = ((own.get(k) if k in own else self._trace.strings[n]) for n, k in self._known.items())
        return [shown(name or "", limit) for name in names]


def stacked(start: Int64, end: Int64, slack: int = 0) -> Int64:
    """Return the row each slice is drawn in: the first that is free when it starts.

    For slices that nest this is their depth; those that overlap without nesting don't cover each other either. Times
    are ns, sorted by (start, -end); slices that overlap by less than `slack` are drawn side by side.
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


# columns


def pack(values: npt.ArrayLike, delta: bool = False) -> str:
    """Return a column as base64 of variable-length integers: 7 bits per byte, lowest first, top bit set if more follow.

    Slices lie close together and last briefly, so a start or a length takes two or three bytes instead of eight. With
    `delta`, differences of ascending values are stored. Nothing stored may be negative.
    """
    column = np.asarray(values, dtype=np.int64)
    if delta and len(column):
        column = np.diff(column, prepend=0)
    if len(column) and int(column.min()) < 0:
        raise ValueError("only ascending or positive columns can be packed")
    return base64.b64encode(_varints(column.astype(np.uint64))).decode("ascii")


def _varints(values: npt.NDArray[np.uint64]) -> bytes:
    sizes = np.ones(len(values), dtype=np.int64)
    for k in range(1, 10):
        sizes += values >= np.uint64(1 << 7 * k)
    out = np.zeros(int(sizes.sum()), dtype=np.uint8)
    first = np.cumsum(sizes) - sizes
    for k in range(int(sizes.max()) if len(sizes) else 0):
        has = sizes > k
        seven = (values[has] >> np.uint64(7 * k)).astype(np.uint8) & 0x7F
        out[first[has] + k] = seven | np.where(sizes[has] > k + 1, 0x80, 0).astype(np.uint8)
    return out.tobytes()


PAUSE = 12
"""Kind of slices besides a `Category`: a pause that a fix takes out."""
NOTABLE = 0.001
"""Least part of the step that an interval takes to be drawn."""


def pauses(analysis: Analysis) -> Iterator[tuple[Habit, tuple[ThreadInterval, ...]]]:
    """Yield each replayed habit whose likely change takes notable intervals out of host threads, with these."""
    least = NOTABLE * replayed(analysis.step) * 1e3
    for habit in analysis.habits:
        if habit.basis is not Basis.REPLAY or not habit.changes:
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
            number = book.add(habit.title, len(in_view))
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
