"""The stacks that capture recorded at each synchronise, looked up by thread and time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from syncscan.model.trace import NONE, Bool, Trace

_BEFORE_NS = 1_000_000
_AFTER_NS = 20_000


@dataclass(frozen=True, slots=True)
class Frame:
    """One Python frame: file as recorded, line, function."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        """As the profiler names a frame: `file.py(LINE): function`."""
        return f"{self.file}({self.line}): {self.function}"


@dataclass(frozen=True, slots=True)
class Exact:
    """The stack at one sync, outermost frame first, with the executing lines; and the module path around it.

    `borrowed` is true where autograd's thread has no frames of its own and those of the thread that called backward
    stand in.
    """

    frames: tuple[Frame, ...]
    module: tuple[str, ...]
    borrowed: bool


class ExactLines:
    """Looks up sync points in `metadata["syncscan"]["lines"]`; finds nothing in a trace without that table.

    Torch calls back just before it synchronises, so a sync point's record is the last one of its thread before the end
    of its call (measured: a few µs ahead).
    """

    def __init__(self, trace: Trace) -> None:
        table = _table(trace.info.metadata)
        self._tracks = [_number(t.tid) for t in trace.tracks]
        self._frames = [Frame(str(f[0]), int(f[1]), str(f[2])) for f in table.get("frames", ())]
        self._stacks: list[list[int]] = list(table.get("stacks", ()))
        self._paths: list[str] = list(table.get("modules", ()))
        syncs = sorted(s for s in table.get("syncs", ()) if len(s) >= 4)
        self._at = np.array([int(s[0]) - trace.info.base_ns for s in syncs], dtype=np.int64)
        self._tid = np.array([int(s[1]) for s in syncs], dtype=np.int64)
        self._stack = [int(s[3]) for s in syncs]
        self._module = [int(s[4]) if len(s) > 4 else NONE for s in syncs]
        self._borrowed = [len(s) > 6 and s[6] != s[1] for s in syncs]
        self._strange = ~np.isin(self._tid, np.array(self._tracks, dtype=np.int64))
        self._calls = [[int(x) for x in c] for c in table.get("calls", ()) if len(c) >= 4]
        self._base = trace.info.base_ns
        self._trace = trace

    def of(self, calls: Sequence[int], ops: Sequence[int]) -> Exact | None:
        """The exact stack of a sync point, None where capture didn't record one.

        Args:
            calls: rows of its runtime calls, in time order.
            ops: rows of the ops around it, outermost first.

        A record lies within the op that synchronises; an older one is of something else. An op that waits more often
        than it calls back has one line all the same; waits in the allocator have no record.
        """
        if not len(self._at) and not self._calls:
            return None
        s = self._trace.slices
        track, start = int(s.track[calls[0]]), int(s.ts[calls[0]])
        if not any(self._calls_back(row) for row in calls):
            return self._around(track, start)
        earliest, end = start - _BEFORE_NS, int(s.ts[calls[-1]] + s.dur[calls[-1]])
        if len(ops):
            earliest = int(s.ts[ops[0]]) - _AFTER_NS
            end = int(s.ts[ops[0]] + s.dur[ops[0]]) if self._trace.name(ops[0]).startswith("aten::") else end
        return self.between(track, earliest, end, latest=start + _AFTER_NS) or self._around(track, start)

    def _calls_back(self, row: int) -> bool:
        name = self._trace.name(row)
        return "Synchronize" in name or "Memcpy" in name

    def _around(self, track: int, start: int) -> Exact | None:
        """The stack of a timed call that this sync point lies in: nobody is called back by the allocator and Thrust."""
        at, tid = start + self._base, self._tracks[track]
        call = next((c for c in self._calls if c[2] == tid and c[0] - _AFTER_NS <= at <= c[1]), None)
        return self._at_place(call[3], NONE, False) if call else None

    def between(self, track: int, start: int, end: int, latest: int | None = None) -> Exact | None:
        """The last record of a thread between two times, if possible one not after `latest`."""
        mine = np.flatnonzero(self._on(track) & (self._at >= start) & (self._at <= end))
        if not len(mine):
            return None
        early = mine[self._at[mine] <= latest] if latest is not None else mine
        return self._exact(int(early[-1] if len(early) else mine[0]))

    def _on(self, track: int) -> Bool:
        """Records of a thread. The profiler gives a thread without ops its pthread id, which no record has."""
        same = self._tid == self._tracks[track]
        return same if same.any() else self._strange

    def _exact(self, k: int) -> Exact:
        return self._at_place(self._stack[k], self._module[k], self._borrowed[k])

    def _at_place(self, stack_id: int, module_id: int, borrowed: bool) -> Exact:
        stack = self._stacks[stack_id] if 0 <= stack_id < len(self._stacks) else []
        path = self._paths[module_id] if 0 <= module_id < len(self._paths) else ""
        frames = tuple(self._frames[i] for i in reversed(stack) if 0 <= i < len(self._frames))
        return Exact(frames, tuple(path.split("/")) if path else (), borrowed)


def _table(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    own = metadata.get("syncscan")
    lines = own.get("lines") if isinstance(own, Mapping) else None
    return lines if isinstance(lines, Mapping) else {}


def _number(tid: str) -> int:
    return int(tid) if tid.lstrip("-").isdigit() else NONE
