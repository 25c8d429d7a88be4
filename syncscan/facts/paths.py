"""Find the chain of slices, and of Python frames, around a time of a host thread; equal chains share their names.

And the innermost enclosing slice that counts, by parents or by times alone, with pointer doubling.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import compress
from typing import Any

import msgspec
import numpy as np

from syncscan.model.arrays import Bool, Int32, Int64, blocks, distinct, grouped
from syncscan.model.slice_names import is_step, is_wrapper
from syncscan.model.trace import NONE, Category, Trace, once, outwards

_ROUNDS = 32
"""More doublings than any number of rows takes; rows left after them lie behind deep nesting."""


def innermost_that(counts: Bool, parent: Any) -> Any:
    """Return for each row the innermost row around it that counts, or NONE."""
    around = parent.copy()
    _led_outwards(around, np.flatnonzero(parent != NONE), lambda _, places: counts.take(places))
    return around


def innermost_until(track: Int32, end: Int64, least: Int64) -> Int64:
    """Return for each interval the last one before it on its track that ends at `least` or later, or NONE.

    Intervals of a track are adjacent and ordered by begin. `least` is the earliest end of what can enclose each one,
    later than its begin. An interval that ends too early to enclose one also ends too early for all that this one ends
    too early for.
    """
    around = np.arange(-1, len(end) - 1)
    around[1:][track[1:] != track[:-1]] = NONE
    begun = np.flatnonzero(around != NONE)
    left = _led_outwards(around, begun, lambda rows, places: end.take(places) >= least.take(rows))
    for one in distinct(track[left]).tolist():
        first, last = np.searchsorted(track, [one, one + 1]).tolist()
        around[first:last] = _swept(end[first:last].tolist(), least[first:last].tolist(), first)
    return around


def _led_outwards(around: Any, rows: Int64, stays: Callable[[Int64, Any], Bool]) -> Int64:
    """Lead each row outwards to the first place where it stays; return rows that need more than `_ROUNDS`.

    `around` is the first place to try for each row, or NONE, and holds the answer afterwards. Rows ascend.
    """
    left = [_led(around, rows[some], stays) for some in blocks(len(rows))]
    return np.concatenate([rows[:0], *left])


def _led(around: Any, rows: Int64, stays: Callable[[Int64, Any], Bool]) -> Int64:
    """Lead some rows outwards, after all before them.

    A place where a row doesn't stay is skipped together with all that were skipped for it. In a usual trace each round
    doubles the distance; behind deep nesting it goes up one level.
    """
    for _ in range(_ROUNDS):
        places = around.take(rows)
        left = np.flatnonzero((places != NONE) & ~stays(rows, places))
        if not len(left):
            return left
        rows = rows.take(left)
        around[rows] = around.take(places.take(left))
    return rows


def _swept(end: Sequence[int], least: Sequence[int], first: int) -> list[int]:
    """Return the result of `innermost_until` for the intervals of one track, numbered from `first`, with a stack."""
    open_: list[int] = []
    innermost = []
    for row, needed in enumerate(least):
        while open_ and end[open_[-1]] < needed:
            open_.pop()
        innermost.append(first + open_[-1] if open_ else NONE)
        open_.append(row)
    return innermost


_KINDS = 16
"""More than the number of categories: name and category are packed in one number."""


class PathNames(msgspec.Struct, frozen=True, eq=False):
    """Names of a chain of slices; all chains with the same names and categories share one object."""

    every: tuple[str, ...]
    """All names, outermost first; all step annotations are given the name of the first one."""
    ops: tuple[str, ...]
    """Names of the ops."""
    scopes: tuple[str, ...]
    """Names of the annotations, without the profiler's steps."""
    is_op: tuple[bool, ...]
    worker: int
    """Index of the outermost op that does work itself rather than only contain others, or NONE."""


class Path(msgspec.Struct, frozen=True, eq=False):
    """A chain of slices, each inside the one before."""

    rows: tuple[int, ...]
    """Rows of the slices, outermost first."""
    ops: tuple[int, ...]
    """Rows of the ops."""
    names: PathNames

    @property
    def worker(self) -> int:
        """Row of the outermost op that does work itself rather than only contain others, or NONE."""
        return self.ops[self.names.worker] if self.names.worker != NONE else NONE


NOWHERE = Path((), (), PathNames((), (), (), (), NONE))


class Paths:
    """Looks up the slices around a slice of a trace, and caches the chains."""

    def __init__(self, trace: Trace) -> None:
        self._strings, self._slices, self._ancestors = trace.strings, trace.slices, trace.ancestors
        steps = [number for number in trace.names_of(Category.ANNOTATION) if is_step(trace.strings[number])]
        self._same = np.arange(len(trace.strings))
        self._same[steps] = min(steps, default=NONE)  # a call site has the same chain in each step
        self._known: dict[int, Path] = {NONE: NOWHERE}
        self._names: dict[tuple[int, ...], PathNames] = {}

    def to(self, row: int) -> Path:
        """Return the chain that ends with the slice in this row; an empty one for NONE."""
        path = self._known.get(row)
        if path is None:
            rows = tuple(outwards(self._slices.parent, row)[::-1])
            names = self._names_of(tuple(self._codes(np.array(rows)).tolist()))
            path = self._known[row] = Path(rows, tuple(compress(rows, names.is_op)), names)
        return path

    def outermost_op(self, row: int) -> int:
        return next(iter(self.to(self._slices.parent.item(row)).ops), NONE)

    def _codes(self, rows: Int64) -> Int64:
        """Return one number for name and category of each of these rows."""
        name, category = self._slices.name[rows], self._slices.category[rows]
        codes: Int64 = np.where(category == int(Category.ANNOTATION), self._same[name], name)
        return codes * _KINDS + category

    def _names_of(self, codes: tuple[int, ...]) -> PathNames:
        path_names = self._names.get(codes)
        if path_names is None:
            every = tuple(self._strings[code // _KINDS] for code in codes)
            is_op = tuple(code % _KINDS == Category.CPU_OP for code in codes)
            is_scope = (code % _KINDS == Category.ANNOTATION for code in codes)
            ops = tuple(compress(every, is_op))
            path_names = self._names[codes] = PathNames(
                every=every,
                ops=ops,
                scopes=tuple(name for name in compress(every, is_scope) if not is_step(name)),
                is_op=is_op,
                worker=next((at for at, op in enumerate(ops) if not is_wrapper(op)), NONE),
            )
        return path_names


def frames_around(trace: Trace, tracks: Int32 | Int64, begins: Int64, ends: Int64) -> list[tuple[str, ...]]:
    """Return the names of the Python frames around each interval (ns), outermost first; empty without stacks."""
    names_of: list[tuple[str, ...]] = [()] * len(tracks)
    for track, places in grouped(tracks) if len(trace.frames) else ():
        names = _chains(trace, track).around(begins[places], ends[places])
        for place, around in zip(places.tolist(), names, strict=True):
            names_of[place] = around
    return names_of


@once
def _chains(trace: Trace, track: int) -> FrameChains:
    frames = trace.frames
    own = slice(*np.searchsorted(frames.track, [track, track + 1]).tolist())
    return FrameChains(trace.strings, frames.name[own], frames.ts[own], frames.end[own])


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
