"""From the stacks that capture recorded at each synchronise to the one of a sync point, by thread and time."""

from __future__ import annotations

import msgspec
import numpy as np

from syncscan.model.arrays import Bool, Int64
from syncscan.model.capture import Frame
from syncscan.model.names import is_torch_op
from syncscan.model.runtime_calls import is_memcpy, is_synchronise
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
        self._asked: dict[tuple[tuple[int, ...], tuple[int, ...]], RecordedStack | None] = {}
        self._of_no_track = ~np.isin(self._tid, np.array(self._tids, dtype=np.int64))

    def of(self, calls: tuple[int, ...], ops: tuple[int, ...]) -> RecordedStack | None:
        """The stack of a sync point, None where capture didn't record one.

        Args:
            calls: rows of its runtime calls, in time order.
            ops: rows of the ops around it, outermost first.

        A record lies within the op that synchronises; an older one is of something else. An op that waits more often
        than it calls back has one line all the same; waits in the allocator have no record.
        """
        if not self._syncs and not self._lines.calls:
            return None
        if (calls, ops) not in self._asked:  # the rules ask, and then who places the sync
            self._asked[calls, ops] = self._found(calls, ops)
        return self._asked[calls, ops]

    def _found(self, calls: tuple[int, ...], ops: tuple[int, ...]) -> RecordedStack | None:
        s = self._slices
        track, start = int(s.track[calls[0]]), int(s.ts[calls[0]])
        if not any(self._calls_back(row) for row in calls):
            return self._of_timed_call(track, start)
        earliest, end = start - _BEFORE_NS, int(s.end[calls[-1]])
        if len(ops):
            earliest = int(s.ts[ops[0]]) - _AFTER_NS
            end = int(s.end[ops[0]]) if is_torch_op(self._name(ops[0])) else end
        return self.between(track, earliest, end, latest=start + _AFTER_NS) or self._of_timed_call(track, start)

    def between(self, track: int, start: int, end: int, latest: int | None = None) -> RecordedStack | None:
        """The last record of a thread between two times, if possible one not after `latest`."""
        mine, at = self._of_thread(track)
        first, behind = int(at.searchsorted(start)), int(at.searchsorted(end, side="right"))
        if first >= behind:
            return None
        early = behind if latest is None else min(behind, int(at.searchsorted(latest, side="right")))
        sync = self._syncs[mine.item(max(early - 1, first))]
        return self._stack(sync.stack, sync.module, sync.borrowed)

    def _name(self, row: int) -> str:
        return self._strings[self._slices.name.item(row)]

    def _calls_back(self, row: int) -> bool:
        name = self._name(row)
        return is_synchronise(name) or is_memcpy(name)

    def _of_timed_call(self, track: int, start: int) -> RecordedStack | None:
        """The stack of a timed call that this sync point lies in: nobody is called back by the allocator and Thrust."""
        at, tid = start + self._base, self._tids[track]
        around = (c for c in self._lines.calls if c.tid == tid and c.begin_ns - _AFTER_NS <= at <= c.end_ns)
        call = next(around, None)
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


def _number(tid: str) -> int:
    """A thread's id as a number, NONE for one that no thread can have: the text is the trace's, of any length."""
    digits = tid.removeprefix("-")
    return int(tid) if digits.isascii() and digits.isdigit() and len(digits) < 19 else NONE


__all__ = ["RecordedStack", "RecordedStacks"]
