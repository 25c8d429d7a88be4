"""Find Python loops over parameters outside of optimizers: a few tiny ops, repeated many times."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

import msgspec
import numpy as np

from syncscan.habits.context import LAUNCH_NS, Context
from syncscan.habits.rules.optimizers import parameters, without_closures
from syncscan.model.arrays import Bool, Int64
from syncscan.model.duration import duration
from syncscan.model.habit import Change, Habit
from syncscan.model.interval import Cover, ThreadInterval
from syncscan.model.slice_names import is_optimizer
from syncscan.model.trace import Category
from syncscan.rules.pages import advice_of

LEAST = 50
"""Least number of rounds."""
LONGEST = 8
"""Most ops per round."""
FEWER, MORE = 0.8, 3.0
"""Rounds per trained parameter: fewer if some are left out, more with frozen ones and buffers."""
SMALL_NS = 20_000
"""Longest mean kernel worth batching; launches of longer ones are hidden behind them."""
EACH = frozenset(
    f"aten::{name}"
    for name in (
        "mul_ add_ sub_ div_ lerp_ copy_ zero_ clamp_ clamp_min_ clamp_max_ addcmul_ addcdiv_ sqrt_ neg_ norm "
        "linalg_vector_norm clone"
    ).split()
)
"""Ops that change a tensor in place, or take its norm or a copy, and that have a `torch._foreach_…`."""
BESIDE = frozenset(
    f"aten::{name}" for name in "mul add sub div lerp square pow sqrt abs neg sign maximum detach alias to".split()
)
"""Ops that may accompany such an op in a round."""


class ParameterLoop(msgspec.Struct, frozen=True, kw_only=True):
    """A loop that every step has: where it runs, the ops of a round, and the number of rounds per step."""

    intervals: list[ThreadInterval]
    first: list[int]
    """Row of its first op, per step."""
    ops: tuple[str, ...]
    rounds: float
    launches: float
    mean_ns: float
    """Mean length of a kernel, ns."""
    took_us: float
    """Host time per step."""


def parameter_loops(context: Context) -> list[ParameterLoop]:
    """Return loops in most steps with about a round per parameter that take notable time for small kernels.

    Without a backward pass, the number of parameters is unknown, and there are none.
    """
    trained = parameters(context)
    if trained * MORE < LEAST:
        return []
    repeats: defaultdict[tuple[str, ...], list[tuple[int, int, int]]] = defaultdict(list)
    rows = _outer_ops(context)
    for first, last, period in _repetitions(context, rows):
        rounds = (last - first) // period
        names = tuple(context.trace.name(row) for row in rows[first : first + period].tolist())
        over_parameters = EACH.intersection(names) and EACH.union(BESIDE).issuperset(names)
        if over_parameters and FEWER * trained <= rounds <= MORE * trained:
            repeats[names].append((int(rows[first]), int(rows[last - 1]), rounds))
    loops = (_loop(context, names, places) for names, places in repeats.items())
    return [loop for loop in loops if loop is not None]


def _loop(context: Context, names: tuple[str, ...], places: list[tuple[int, int, int]]) -> ParameterLoop | None:
    """Return the loop at these places if most steps have it, it never waits, and each round launches a small kernel."""
    s = context.trace.slices
    intervals = [ThreadInterval(int(s.track[a]), int(s.ts[a]), int(s.end[b])) for a, b, _ in places]
    work = np.concatenate([context.launched(interval) for interval in intervals])
    steps = {int(context.step_of(begin)) for _, begin, _ in intervals}
    rounds, length = sum(count for _, _, count in places), sum(i.end - i.begin for i in intervals)
    if 2 * len(steps) <= context.count or len(work) < rounds or length > LAUNCH_NS * len(work):
        return None
    mean_ns = float(s.dur[work].mean())
    calls = np.array(sorted(context.sync_calls), np.int64)
    waits = any(((s.ts[calls] >= begin) & (s.ts[calls] < end)).any() for _, begin, end in intervals)
    if waits or mean_ns > SMALL_NS:
        return None
    took = length / context.count / 1e3 * context.host_scale
    surely = context.step.unprofiled_us is not None or context.launch_bound
    if not surely or took < context.notable_us:
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


def _outer_ops(context: Context) -> Int64:
    """Return the rows of ops on the steps' threads in no other op and no optimizer's scope, in time order."""
    s, trace = context.trace.slices, context.trace
    tracks = [step.track for step in trace.steps]
    runs = [trace.track_rows(track) for track in sorted(set(tracks))]
    optimizers = without_closures(context, context.rows(Category.ANNOTATION, is_optimizer))
    outer: list[Int64] = []
    for track, run in zip(sorted(set(tracks)), runs, strict=True):
        ops = run.start + np.flatnonzero(s.category[run] == int(Category.CPU_OP))
        ops = ops[context.inside(s.ts[ops])]
        ops = ops[_in_no_other(s.ts.take(ops), s.end.take(ops))]
        scopes = np.array([row for row in optimizers if s.track[row] == track], np.int64)
        outer.append(ops[~Cover(s.ts[scopes], s.end[scopes]).holds(s.ts[ops])])
    joined = np.concatenate(outer)
    ordered: Int64 = joined[np.argsort(s.ts[joined], kind="stable")]
    return ordered


def _in_no_other(begins: Int64, ends: Int64) -> Bool:
    """Return which of these properly nested, ordered intervals lie in none before them."""
    outer = np.ones(len(begins), np.bool_)
    np.greater_equal(begins[1:], np.maximum.accumulate(ends)[:-1], out=outer[1:])
    return outer


def _repetitions(context: Context, rows: Int64) -> Iterator[tuple[int, int, int]]:
    """Yield begin, end and round length of each repeated sequence of ops in these rows.

    The shortest round counts, and repetitions don't overlap.
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


STAY = (0.1, 0.0, 0.4)
"""Remaining part of its host time when batched: likely, with the most and with the least saved. The most is as
recorded, since recording lengthens some ops more than others (measured: 1.2 to 1.5 of a recorded 2.4 ms, H200, torch
2.11)."""


def parameter_loop(context: Context) -> Iterable[Habit]:
    """Yield rounds of ops on single tensors that each step repeats about once per parameter."""
    for loop in context.cached(parameter_loops):
        yield context.habit(
            advice_of("parameter-loop"), loop.first, loop.took_us, _evidence(context, loop), _changes(loop)
        )


def _changes(loop: ParameterLoop) -> list[Change]:
    return [
        Change(host=tuple(_without(interval, stay) for interval in loop.intervals), unstretched=not stay)
        for stay in STAY
    ]


def _without(interval: ThreadInterval, stay: float) -> ThreadInterval:
    return interval._replace(begin=interval.begin + int(stay * (interval.end - interval.begin)))


def _evidence(context: Context, loop: ParameterLoop) -> list[str]:
    return [
        f"{' '.join(name.removeprefix('aten::') for name in loop.ops)}: {loop.rounds:.0f} rounds per step, "
        f"{loop.launches:.0f} kernels of {duration(loop.mean_ns / 1e3)} on average",
        f"they take {duration(loop.took_us)} of the host ({loop.took_us / context.period_us:.0%} of the step)",
    ]
