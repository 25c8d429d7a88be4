"""Find what the profiler does to a trace: its own work on host threads, its last synchronize, and a clock that is off.

CUPTI reports its costs in rows of its own (`overhead`), which kineto writes on no thread's track. The blocked thread is
the one of the call around the row, or the steps' thread if that does nothing meanwhile.

Device times come from another clock than the host's, and the profiler converts them. In public traces they are early or
late by up to milliseconds (pytorch/kineto#868, #991, #1082). Both sides give bounds: no work begins before the call
that launches it, and no read-back returns before its copy is done, nor a device synchronize before all work is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
import numpy as np

from syncscan.facts.paths import frames_around
from syncscan.model.arrays import Bool, Int64, distinct, quantile
from syncscan.model.interval import Interval, ThreadInterval, cover_of
from syncscan.model.runtime_calls import (
    copies_and_waits,
    is_blocking_copy,
    is_copy,
    is_device_synchronize,
    is_queue_finish,
    is_stream_synchronize,
    only_asks,
)
from syncscan.model.trace import CALLS, HOST, NONE, Category, Trace, once

_ADJACENT_NS = 20_000
"""Longest time from the end of one queue's wait to the next call, as torch waits for all queues of a device in a C++
loop."""


@once
def profiler_syncs(trace: Trace) -> Int64:
    """Return the rows of the profiler's own closing synchronize calls, in time order; see `profiler_sync`.

    On an Intel device there is no device synchronize: torch waits for all its queues in turn (c10/xpu/XPUStream.cpp,
    `syncStreamsOnDevice`).
    """
    row = profiler_sync(trace)
    return np.array([row], np.int64) if row != NONE else _queues(trace)


def _queues(trace: Trace) -> Int64:
    """Return the last sequence of calls that each wait for a queue, if it is the profiler's; else nothing."""
    s, rows = trace.slices, trace.where(is_queue_finish, *CALLS)
    rows = rows[np.argsort(s.ts[rows], kind="stable")]
    if not len(rows) or _is_programs(trace, int(rows[-1])):
        return rows[:0]
    apart = (s.ts[rows[1:]] - s.end[rows[:-1]] > _ADJACENT_NS) | (s.parent[rows[1:]] != s.parent[rows[:-1]])
    first = int(np.flatnonzero(np.append(True, apart))[-1])
    return rows[first:]


def profiler_sync(trace: Trace) -> int:
    """Return the row of the profiler's own closing device synchronize, or NONE.

    `torch.autograd.profiler.profile.__exit__` synchronizes the device before it stops collecting: a device synchronize
    outside of every step and op, with no launch after it. In a trace with stacks, it lies below the profiler's own
    frame (torch/autograd/profiler.py).
    """
    rows = trace.where(is_device_synchronize, *CALLS)
    if not len(rows):
        return NONE
    last = int(rows[np.argmax(trace.slices.ts[rows])])
    return NONE if _is_programs(trace, last) else last


def _is_programs(trace: Trace, row: int) -> bool:
    return _in_a_step(trace, row) or _in_an_op(trace, row) or _launches_follow(trace, row) or _called(trace, row)


def _in_a_step(trace: Trace, row: int) -> bool:
    return bool(trace.in_steps(trace.slices.ts[[row]]).any())


def _in_an_op(trace: Trace, row: int) -> bool:
    around = trace.slices.category[trace.ancestors(row)]
    return bool(np.isin(around, (Category.CPU_OP, Category.ANNOTATION)).any())


def _launches_follow(trace: Trace, row: int) -> bool:
    calls = trace.device_calls
    return bool((trace.slices.ts[calls[calls != NONE]] > trace.slices.ts[row]).any())


def _called(trace: Trace, row: int) -> bool:
    """Return whether Python frames show that the program made the call: frames exist, and none is the profiler's."""
    s, rows = trace.slices, [row]
    (names,) = frames_around(trace, s.track[rows], s.ts[rows], s.end[rows])
    return any("synchronize" in name for name in names) and not any("profiler" in name for name in names)


