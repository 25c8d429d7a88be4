"""From capture's table of sync callbacks to the exact stack of a sync point, joined by thread and time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from syncscan.attribute.source import Frame
from syncscan.model.finding import SyncPoint
from syncscan.model.trace import NONE, Bool, Trace

_BEFORE_NS = 1_000_000
_AFTER_NS = 20_000


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

    def of(self, point: SyncPoint) -> Exact | None:
        """The exact stack of a sync point, None where capture didn't record one."""
        return self.between(point.track, point.ts - _BEFORE_NS, point.end, latest=point.ts + _AFTER_NS)

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
        stack = self._stacks[self._stack[k]] if 0 <= self._stack[k] < len(self._stacks) else []
        path = self._paths[self._module[k]] if 0 <= self._module[k] < len(self._paths) else ""
        frames = tuple(self._frames[i] for i in reversed(stack) if 0 <= i < len(self._frames))
        return Exact(frames, tuple(path.split("/")) if path else (), self._borrowed[k])


def _table(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    own = metadata.get("syncscan")
    lines = own.get("lines") if isinstance(own, Mapping) else None
    return lines if isinstance(lines, Mapping) else {}


def _number(tid: str) -> int:
    return int(tid) if tid.lstrip("-").isdigit() else NONE
