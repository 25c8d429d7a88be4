"""From a Context to its Python loops over parameters: a few tiny ops, again and again, outside of optimizers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import msgspec
import numpy as np

from syncscan.habits.backward_passes import parameters
from syncscan.habits.closures import without_closures
from syncscan.habits.context import LAUNCH_NS, Context
from syncscan.model.arrays import Bool, Int64
from syncscan.model.interval import ThreadInterval
from syncscan.model.names import is_optimizer
from syncscan.model.trace import Category

LEAST = 50
"""So many rounds at least."""
LONGEST = 8
"""Ops in one round at most."""
FEWER, MORE = 0.8, 3.0
"""Rounds for each parameter that is trained: fewer where some are left out, more with frozen ones and buffers."""
SMALL_NS = 20_000
"""Kernels that last longer on average aren't worth batching: their launches hide behind them."""
EACH = frozenset(
    f"aten::{name}"
    for name in (
        "mul_ add_ sub_ div_ lerp_ copy_ zero_ clamp_ clamp_min_ clamp_max_ addcmul_ addcdiv_ sqrt_ neg_ norm "
        "linalg_vector_norm clone"
    ).split()
)
"""Ops that change a tensor in place, or take its norm or a copy, and for which there is a `torch._foreach_…`."""
BESIDE = frozenset(
    f"aten::{name}" for name in "mul add sub div lerp square pow sqrt abs neg sign maximum detach alias to".split()
)
"""What may stand beside such an op in a round."""


class ParameterLoop(msgspec.Struct, frozen=True, kw_only=True):
    """The same loop in each step: where it runs, what a round of it does, and how often it goes round in a step."""

    intervals: list[ThreadInterval]
    first: list[int]
    """Row of its first op, a step."""
    ops: tuple[str, ...]
    rounds: float
    launches: float
    """A step."""
    mean_ns: float
    """Of one kernel."""
    took_us: float
    """Of the host, a step; at the least where the step's own time isn't known."""


def parameter_loops(context: Context) -> list[ParameterLoop]:
    """Loops that most steps hold, that go round about as often as there are parameters, and take a notable time to
    launch small kernels.

    Without a backward pass nobody knows how many parameters there are: then there are none.
    """
    trained = parameters(context)
    if trained * MORE < LEAST:
        return []
    found: defaultdict[tuple[str, ...], list[tuple[int, int, int]]] = defaultdict(list)
    rows = _outer_ops(context)
    for first, last, period in _repetitions(context, rows):
        rounds = (last - first) // period
        names = tuple(context.trace.name(row) for row in rows[first : first + period].tolist())
        if _over_parameters(names) and FEWER * trained <= rounds <= MORE * trained:
            found[names].append((int(rows[first]), int(rows[last - 1]), rounds))
    loops = (_loop(context, names, places) for names, places in found.items())
    return [loop for loop in loops if loop is not None]


def _over_parameters(names: tuple[str, ...]) -> bool:
    return all(name in EACH or name in BESIDE for name in names) and any(name in EACH for name in names)


def _loop(context: Context, names: tuple[str, ...], places: list[tuple[int, int, int]]) -> ParameterLoop | None:
    """The loop at these places, if most steps hold it, nothing waits in it, and it launches a small kernel a round."""
    s = context.trace.slices
    intervals = [ThreadInterval(int(s.track[a]), int(s.ts[a]), int(s.end[b])) for a, b, _ in places]
    work = np.concatenate([context.launched(interval) for interval in intervals])
    rounds, length = sum(count for _, _, count in places), sum(i.end - i.begin for i in intervals)
    if 2 * len(_steps_of(context, intervals)) <= context.count or len(work) < rounds or length > LAUNCH_NS * len(work):
        return None
    mean_ns = float(s.dur[work].mean())
    calls = np.array(sorted(context.sync_calls), np.int64)
    waits = any(((s.ts[calls] >= begin) & (s.ts[calls] < end)).any() for _, begin, end in intervals)
    if waits or mean_ns > SMALL_NS:
        return None
    took = length / context.count / 1e3 * context.host_scale
    if context.step.unprofiled_us is None:
        took = min(took, context.least_us(len(work) / context.count, mean_ns, intervals))
    if took < context.notable_us:
        return None
    return ParameterLoop(
        intervals=intervals,
        first=[first for first, _, _ in places],
        ops=names,
        rounds=rounds / context.count,
        launches=len(work) / context.count,
        mean_ns=mean_ns,
        took_us=took,
    )


def _steps_of(context: Context, intervals: list[ThreadInterval]) -> set[int]:
    return {int(context.step_of(begin)) for _, begin, _ in intervals}


def _outer_ops(context: Context) -> Int64:
    """Rows of the ops on the steps' threads that lie in no other op and in no optimizer's scope, in time order."""
    s, trace = context.trace.slices, context.trace
    tracks = [step.track for step in trace.steps]
    runs = [trace.track_rows(track) for track in sorted(set(tracks))]
    optimizers = without_closures(context, context.rows(Category.ANNOTATION, is_optimizer))
    outer: list[Int64] = []
    for track, run in zip(sorted(set(tracks)), runs, strict=True):
        mine = run.start + np.flatnonzero(s.category[run] == int(Category.CPU_OP))
        mine = mine[context.inside(s.ts[mine])]
        mine = mine[_in_no_other(s.ts.take(mine), s.end.take(mine))]
        scopes = np.array([row for row in optimizers if s.track[row] == track], np.int64)
        outer.append(mine[~_inside(s.ts[mine], s.ts[scopes], s.end[scopes])])
    found = np.concatenate(outer)
    ordered: Int64 = found[np.argsort(s.ts[found], kind="stable")]
    return ordered


def _in_no_other(begins: Int64, ends: Int64) -> Bool:
    """Which of these properly nested intervals, in order, lie in none before them."""
    outer = np.ones(len(begins), np.bool_)
    np.greater_equal(begins[1:], np.maximum.accumulate(ends)[:-1], out=outer[1:])
    return outer


def _inside(at: Int64, begins: Int64, ends: Int64) -> Bool:
    """Which of these times lie in one of these disjoint intervals, in order."""
    if not len(begins):
        return np.zeros(len(at), np.bool_)
    place = np.searchsorted(begins, at, side="right") - 1
    inside: Bool = (place >= 0) & (at < ends[place])
    return inside


def _repetitions(context: Context, rows: Int64) -> Iterator[tuple[int, int, int]]:
    """Places in these rows at which a round of ops begins that comes again and again, the end, and the round's length.

    The shortest round counts, and what lies in one repetition is in no other.
    """
    s = context.trace.slices
    step, names = context.step_of(s.ts[rows]), s.name[rows]
    taken = np.zeros(len(rows), np.bool_)
    for period in range(1, min(LONGEST, len(rows) - 1) + 1):
        same = (
            (names[period:] == names[:-period])
            & (step[period:] == step[:-period])
            & ~(taken[period:] | taken[:-period])
        )
        breaks = np.flatnonzero(np.concatenate([[True], ~same, [True]]))
        lengths = np.diff(breaks) - 1
        long = lengths >= (LEAST - 1) * period
        for first, length in zip(breaks[:-1][long].tolist(), lengths[long].tolist(), strict=True):
            end = first + period + length // period * period
            taken[first:end] = True
            yield first, end, period
