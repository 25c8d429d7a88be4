"""Look up the names of the Python frames around any time on a thread."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from syncscan.facts.nesting import innermost_until
from syncscan.model.arrays import Int32, Int64, grouped
from syncscan.model.trace import NONE, Trace


def frames_around(trace: Trace, tracks: Int32 | Int64, begins: Int64, ends: Int64) -> list[tuple[str, ...]]:
    """Return the names of the Python frames around each interval (ns), outermost first; empty without stacks."""
    names_of: list[tuple[str, ...]] = [()] * len(tracks)
    frames, cache = trace.frames, trace.cached(_Threads).known
    for track, places in grouped(tracks) if len(frames) else ():
        if track not in cache:
            own = slice(*np.searchsorted(frames.track, [track, track + 1]).tolist())
            cache[track] = FrameChains(trace.strings, frames.name[own], frames.ts[own], frames.end[own])
        names = cache[track].around(begins[places], ends[places])
        for place, around in zip(places.tolist(), names, strict=True):
            names_of[place] = around
    return names_of


class _Threads:
    def __init__(self, _: Trace) -> None:
        self.known: dict[int, FrameChains] = {}


class FrameChains:
    """Looks up the frames of a thread around a time; calls at one site get the same tuple.

    Frames are ordered by begin.
    """

    def __init__(self, strings: Sequence[str], names: Int32, ts: Int64, ends: Int64) -> None:
        self._strings, self._names, self._ts, self._ends = strings, names, ts, ends
        self._open_before = innermost_until(np.zeros(len(ts), np.int32), ends, ts + 1)
        """For each frame, the last earlier frame that ends after it begins, or NONE."""
        self._same: dict[tuple[str, ...], tuple[str, ...]] = {}

    def around(self, begins: Int64, ends: Int64) -> list[tuple[str, ...]]:
        begun = (self._ts.searchsorted(begins, side="right") - 1).tolist()
        open_ = {frame: self._open(frame) for frame in set(begun)}
        chains = []
        for frame, begin, end in zip(begun, begins.tolist(), ends.tolist(), strict=True):
            rows = open_[frame][self._ends.take(open_[frame]) >= end]
            if begin == end:
                rows = np.union1d(rows, self._ending(end))
            names = tuple([self._strings[name] for name in self._names.take(rows).tolist()])
            chains.append(self._same.setdefault(names, names))
        return chains

    def _open(self, frame: int) -> Int64:
        """Return a frame and those open when it began, outermost first; empty for NONE."""
        rows = []
        while frame != NONE:
            rows.append(frame)
            frame = self._open_before.item(frame)
        return np.array(rows[::-1], np.int64)

    def _ending(self, time: int) -> Int64:
        ending = self._by_end[slice(*(self._ends.searchsorted(time, side, self._by_end) for side in ("left", "right")))]
        ended: Int64 = ending[self._ts[ending] <= time]
        return ended

    @cached_property
    def _by_end(self) -> Int64:
        return np.argsort(self._ends, kind="stable")


__all__ = ["FrameChains", "frames_around"]
