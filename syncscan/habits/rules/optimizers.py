"""Find optimizers and loops over parameters that launch many small kernels, and gradients that are filled with zeros.

Also what other rules ask of optimizers: backward passes, the parameters that they train, scopes without closures.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
from msgspec.structs import replace

from syncscan.habits.context import LAUNCH_NS, Context
from syncscan.model.arrays import Bool, Int64, distinct
from syncscan.model.duration import duration
from syncscan.model.habit import Change, Habit
from syncscan.model.interval import Cover, ThreadInterval
from syncscan.model.slice_names import is_backward, is_gradient, is_optimizer, is_optimizer_step, is_optimizer_zero_grad
from syncscan.model.trace import Category


def backward_passes(context: Context) -> list[Int64]:
    """Return the rows that add to a parameter's gradient, per backward pass, in time order.

    Between two passes the steps' thread runs ops of its own; during one it waits for autograd's. Passes on the steps'
    own thread, as on a CPU, can't be distinguished and are left out.
    """
    s, trace, own = context.trace.slices, context.trace, sorted({step.track for step in context.trace.steps})
    gradients = trace.where(is_gradient, Category.CPU_OP)
    gradients = gradients[~np.isin(s.track[gradients], own)]
    gradients = gradients[np.argsort(s.ts[gradients], kind="stable")]
    if not len(gradients):
        return []
    ops = [s.ts[run][s.category[run] == int(Category.CPU_OP)] for run in map(trace.track_rows, own)]
    forward = np.sort(np.concatenate(ops)) if len(ops) > 1 else ops[0]
    cuts = np.flatnonzero(np.diff(np.searchsorted(forward, s.ts[gradients]))) + 1
    return np.split(gradients, cuts)


def parameters(context: Context) -> int:
    """Return how many parameters the program trains: as many as its fullest backward pass adds to; 0 without one."""
    return max((len(rows) for rows in context.cached(backward_passes)), default=0)


def without_closures(context: Context, rows: list[int]) -> list[int]:
    """Return those of these optimizer slices in which no backward pass runs and no other thread launches.

    Under Lightning, a whole training step runs inside of `Optimizer.step`.
    """
    if not rows:
        return []
    s, calls, slices = context.trace.slices, context.launch_calls, np.array(rows, np.int64)
    backward = context.trace.where(is_backward, Category.CPU_OP)
    alone = _none_in(np.sort(s.ts[backward]), s.ts[slices], s.end[slices])
    for track in distinct(s.track[slices]).tolist():
        own, elsewhere = s.track[slices] == track, s.ts[calls[s.track[calls] != track]]
        alone[own] &= _none_in(elsewhere, s.ts[slices[own]], s.end[slices[own]])
    selected: list[int] = slices[alone].tolist()
    return selected


def _none_in(times: Int64, begins: Int64, ends: Int64) -> Bool:
    """Return which of these intervals contain none of the ascending times."""
    none: Bool = np.searchsorted(times, begins) == np.searchsorted(times, ends)
    return none


MANY, SMALL_NS, BATCHED = 200, 20_000, 0.1
"""Least launches per step, longest mean kernel, and largest share of batched kernels of such an optimizer."""


def _work(context: Context, rows: list[int]) -> Int64:
    return np.concatenate([np.zeros(0, np.int64), *context.launched_by(rows)])


def _additions(context: Context, scopes: list[int]) -> list[int]:
    """Return the `add_`s that add a gradient to zeros: those of the first backward pass after each of these scopes."""
    s, trace = context.trace.slices, context.trace
    passes = context.cached(backward_passes)
    begins = np.array([s.ts[rows[0]] for rows in passes], np.int64)
    firsts = distinct(np.searchsorted(begins, s.end[scopes]))
    gradients = [passes[first] for first in firsts.tolist() if first < len(passes)]
    adds = trace.where(lambda name: name == "aten::add_", Category.CPU_OP)
    adds = adds[np.isin(s.parent[adds], np.concatenate([np.zeros(0, np.int64), *gradients]))]
    adds = adds[context.inside(s.ts[adds])]
    return [int(row) for row in adds[np.argsort(s.ts[adds], kind="stable")]]


STAY = (0.1, 0.0, 0.4)
"""Remaining part of its host time when fused: likely, with the most and with the least saved."""


def optimizer_loop(context: Context) -> list[Habit]:
    """Return the optimizer's steps if they are many small kernels that aren't batched and certainly bound the step.

    The second of the changes takes them out as a whole.
    """
    s, trace = context.trace.slices, context.trace
    steps = context.outermost(context.rows(Category.ANNOTATION, is_optimizer_step, main=False))
    rows = without_closures(context, steps)
    work = _work(context, rows)
    if len(work) < MANY * context.count:
        return []
    together = trace.called(work, lambda n: "multi_tensor_apply" in n or "fused" in n.lower())
    mean_ns = float(s.dur[work].mean())
    if np.count_nonzero(together) > BATCHED * len(work) or mean_ns > SMALL_NS:
        return []
    took = context.length_us(rows) * context.host_scale
    if not context.launch_bound or took < 5 * context.notable_us:
        return []
    evidence = [
        f"{len(work) / context.count:.0f} kernels per step of {duration(mean_ns / 1e3)} on average",
        f"they take {duration(took)} of the host ({took / context.period_us:.0%} of the step)",
    ]
    changes = [Change(host=tuple(context.interval(r, stay) for r in rows)) for stay in STAY]
    return [context.habit("optimizer-loop", rows, took, evidence, changes)]


def gradients_zeroed(context: Context) -> list[Habit]:
    """Return the scopes of `Optimizer.zero_grad` if they launch work in every step and take a notable time.

    The additions to zeros go too, unless gradients are views of buckets, so the lower bound, the last of the changes,
    keeps them. Later passes of accumulated gradients add to real gradients and stay. Recording lengthens some ops more
    than others, so the upper bound is all of it as recorded (measured: 1.4 to 2.0 of a recorded 2.7 ms, H200, torch
    2.11).
    """
    rows = np.array(context.rows(Category.ANNOTATION, is_optimizer_zero_grad), np.int64)
    scopes: list[int] = rows[context.launching(rows)].tolist()
    if len(scopes) < context.count:
        return []
    additions = _additions(context, scopes)
    fills, sums = (_work(context, launching).tolist() for launching in (scopes, additions))
    host_us = context.length_us([*scopes, *additions]) * context.host_scale
    device_us = context.length_us([*fills, *sums])
    if host_us + device_us < context.notable_us:
        return []
    adding = f", the next backward pass {len(sums) / context.count:.0f} that add to zeros" if additions else ""
    evidence = (
        f"zero_grad launches {len(fills) / context.count:.0f} kernels per step{adding}: {duration(host_us)} of host "
        f"time, {duration(device_us)} of device time"
    )
    gain = _without(context, [*scopes, *additions], [*fills, *sums])
    more = [gain, replace(gain, unstretched=True)] if additions else []
    changes = [*more, _without(context, scopes, fills)]
    return [context.habit("gradients-zeroed", scopes, host_us + device_us, [evidence], changes)]


def _without(context: Context, rows: list[int], work: list[int]) -> Change:
    return Change(host=tuple(map(context.interval, rows)), work=tuple((row, 0.0) for row in work))


LEAST_ROUNDS = 50
"""Least number of rounds."""
LONGEST = 8
"""Most ops per round."""
FEWER, MORE = 0.8, 3.0
"""Rounds per trained parameter: fewer if some are left out, more with frozen ones and buffers."""
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


def parameter_loops(context: Context) -> list[Habit]:
    """Return loops in most steps with about a round of ops on single tensors per parameter, for small kernels.

    Without a backward pass, the number of parameters is unknown, and there are none. The second of the changes takes a
    loop out as a whole.
    """
    trained = parameters(context)
    if trained * MORE < LEAST_ROUNDS:
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


def _loop(context: Context, names: tuple[str, ...], places: list[tuple[int, int, int]]) -> Habit | None:
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
    evidence = [
        f"{' '.join(name.removeprefix('aten::') for name in names)}: {rounds / context.count:.0f} rounds per step, "
        f"{len(work) / context.count:.0f} kernels of {duration(mean_ns / 1e3)} on average",
        f"they take {duration(took)} of the host ({took / context.period_us:.0%} of the step)",
    ]
    changes = [
        Change(
            host=tuple(i._replace(begin=i.begin + int(stay * (i.end - i.begin))) for i in intervals),
            unstretched=not stay,
        )
        for stay in STAY
    ]
    return context.habit("parameter-loop", [first for first, _, _ in places], took, evidence, changes)


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
        long = lengths >= (LEAST_ROUNDS - 1) * period
        for first, length in zip(breaks[:-1][long].tolist(), lengths[long].tolist(), strict=True):
            end = first + period + length // period * period
            taken[first:end] = True
            yield first, end, period