OWN = frozenset({"Activity Buffer Request", "Buffer Flush", "Instrumentation", "Resource", "UVM Activity Init"})
"""Rows of work that isn't done without a profiler (CUpti_ActivityOverheadKind; kineto's cupti_strings.cpp). The others
are the driver's work: it compiles, loads what is used for the first time, or its queue is full."""
MOSTLY = 0.5
"""Least share of a row that a call must cover to be the call that the row lies in."""


def is_profilers_own(name: str) -> bool:
    """Return whether an `overhead` row of this name is the profiler's work rather than the driver's."""
    return name in OWN


@once
def profilers_own(trace: Trace) -> tuple[ThreadInterval, ...]:
    """Return where the profiler worked on host threads, in time order and without overlap on a thread."""
    rows = trace.where(is_profilers_own, Category.OVERHEAD)
    if not len(rows):
        return ()
    held: dict[int, list[tuple[int, int]]] = {}
    for track, begin, end in _placed(trace, rows):
        held.setdefault(track, []).append((begin, end))
    placed = [ThreadInterval(track, *one) for track, own in held.items() for one in cover_of(own).intervals]
    return tuple(sorted(placed, key=lambda interval: (interval.begin, interval.track)))


def profilers_own_within(trace: Trace, intervals: Iterable[Interval]) -> list[int]:
    """Return how long the profiler blocked the steps' thread in each of these intervals, ns."""
    main = _steps_track(trace)
    own = cover_of([(begin, end) for track, begin, end in profilers_own(trace) if track == main])
    return [own.between(*interval) for interval in intervals]


def _placed(trace: Trace, rows: Int64) -> Iterator[ThreadInterval]:
    """Yield the thread and time of each of these rows; rows that blocked no thread are left out."""
    s, main = trace.slices, _steps_track(trace)
    calls = np.flatnonzero(trace.is_category(*CALLS))
    hosts, overlaps, quiet = set(distinct(s.track[calls]).tolist()), Overlaps(trace, calls), _Quiet(trace, main)
    for row in rows.tolist():
        track, begin, end = s.track.item(row), s.ts.item(row), s.end.item(row)
        if track not in hosts:
            call, covered = overlaps.longest(begin, end)
            track = s.track.item(call) if covered > MOSTLY * (end - begin) else NONE
            if track == NONE and quiet.during(begin, end):
                track = main
        if track != NONE:
            yield ThreadInterval(track, begin, end)


class Overlaps:
    """Finds which of some rows overlaps a time the longest."""

    def __init__(self, trace: Trace, rows: Int64) -> None:
        s = trace.slices
        self._rows = rows[np.argsort(s.ts[rows], kind="stable")]
        self._ts, self._end = s.ts[self._rows], s.end[self._rows]
        self._latest = np.maximum.accumulate(self._end)
        """Latest end of each row and those before it."""

    def longest(self, begin: int, end: int) -> tuple[int, int]:
        """Return a row and how long it overlaps, ns; (NONE, 0) if none does."""
        near = slice(int(self._latest.searchsorted(begin, side="right")), int(self._ts.searchsorted(end)))
        overlap = np.minimum(self._end[near], end) - np.maximum(self._ts[near], begin)
        if not len(overlap) or overlap.max() <= 0:
            return NONE, 0
        return int(self._rows[near][overlap.argmax()]), int(overlap.max())


class _Quiet:
    """Tells when nothing begins or ends on a thread."""

    def __init__(self, trace: Trace, track: int) -> None:
        s, rows = trace.slices, trace.track_rows(track) if track != NONE else slice(0, 0)
        host = trace.is_category(*HOST)[rows]
        self._is_thread = track != NONE
        self._times = s.ts[rows][host], np.sort(s.end[rows][host])

    def during(self, begin: int, end: int) -> bool:
        bounds = ((times.searchsorted(begin, side="right"), times.searchsorted(end)) for times in self._times)
        return self._is_thread and all(first >= behind for first, behind in bounds)


