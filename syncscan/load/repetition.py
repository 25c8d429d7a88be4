"""Find the shortest sequence of calls that fills most of a trace without step marks, and where each round begins."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import msgspec
import numpy as np

from syncscan.facts.autograd import program_track
from syncscan.model.arrays import Bool, Int64, distinct, median, numbered_pairs
from syncscan.model.runtime_calls import is_synchronize
from syncscan.model.slice_names import is_loader, is_optimizer
from syncscan.model.trace import CALLS, DEEPEST, HOST, NONE, Category, Trace

LEAST = 3
"""Least number of repetitions: two may be chance, and a loop is warm by its third."""
COVERED = 0.5
"""A sequence must fill more than this part of the time from the first call to the last, so that it covers the
middle."""
_COMPARED = 32
"""Calls that distinguish candidates before whole sequences are compared."""
_CANDIDATES = 64
"""Number of lengths to compare in full, which bounds the time, as each takes time proportional to the calls."""


class Repetition(msgspec.Struct, frozen=True):
    track: int
    calls: int
    bounds: tuple[int, ...]
    """When each repetition begins and, last, when the last one ends, ns."""


def repeated_calls(trace: Trace) -> Repetition | None:
    """Return the shortest sequence of calls that repeats `LEAST` times or more and fills `COVERED` of the time.

    Calls that launch or wait are equal if they and the slices directly around them have the same names; without a slice
    around, the work that they started. Each repetition must begin between two slices of its thread, so that a loop
    inside an op or a scope makes no steps.
    """
    calls = _calls(trace)
    codes = _codes(trace, calls)
    if not len(calls):
        return None
    outermost = outermost_of(trace, calls)
    heads = LoopHeads(trace, outermost)
    starts = np.append(True, outermost[1:] != outermost[:-1])
    middle = _middle(trace, calls)
    for length in _lengths(codes, middle):
        runs = [_run(codes, length, at) for at in (middle, middle - length)]
        first, last = max(runs, key=lambda run: run[1] - run[0])
        possible = _begins(starts, first, last, length)
        if not possible:
            continue
        begin = heads.best_begin(possible, last, length)
        count = (last - begin) // length
        if not heads.lie_in_rounds(begin, count, length):
            continue
        bounds = heads.bounds(begin, count, length)
        # The last call may be the profiler's own synchronize, as long as the device's backlog, so its begin counts.
        if bounds[-1] - bounds[0] > COVERED * int(trace.slices.ts[calls[-1]] - trace.slices.ts[calls[0]]):
            return Repetition(int(trace.slices.track[calls[0]]), length, bounds)
    return None


def _calls(trace: Trace) -> Int64:
    """Return the calls of the program's thread that started work or wait for it, in order.

    A thread that starts nothing only observes.
    """
    s = trace.slices
    launches = trace.device_calls[trace.device_calls != NONE]
    chosen, launching = np.zeros(len(s), np.bool_), np.zeros(len(trace.tracks), np.bool_)
    chosen[launches] = chosen[trace.where(is_synchronize, *CALLS)] = True
    launching[s.track[launches]] = True
    calls = np.flatnonzero(chosen)
    calls = calls[launching[s.track[calls]]]
    calls = calls[s.track[calls] == program_track(trace, s.track[calls].astype(np.int64))]
    in_order: Int64 = calls[np.argsort(s.ts[calls], kind="stable")]
    return in_order


def _codes(trace: Trace, calls: Int64) -> Int64:
    s = trace.slices
    around = s.parent[calls]
    work = trace.works_of(calls)
    other = np.where(around != NONE, s.name[around], np.where(work != NONE, s.name[work], NONE))
    return numbered_pairs(s.name[calls], other)[1].astype(np.int64)


def _middle(trace: Trace, calls: Int64) -> int:
    """Return the index of the last call in the first half of the time, which a sequence that fills most of it has."""
    ts = trace.slices.ts[calls]
    return max(int(np.searchsorted(ts, (ts[0] + ts[-1]) / 2, side="right")) - 1, 0) if len(ts) else 0


def _lengths(codes: Int64, middle: int) -> list[int]:
    """Return the possible lengths of the sequence, ascending: distances of the middle call to equal ones.

    In a long loop of equal calls there are too many, so those of the rarest call of the middle half count too.
    """
    of_middle, of_rarest = (_distances(codes, at) for at in (middle, _rarest(codes, middle)))
    return sorted({*itertools.islice(of_middle, _CANDIDATES), *itertools.islice(of_rarest, _CANDIDATES)})


def _distances(codes: Int64, at: int) -> Iterator[int]:
    """Yield the distances of a call to equal ones, ascending, that may be the length of a repeated sequence."""
    most = len(codes) // LEAST
    if most:
        apart = np.abs(np.flatnonzero(codes == codes[at]) - at)
        candidates = distinct(apart[(apart > 0) & (apart <= most)])
        yield from (length for length in candidates.tolist() if _alike(codes, at, length))


def _rarest(codes: Int64, middle: int) -> int:
    """Return the call nearest to the middle of those in the middle half that occur least, but `LEAST` times."""
    counts = np.bincount(codes, minlength=1)[codes]
    half = np.arange(len(codes) // 4, len(codes) - len(codes) // 4)
    half = half[counts[half] >= LEAST]
    rarest = half[counts[half] == counts[half].min()] if len(half) else half
    return int(rarest[np.argmin(np.abs(rarest - middle))]) if len(rarest) else middle


def _alike(codes: Int64, middle: int, length: int) -> bool:
    """Return whether the calls before or after the middle equal those of the previous or next sequence."""
    compared = min(_COMPARED, length)
    for first in (middle, middle - compared + 1):
        near = codes[max(first, 0) : first + compared]
        for other in (max(first, 0) + length, max(first, 0) - length):
            if other >= 0 and np.array_equal(near, codes[other : other + len(near)]):
                return True
    return False


def _run(codes: Int64, length: int, around: int) -> tuple[int, int]:
    """Return begin and end of the run of calls around this one that equal those `length` before or after them."""
    differ = np.flatnonzero(codes[length:] != codes[:-length])
    at = int(np.searchsorted(differ, min(max(around, 0), len(codes) - length - 1)))
    first = int(differ[at - 1]) + 1 if at else 0
    last = int(differ[at]) if at < len(differ) else len(codes) - length
    return first, last + length


def _begins(starts: Bool, first: int, last: int, length: int) -> list[int]:
    """Return the calls of a run at which a sequence can begin so that each repetition begins between two slices."""
    edges = np.append(starts, True)[first : last + 1]  # after the last call the thread is between two slices too
    padded = np.append(edges, np.ones(-len(edges) % length, np.bool_))
    whole: Bool = np.logical_and.reduce(padded.reshape(-1, length), axis=0)
    begins = np.flatnonzero(whole[: max(last - first - LEAST * length + 1, 0)])
    return [first + begin for begin in begins.tolist()]


LONGEST_HEAD = 64
"""Number of ranges before a round's first call to compare."""


