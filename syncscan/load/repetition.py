"""From a Trace without step marks to the shortest sequence of calls that fills most of it, if there is one."""

from __future__ import annotations

import itertools

import msgspec
import numpy as np

from syncscan.facts.host_threads import program_track
from syncscan.load.loop_heads import LoopHeads, outermost_of
from syncscan.model.arrays import Bool, Int64, distinct
from syncscan.model.runtime_calls import is_synchronize
from syncscan.model.trace import CALLS, NONE, Trace

LEAST = 3
"""Times that a sequence has to be there: two alike can be chance, and a loop is warm by its third."""
COVERED = 0.5
"""It has to fill more than this part of the time from the first call to the last, so that it holds the middle one."""
_COMPARED = 32
"""Calls by which candidates are told apart before whole sequences are compared."""
_CANDIDATES = 64
"""Lengths that are compared as a whole, so that no trace takes long: each takes time that grows with its calls."""


class Repetition(msgspec.Struct, frozen=True):
    """A sequence of launches and waiting calls that repeats on one thread."""

    track: int
    calls: int
    """In the sequence."""
    bounds: tuple[int, ...]
    """When each repetition begins and, last, when the last of them is over, ns."""


def repeated_calls(trace: Trace) -> Repetition | None:
    """The shortest sequence of calls that comes `LEAST` times in a row, or more, and fills `COVERED` of the time.

    Calls that launch or wait are alike where they and what is directly around them have the same names; where nothing
    is around, the work that they started. Each repetition has to begin between two slices of its thread: a loop inside
    an op or a scope makes no steps.
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
        # The last call may be the profiler's own synchronise, as long as the device is behind: its begin counts.
        if bounds[-1] - bounds[0] > COVERED * int(trace.slices.ts[calls[-1]] - trace.slices.ts[calls[0]]):
            return Repetition(int(trace.slices.track[calls[0]]), length, bounds)
    return None


def _calls(trace: Trace) -> Int64:
    """Calls that started work or wait for it, in order, of the program's thread.

    A thread that starts nothing only watches.
    """
    s = trace.slices
    launches = trace.calls_of(trace.device_rows)
    launches = launches[launches != NONE]
    waits = np.flatnonzero(trace.is_category(*CALLS) & trace.named(is_synchronize))
    calls = np.union1d(launches, waits)
    calls = calls[np.isin(s.track[calls], distinct(s.track[launches]))]
    calls = calls[s.track[calls] == program_track(trace, s.track[calls].astype(np.int64))]
    in_order: Int64 = calls[np.argsort(s.ts[calls], kind="stable")]
    return in_order


def _codes(trace: Trace, calls: Int64) -> Int64:
    s = trace.slices
    around = s.parent[calls]
    work = trace.works_of(calls)
    other = np.where(around != NONE, s.name[around], np.where(work != NONE, s.name[work], NONE))
    return np.unique(np.stack([s.name[calls], other]), axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _middle(trace: Trace, calls: Int64) -> int:
    """Place of the last call in the first half of the time: what fills more than a half holds it."""
    ts = trace.slices.ts[calls]
    return max(int(np.searchsorted(ts, (ts[0] + ts[-1]) / 2, side="right")) - 1, 0) if len(ts) else 0


def _lengths(codes: Int64, middle: int) -> list[int]:
    """Lengths that the sequence can have, ascending: how far the middle call is from those that are like it."""
    most = len(codes) // LEAST
    if not most:
        return []
    apart = np.abs(np.flatnonzero(codes == codes[middle]) - middle)
    candidates = distinct(apart[(apart > 0) & (apart <= most)])
    return list(itertools.islice((n for n in candidates.tolist() if _alike(codes, middle, n)), _CANDIDATES))


def _alike(codes: Int64, middle: int, length: int) -> bool:
    """Whether the calls before or behind the middle are those of the sequence before, or of the one behind."""
    compared = min(_COMPARED, length)
    for first in (middle, middle - compared + 1):
        near = codes[max(first, 0) : first + compared]
        for other in (max(first, 0) + length, max(first, 0) - length):
            if other >= 0 and np.array_equal(near, codes[other : other + len(near)]):
                return True
    return False


def _run(codes: Int64, length: int, around: int) -> tuple[int, int]:
    """First and end of the calls around this one in which each is like the one `length` before or behind it."""
    differ = np.flatnonzero(codes[length:] != codes[:-length])
    at = int(np.searchsorted(differ, min(max(around, 0), len(codes) - length - 1)))
    first = int(differ[at - 1]) + 1 if at else 0
    last = int(differ[at]) if at < len(differ) else len(codes) - length
    return first, last + length


def _begins(starts: Bool, first: int, last: int, length: int) -> list[int]:
    """The calls of a run at which a sequence may begin so that each repetition begins between two slices."""
    edges = np.append(starts, True)[first : last + 1]  # behind the last call the thread is between two slices too
    padded = np.append(edges, np.ones(-len(edges) % length, np.bool_))
    whole: Bool = np.logical_and.reduce(padded.reshape(-1, length), axis=0)
    begins = np.flatnonzero(whole[: max(last - first - LEAST * length + 1, 0)])
    return [first + begin for begin in begins.tolist()]
