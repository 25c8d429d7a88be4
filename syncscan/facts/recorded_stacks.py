"""From the stacks that capture recorded at each synchronise to the one of a sync point, by thread and time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from operator import itemgetter

import msgspec
import numpy as np

from syncscan.model.arrays import Bool, Int32, Int64, among, grouped, numbered
from syncscan.model.capture import Frame, TimedCall
from syncscan.model.names import is_torch_op
from syncscan.model.runtime_calls import is_memcpy, is_synchronize
from syncscan.model.trace import NONE, Trace

_BEFORE_NS = 1_000_000
"""How long before its call a synchronise without an op may have called back: a host that is preempted between the two
loses at most a few scheduling quanta (Linux: 1 to 4 ms are rare, most are below 1)."""
_AFTER_NS = 20_000
"""How far a record may lie behind the begin of its call: kineto and `time.time_ns` read clocks of their own, which
differ by a few µs (measured on an H200 with torch 2.11: 2 to 9 µs over 136 syncs)."""


class RecordedStack(msgspec.Struct, frozen=True):
    """The stack at one sync, outermost frame first, with the executing lines; and the module path around it.

    `borrowed` is true where autograd's thread has no frames of its own and those of the thread that called backward
    stand in.
    """

    frames: tuple[Frame, ...]
    module: tuple[str, ...]
    borrowed: bool
    texts: tuple[str, ...]
    """The frames as the profiler writes its own."""


class RecordedStacks:
    """Looks up sync points in what capture recorded; finds nothing in a trace of another origin.

    Torch calls back just before it synchronises, so a sync point's record is the last one of its thread before the end
    of its call (measured: a few µs ahead).
    """

    def __init__(self, trace: Trace) -> None:
        lines = trace.info.capture.lines
        # Not the trace, which may keep this: no cycle may hold its columns.
        self._slices, self._strings = trace.slices, trace.strings
        self._lines, self._base = lines, trace.info.base_ns
        self._tids = [_number(t.tid) for t in trace.tracks]
        self._syncs = sorted(lines.syncs, key=lambda sync: (sync.epoch_ns, sync.tid))
        self._at = np.array([sync.epoch_ns - self._base for sync in self._syncs], dtype=np.int64)
        self._tid = np.array([sync.tid for sync in self._syncs], dtype=np.int64)
        self._threads: dict[int, tuple[Int64, Int64]] = {}
        self._known: dict[tuple[int, int, bool], RecordedStack] = {}
        self._timed: dict[int, _TimedCalls] = {}
        self._of_no_track = ~among(self._tid, np.array(sorted(self._tids), np.int64))

    def of_each(self, first: Int64, last: Int64, op: Int64) -> list[RecordedStack | None]:
        """The stack of each of some sync points, None where capture didn't record one.

        Args:
            first, last: rows of the runtime calls of each; the same where it has one.
            op: row of the outermost op around each, NONE without.

        A record lies within the op that synchronises; an older one is of something else. An op that waits more often
        than it calls back has one line all the same; waits in the allocator have no record.
        """
        if not len(first) or not (self._syncs or self._lines.calls):
            return [None] * len(first)
        s = self._slices
        track, start = s.track[first], s.ts[first]
        earliest = np.where(op == NONE, start - _BEFORE_NS, s.ts[op] - _AFTER_NS)
        until = np.where((op != NONE) & self._called(op, is_torch_op), s.end[op], s.end[last])
        records = self._records(track, earliest, until, start + _AFTER_NS)
        records[~(self._called(first, _calls_back) | self._called(last, _calls_back))] = NONE
        found = [None if record == NONE else self._recorded(record) for record in records.tolist()]
        for place in np.flatnonzero(records == NONE).tolist() if self._lines.calls else ():
            found[place] = self._of_timed_call(track.item(place), start.item(place))
        return found

    def between_each(self, tracks: Int32, starts: Int64, ends: Int64) -> list[RecordedStack | None]:
        """The last record of each of these threads between two times."""
        records = self._records(tracks, starts, ends, ends).tolist()
        return [None if record == NONE else self._recorded(record) for record in records]

    def _records(self, track: Int32, start: Int64, end: Int64, latest: Int64) -> Int64:
        """For each thread the last record between these two times, if possible one not after `latest`; NONE without."""
        records = np.full(len(track), NONE, np.int64)
        for one, here in grouped(track):
            mine, at = self._of_thread(one)
            first, behind = at.searchsorted(start[here]), at.searchsorted(end[here], side="right")
            early = np.minimum(behind, at.searchsorted(latest[here], side="right"))
            some = first < behind
            records[here[some]] = mine[np.maximum(early - 1, first)[some]]
        return records

    def _recorded(self, record: int) -> RecordedStack:
        sync = self._syncs[record]
        return self._stack(sync.stack, sync.module, sync.borrowed)

    def _called(self, rows: Int64, predicate: Callable[[str], bool]) -> Bool:
        """Which of these rows have a name that satisfies this, asked once a name; of NONE, anything."""
        names, which = numbered(self._slices.name[rows])
        return np.array([predicate(self._strings[name]) for name in names.tolist()], np.bool_)[which]

    def _of_timed_call(self, track: int, start: int) -> RecordedStack | None:
        """The stack of a timed call that this sync point lies in: nobody is called back by the allocator and Thrust."""
        tid = self._tids[track]
        if tid not in self._timed:
            self._timed[tid] = _TimedCalls([call for call in self._lines.calls if call.tid == tid])
        call = self._timed[tid].around(start + self._base)
        return self._stack(call.stack, NONE, False) if call else None

    def _stack(self, stack: int, module: int, borrowed: bool) -> RecordedStack:
        """The stack of these numbers: one object, however many syncs have it."""
        key = (stack, module, borrowed)
        if key not in self._known:
            frames = self._lines.stack(stack)
            texts = tuple(map(str, frames))
            self._known[key] = RecordedStack(frames, self._lines.module(module), borrowed, texts)
        return self._known[key]

    def _of_thread(self, track: int) -> tuple[Int64, Int64]:
        """Which records are a thread's, and when they were made; kept, as it is asked for at every sync."""
        if track not in self._threads:
            mine = np.flatnonzero(self._on(track))
            self._threads[track] = (mine, self._at[mine])
        return self._threads[track]

    def _on(self, track: int) -> Bool:
        """Records of a thread. The profiler gives a thread without ops its pthread id, which no record has."""
        same: Bool = self._tid == self._tids[track]
        return same if same.any() else self._of_no_track