class LoopHeads:
    """The slices of a thread around the calls that start work or wait for it."""

    def __init__(self, trace: Trace, outermost: Int64) -> None:
        self.trace, self.outermost = trace, outermost
        s, track = trace.slices, trace.slices.track.item(int(outermost[0]))
        run = trace.track_rows(track)
        rows = np.arange(run.start, run.stop)
        self.tops = rows[(s.parent[run] == NONE) & (s.category[run] != Category.OS_CALL)]
        self.at = np.searchsorted(self.tops, outermost)
        """Index of each call's outermost slice among those of the thread."""
        self.before = np.concatenate([[NONE], self.at[:-1]])
        """Index of the previous call's outermost slice."""
        self._loaders = self._around(is_loader)
        self._optimizers = self._around(is_optimizer)
        self._loading = self._hold_loaders()

    def _around(self, wanted: Callable[[str], bool]) -> Int64:
        """Return, for each outermost slice, how many slices before it are or contain such ranges."""
        s = self.trace.slices
        rows = self.trace.where(wanted, *HOST)
        rows = rows[s.track[rows] == s.track[self.outermost[0]]]
        hold = np.zeros(len(self.tops), np.int64)
        hold[np.searchsorted(self.tops, outermost_of(self.trace, rows))] = 1
        return np.concatenate([[0], np.cumsum(hold)])

    def _hold_loaders(self) -> Bool:
        """Return which calls have a loader around or before them, after the previous call."""
        first = np.where(self.before == self.at, self.at, self.before + 1)
        held: Bool = self._loaders[self.at + 1] > self._loaders[first]
        return held

    def best_begin(self, possible: Sequence[int], last: int, length: int) -> int:
        """Return the call at which the loop begins, among those at which rounds of this length can begin."""
        loading = [begin for begin in possible if self._loading[begin + length : last : length].all()]
        for previous, begin in zip([loading[-1] - length, *loading] if loading else [], loading, strict=False):
            passed = slice(self.at[max(previous, 0)], self.at[begin])
            if self._optimizers[passed.stop] > self._optimizers[passed.start]:
                return begin
        return (loading or possible)[0]

    def bounds(self, begin: int, count: int, length: int) -> tuple[int, ...]:
        """Return when each whole round begins and, last, when the last one ends, ns.

        The first round is left out if its loader ran before the recording began.
        """
        first = begin + length * np.arange(count)
        loads = bool(self._loading[first[1:]].all())
        if loads and count > 2 and not self._loading[begin]:
            first = first[1:]
        begins = self._behind_loaders(first) if loads else self._behind_heads(first)
        return (*begins.tolist(), self._over(begins, begin + count * length, loads))

    def lie_in_rounds(self, begin: int, count: int, length: int) -> bool:
        """Return whether loaders and optimizers, if there are several, are in every round; else it is an inner loop."""
        marks = self._loaders + self._optimizers
        if marks[-1] < 2:
            return True
        edges = begin + length * np.arange(1, count)
        until = np.append(self.before[edges] + 1, self.at[begin + length * count - 1] + 1)
        return bool((np.diff(marks[until]) > 0).all())  # the first round's loader may be from before the recording

    def _behind_loaders(self, calls: Int64) -> Int64:
        """Return when the first loader before or around each call begins, else the call's own outermost slice."""
        s = self.trace.slices
        places = np.searchsorted(self._loaders, self._loaders[self.before[calls] + 1] + 1) - 1
        begins: Int64 = s.ts[self.tops[np.where(self._loading[calls], places, self.at[calls])]]
        return begins

    def _behind_heads(self, calls: Int64) -> Int64:
        """Return when the ranges begin that precede each of these calls with the same names."""
        s, at = self.trace.slices, self.at[calls]
        most = min(int((at - self.before[calls]).min()) - 1, LONGEST_HEAD)
        names = s.name[self.tops]
        alike = (len(np.unique(names[at - back])) == 1 for back in range(1, most + 1))
        begins: Int64 = s.ts[self.tops[at - sum(itertools.takewhile(bool, alike))]]
        return begins

    def _over(self, begins: Int64, end: int, loads: bool) -> int:
        """Return when the last round ends: when the next one begins, else after the usual time, or with its calls."""
        s, last = self.trace.slices, self.outermost[end - 1]
        usual = begins.item(-1) + (int(median(np.diff(begins))) if len(begins) > 1 else 0)
        over = max(int(s.end[last]), usual)
        if loads:
            behind = self._loaders[self.at[end - 1] + 1]
            if behind < self._loaders[-1]:
                return min(over, int(s.ts[self.tops[np.searchsorted(self._loaders, behind + 1) - 1]]))
        return over if end == len(self.outermost) else min(over, int(s.ts[self.outermost[end]]))


def outermost_of(trace: Trace, rows: Int64) -> Int64:
    """Return the outermost slice around each of these rows, or the row itself."""
    parent, at = trace.slices.parent, rows.astype(np.int64)
    for _ in range(DEEPEST):
        up = parent[at]
        if not (up != NONE).any():
            break
        at = np.where(up != NONE, up, at)
    return at