def _steps_track(trace: Trace) -> int:
    """Return the track that runs the steps, or launches the most where none are marked; NONE without one."""
    if trace.main_steps:
        return trace.main_steps[0].track
    calls = trace.device_calls
    tracks = trace.slices.track[calls[calls != NONE]]
    return int(np.bincount(tracks).argmax()) if len(tracks) else NONE


TOLERANCE_NS = 5_000
"""Older traces have whole µs. In 270 recordings no work begins less than 3.5 µs after its call, and no read-back
returns less than 2.8 µs after its copy; on ROCm, one returns 1.2 µs before it."""
WIDEST_NS = 40_000
"""A shift known to within this is corrected: what remains is within the accuracy of all measured waits."""
FURTHEST_NS = 100_000
"""A larger shift is reported but not corrected. A choice: clocks that far apart mostly drift, too."""
SOME = 3
"""Least evidence of a late clock: copies read back, or other work that a device synchronize waits for. A single one may
be damaged."""
CLEAR_NS = 20_000
"""How late less evidence has to show it. In a recording on ROCm, one synchronize returns 7 µs before its work ends."""
_LOOKED_AT = 16
"""Launches before a synchronize that are checked for work that seems to end after it."""
_SOME_SYNCS = 256
"""Synchronizes of a stream that are checked, from the first to the last."""
_MOST_BETWEEN = 2
"""Most queries between a copy and the synchronize after it."""


class DeviceClock(msgspec.Struct, frozen=True):
    """Bounds of how late device times are by the host's clock, in ns; negative if they are early.

    A bound without evidence is None.
    """

    least: int | None
    most: int | None
    evidence: int = 0
    """Amount of work that the lower bound rests on."""

    @property
    def wrong(self) -> bool:
        """Whether a bound contradicts equal clocks."""
        return self.late or (self.most is not None and self.most < -TOLERANCE_NS)

    @property
    def late(self) -> bool:
        """Whether read-backs return before their copies are done.

        Few of them suffice if all work begins that much after its launch, too: no damaged event explains that.
        """
        if self.least is None or self.least <= TOLERANCE_NS or not self.evidence:
            return False
        if self.evidence >= SOME:
            return True
        return self.least > CLEAR_NS and self.most is not None and self.least <= self.most + TOLERANCE_NS

    @property
    def shift(self) -> int | None:
        """Shift by which device times can be corrected: the middle of both bounds; None unless they are close."""
        if not self.wrong or self.least is None or self.most is None or self.evidence < SOME:
            return None
        middle, width = (self.least + self.most) // 2, self.most - self.least
        return middle if -TOLERANCE_NS <= width <= WIDEST_NS and abs(middle) <= FURTHEST_NS else None


@once
def device_clock(trace: Trace) -> DeviceClock:
    """Return the bounds of this trace's device clock.

    A tenth (lower bound) or a hundredth (upper bound) of the events may disagree, since single events may be damaged.
    """
    s, calls = trace.slices, trace.device_calls
    linked = calls != NONE
    behind = s.ts[trace.device_rows[linked]] - s.ts[calls[linked]]
    most = int(quantile(behind, 0.01)) if len(behind) else None
    copies, returned = _read_backs(trace)
    late, evidence = s.end[copies] - returned, len(copies)
    at_syncs, pending = _synchronizes(trace, few=len(copies) < SOME)
    if len(at_syncs) and most is not None and quantile(at_syncs, 0.9) <= most + TOLERANCE_NS:
        late, evidence = np.concatenate([late, at_syncs]), evidence + pending  # else a clock doesn't explain them
    return DeviceClock(int(quantile(late, 0.9)) if len(late) else None, most, evidence)


