"""Find the stack that capture recorded for a sync point, by thread and time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from operator import itemgetter

import msgspec
import numpy as np

from syncscan.model.arrays import Bool, Int32, Int64, among, grouped
from syncscan.model.capture import Frame, TimedCall
from syncscan.model.runtime_calls import is_memcpy, is_synchronize
from syncscan.model.slice_names import is_torch_op
from syncscan.model.trace import NONE, Trace, names_that

_BEFORE_NS = 1_000_000
"""How long before its call a synchronize without an op may have called back: a host preempted between the two loses at
most a few scheduling quanta (Linux: 1 to 4 ms are rare, most are below 1)."""
_AFTER_NS = 20_000
"""How far a record may lie after the begin of its call: kineto and `time.time_ns` read different clocks, which differ
by a few µs (measured on an H200 with torch 2.11: 2 to 9 µs over 136 syncs)."""


class RecordedStack(msgspec.Struct, frozen=True):
    """The stack at one sync, outermost frame first, with the executing lines and the module path around it.

    `borrowed` is true if autograd's thread has no frames of its own and those of the thread that called backward are
    used. (They show where backward was called.)
    """

    frames: tuple[Frame, ...]
    module: tuple[str, ...]
    borrowed: bool
    texts: tuple[str, ...]
    """The frames in the profiler's spelling."""


class RecordedStacks:
    """Looks up sync points in capture's records; empty for a trace of another origin.

    torch calls back just before it synchronizes, so a sync point's record is the last one of its thread before the end
    of its call (measured: a few µs ahead).
    """

    def __init__(self, trace: Trace) -> None:
        lines = trace.info.capture.lines
        # Not the trace, which may hold this object: a cycle would keep its columns alive.
        self._slices, self._strings = trace.slices, trace.strings
        self._lines, self._base = lines, trace.info.base_ns
        self._tids = [_number(t.tid) for t in trace.tracks]
        self._syncs = sorted(lines.syncs, key=lambda sync: (sync.epoch_ns, sync.tid))
        self._at = np.array([sync.epoch_ns - self._base for sync in self._syncs], dtype=np.int64)
        self._tid = np.array([sync.tid for sync in self._syncs], dtype=np.int64)
        self._threads: dict[int, tuple[Int64, Int64]] = {}
        self._known: dict[tuple[int, int, bool], RecordedStack] = {}
        self._timed: dict[int, _TimedCalls] = {}
        self._of_no_track = ~among(self._tid, np.array(list(self._tids), np.int64))

    def of_each(self, first: Int64, last: Int64, op: Int64) -> list[RecordedStack | None]:
        """Return the recorded stack of each sync point, from its first runtime call to its last, or None.

        `op` is the outermost op around each, or NONE. A record lies within the op that synchronizes; an older one
        belongs to something else. An op that waits more often than it calls back still has one line. Waits in the
        allocator have no record.
        """
        if not len(first) or not (self._syncs or self._lines.calls):
            return [None] * len(first)
        s = self._slices
        track, start = s.track[first], s.ts[first]
        earliest = np.where(op == NONE, start - _BEFORE_NS, s.ts[op] - _AFTER_NS)
        until = np.where((op != NONE) & self._called(op, is_torch_op), s.end[op], s.end[last])
        records = self._records(track, earliest, until, start + _AFTER_NS)
        records[~(self._called(first, _calls_back) | self._called(last, _calls_back))] = NONE
        stacks = [None if record == NONE else self._recorded(record) for record in records.tolist()]
        for place in np.flatnonzero(records == NONE).tolist() if self._lines.calls else ():
            stacks[place] = self._of_timed_call(track.item(place), start.item(place))
        return stacks

    def between_each(self, tracks: Int32, starts: Int64, ends: Int64) -> list[RecordedStack | None]:
        """Return the last record of each of these threads between two times."""
        records = self._records(tracks, starts, ends, ends).tolist()
        return [None if record == NONE else self._recorded(record) for record in records]

    def _records(self, track: Int32, start: Int64, end: Int64, latest: Int64) -> Int64:
        """Return the last record of each thread between two times, if possible not after `latest`; NONE without."""
        records = np.full(len(track), NONE, np.int64)
        for number, places in grouped(track):
            records_of, at = self._of_thread(number)
            first, behind = at.searchsorted(start[places]), at.searchsorted(end[places], side="right")
            early = np.minimum(behind, at.searchsorted(latest[places], side="right"))
            some = first < behind
            records[places[some]] = records_of[np.maximum(early - 1, first)[some]]
        return records

    def _recorded(self, record: int) -> RecordedStack:
        sync = self._syncs[record]
        return self._stack(sync.stack, sync.module, sync.borrowed)

    def _called(self, rows: Int64, predicate: Callable[[str], bool]) -> Bool:
        """Return which of these rows have a name that satisfies `predicate`; any for NONE."""
        return names_that(predicate, self._strings, self._slices.name[rows])

    def _of_timed_call(self, track: int, start: int) -> RecordedStack | None:
        """Return the stack of a timed call around this sync point, for calls without callbacks (allocator, Thrust)."""
        tid = self._tids[track]
        if tid not in self._timed:
            self._timed[tid] = _TimedCalls([call for call in self._lines.calls if call.tid == tid])
        call = self._timed[tid].around(start + self._base)
        return self._stack(call.stack, NONE, False) if call else None

    def _stack(self, stack: int, module: int, borrowed: bool) -> RecordedStack:
        """Return the stack with these numbers, as one object for all syncs that have it."""
        key = (stack, module, borrowed)
        if key not in self._known:
            frames = self._lines.stack(stack)
            texts = tuple(map(str, frames))
            self._known[key] = RecordedStack(frames, self._lines.module(module), borrowed, texts)
        return self._known[key]

    def _of_thread(self, track: int) -> tuple[Int64, Int64]:
        """Return a thread's records and when they were made; cached, since every sync needs them."""
        if track not in self._threads:
            own = np.flatnonzero(self._on(track))
            self._threads[track] = (own, self._at[own])
        return self._threads[track]

    def _on(self, track: int) -> Bool:
        """Return which records are of a thread; a thread without ops has its pthread id, which no record has."""
        same: Bool = self._tid == self._tids[track]
        return same if same.any() else self._of_no_track


class _TimedCalls:
    """Timed calls of one thread, in recording order: a call ends before the calls around it do."""

    def __init__(self, calls: Sequence[TimedCall]) -> None:
        self._calls = sorted(enumerate(calls), key=lambda numbered: numbered[1].begin_ns)
        self._begins = [call.begin_ns - _AFTER_NS for _, call in self._calls]
        self._reach = list(accumulate((call.end_ns for _, call in self._calls), max))
        """For each call, the latest end up to it, so that the search can stop early."""

    def around(self, at: int) -> TimedCall | None:
        """Return the innermost call around this time (ns since the epoch), within the clocks' tolerance, or None."""
        place, around = bisect_right(self._begins, at), []
        while place and self._reach[place - 1] >= at:
            place -= 1
            if self._calls[place][1].end_ns >= at:
                around.append(self._calls[place])
        return min(around, key=itemgetter(0))[1] if around else None


def _calls_back(name: str) -> bool:
    """Return whether torch calls back before a runtime call of this name."""
    return is_synchronize(name) or is_memcpy(name)


def _number(tid: str) -> int:
    """Return a thread's id as a number, NONE if it can't be one, since the text comes from the trace."""
    digits = tid.removeprefix("-")
    return int(tid) if digits.isascii() and digits.isdigit() and len(digits) < 19 else NONE


__all__ = ["RecordedStack", "RecordedStacks"]