class _TimedCalls:
    """Those of one thread, in the order in which they were written down: one ends before the calls around it do."""

    def __init__(self, calls: Sequence[TimedCall]) -> None:
        self._calls = sorted(enumerate(calls), key=lambda numbered: numbered[1].begin_ns)
        self._begins = [call.begin_ns - _AFTER_NS for _, call in self._calls]
        self._reach = list(accumulate((call.end_ns for _, call in self._calls), max))
        """Of each when all up to it are over: from where that is too early on none before it needs a look."""

    def around(self, at: int) -> TimedCall | None:
        """The first that holds this time (ns of the epoch), give or take what the clocks do; None without."""
        place, found = bisect_right(self._begins, at), []
        while place and self._reach[place - 1] >= at:
            place -= 1
            if self._calls[place][1].end_ns >= at:
                found.append(self._calls[place])
        return min(found, key=itemgetter(0))[1] if found else None


def _calls_back(name: str) -> bool:
    """Whether torch calls back before it makes a call of this name."""
    return is_synchronize(name) or is_memcpy(name)


def _number(tid: str) -> int:
    """A thread's id as a number, NONE for one that no thread can have: the text is the trace's, of any length."""
    digits = tid.removeprefix("-")
    return int(tid) if digits.isascii() and digits.isdigit() and len(digits) < 19 else NONE


__all__ = ["RecordedStack", "RecordedStacks"]