def _synchronizes(trace: Trace, few: bool) -> tuple[Int64, int]:
    """Return how long after each device synchronize returned the last work launched before it ended, ns.

    The profiler's own count too, and with `few` read-backs stream synchronizes. With several devices, it isn't known
    which one it waits for; then there are none. The number is that of synchronizes, or how much work seems to end after
    one.
    """
    s, linked = trace.slices, trace.device_calls != NONE
    rows, calls = trace.device_rows[linked], trace.device_calls[linked]
    syncs = _waits_for_all(trace, rows, few)
    if not len(syncs) or not len(rows) or len(distinct(s.device[rows])) != 1:
        return np.zeros(0, np.int64), 0
    order = np.argsort(s.end[calls], kind="stable")
    launched, ends = s.end[calls][order], s.end[rows][order]
    before = launched.searchsorted(s.ts[syncs])
    syncs, before = syncs[before > 0], before[before > 0]
    late: Int64 = np.maximum.accumulate(ends)[before - 1] - s.end[syncs]
    returns = zip(before.tolist(), s.end[syncs].tolist(), strict=True)
    pending = [int((ends[max(0, count - _LOOKED_AT) : count] > end).sum()) for count, end in returns]
    return late, max(len(syncs), *pending, 0)


def _waits_for_all(trace: Trace, rows: Int64, few: bool) -> Int64:
    """Return the rows of calls that block the host until all of this work that was launched before is done.

    Those are stream synchronizes if no call waits for the device, there are few read-backs, and all work is of one
    stream.
    """
    syncs = trace.where(is_device_synchronize, *CALLS)
    if len(syncs) or not few or len(distinct(trace.slices.stream[rows])) != 1:
        return syncs
    syncs = trace.where(_waits_for_a_stream, *CALLS)
    return syncs[np.linspace(0, len(syncs) - 1, min(len(syncs), _SOME_SYNCS)).astype(np.int64)]


def _waits_for_a_stream(name: str) -> bool:
    """Return whether a call of this name blocks the host until a stream, or an Intel device's queue, is done."""
    return is_stream_synchronize(name) or is_queue_finish(name)


def _read_backs(trace: Trace) -> tuple[Int64, Int64]:
    """Return the rows of copies to the host that it waits for, and when the waiting call of each returned, ns."""
    s, calls = trace.slices, trace.where(is_copy, *CALLS)
    names = trace.copy_names(calls)
    to_host = np.array(["DtoH" in name for name in names], np.bool_)
    pageable = np.array(["Pageable" in name for name in names], np.bool_)
    waits = trace.called(calls, lambda name: copies_and_waits(name) or is_blocking_copy(name)) | pageable
    copies, (paired, returned) = trace.copies_of(calls), _synchronized(trace, calls)
    returned = np.where(paired, returned, s.end[calls])
    chosen = to_host & (copies != NONE) & (paired | waits)
    return copies[chosen], returned[chosen]


def _synchronized(trace: Trace, copies: Int64) -> tuple[Bool, Int64]:
    """Return which calls are directly followed by a stream synchronize in their op, and when that returned."""
    s, every = trace.slices, np.flatnonzero(trace.is_category(*CALLS))
    if not len(every):
        return np.zeros(len(copies), np.bool_), np.zeros(len(copies), np.int64)
    at = np.searchsorted(every, copies)[:, None] + np.arange(1, 2 + _MOST_BETWEEN)
    following = every.take(at, mode="clip")
    does = ~trace.called(following.reshape(-1), only_asks).reshape(following.shape) & (at < len(every))
    after = following[np.arange(len(copies)), does.argmax(axis=1)] if len(copies) else copies
    paired: Bool = does.any(axis=1) & trace.called(after, _waits_for_a_stream)
    paired &= (s.track[after] == s.track[copies]) & (s.parent[after] == s.parent[copies]) & (s.parent[copies] != NONE)
    return paired, s.end[after]


HOST_NS = 20_000
"""Between a host's call and the device's work. Of 208 calls that wait for their own copy, one returned 20.2 µs before
the copy ended; all others returned at least 3.1 µs after it."""
STREAM_NS = 5_000
"""Between the work of two streams. None of 200 stream waits with a stated record let work begin earlier than 1.3 µs
after what they waited for. On one stream, where nothing overlaps, 104 of 90,142 kernels and copies begin up to 3.1 µs
before the previous one ends, and two begin 10 and 15 µs before it."""
