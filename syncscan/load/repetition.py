"""Find the shortest sequence of calls that fills most of a trace without step marks."""

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
"""Least number of repetitions: two may be chance, and a loop is warm by its third."""
COVERED = 0.5
"""A sequence must fill more than this part of the time from the first call to the last, so that it covers the
middle."""
_COMPARED = 32
"""Calls that distinguish candidates before whole sequences are compared."""
_CANDIDATES = 64
"""Number of lengths to compare in full, which bounds the time, as each takes time proportional to the calls."""


class Repetition(msgspec.Struct, frozen=True):
    """A sequence of launches and waiting calls that repeats on one thread."""

    track: int
    calls: int
    """Number of calls in the sequence."""
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
    """Return the index of the last call in the first half of the time, which a sequence that fills most of it has."""
    ts = trace.slices.ts[calls]
    return max(int(np.searchsorted(ts, (ts[0] + ts[-1]) / 2, side="right")) - 1, 0) if len(ts) else 0


def _lengths(codes: Int64, middle: int) -> list[int]:
    """Return the possible lengths of the sequence, ascending: distances of the middle call to equal ones."""
    most = len(codes) // LEAST
    if not most:
        return []
    apart = np.abs(np.flatnonzero(codes == codes[middle]) - middle)
    candidates = distinct(apart[(apart > 0) & (apart <= most)])
    return list(itertools.islice((n for n in candidates.tolist() if _alike(codes, middle, n)), _CANDIDATES))


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
