"""Find steps that wait for their input: a DataLoader without workers or with too few, copies and pinning in the way."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from syncscan.facts.loader_samples import loader_share
from syncscan.habits.context import NOTABLE, Context
from syncscan.model.arrays import Int64, distinct
from syncscan.model.duration import duration
from syncscan.model.habit import Basis, Change, Habit
from syncscan.model.slice_names import is_loader, is_loader_with_workers, is_loader_without_workers
from syncscan.model.trace import NONE, Category, Trace


def _waiting_for(
    context: Context, kind: Callable[[str], bool], rule: str, took: str, remaining: Sequence[float]
) -> Iterable[Habit]:
    """Yield the habit if such a loader's scopes on the steps' thread leave the device idle for a notable time.

    `took` is the sentence for how long it takes, with `{ms}` for the figure; `remaining` are parts of its time that may
    remain: the likely one, with the most saved, with the least saved.
    """
    rows = context.outermost(context.rows(Category.ANNOTATION, kind))
    idle = context.idle_us(rows) * context.host_scale
    if not rows or idle < 5 * context.notable_us:
        return
    ms = context.length_us(rows) * context.host_scale / 1e3
    evidence = [
        took.format(ms=duration(1e3 * ms)),
        f"the device idles for {duration(idle)} of it, {idle / context.period_us:.0%} of the step",
    ]
    changes = [Change(host=tuple(context.interval(r, keep) for r in rows)) for keep in remaining]
    yield context.habit(rule, rows, idle, evidence, changes)


WORKERS = 4
"""Number of workers that the likely gain assumes."""


def no_workers(context: Context) -> Iterable[Habit]:
    return _waiting_for(
        context,
        is_loader_without_workers,
        "loader-no-workers",
        "the loader takes {ms} per step on the step's own thread",
        (1 / WORKERS, NOTABLE, 0.5),
    )


REMAINING = 0.1, 0.0, 0.9
"""Parts of the wait that remain with a worker for each core: the likely one, the least and the most, as cores may be
used up. Chosen by three programs: of `loader.few` 7 % remained, of pytorch/examples' `vae` 4 % and of its `mnist` 17 %
(benchmarks/public)."""
BURSTS = 1.1
"""Factor by which steps sampled without the profiler wait longer than recorded ones, from which those tell too
little."""


def few_workers(context: Context) -> Iterable[Habit]:
    """Yield the habit by samples where these say that most steps wait longer for their batch than the recorded ones."""
    waits, rows = _sampled_us(context), context.rows(Category.ANNOTATION, is_loader_with_workers)
    if rows and waits >= max(5 * context.notable_us, BURSTS * context.length_us(rows) * context.host_scale):
        return [_by_samples(context, rows, waits)]
    took = "the step waits {ms} for its next batch"
    return _waiting_for(context, is_loader_with_workers, "loader-few-workers", took, REMAINING)


def _sampled_us(context: Context) -> float:
    return loader_share(context.trace) * context.period_us


def _by_samples(context: Context, rows: Sequence[int], waits: float) -> Habit:
    share = waits / context.period_us
    evidence = (
        f"the step waits {duration(waits)} for its next batch ({share:.0%} of it), by samples without the profiler"
    )
    habit = context.habit("loader-few-workers", rows, waits, [evidence])
    likely, most, least = ((1.0 - remaining) * waits for remaining in REMAINING)
    return habit.gaining(likely, (least, most), Basis.SAMPLES, context.period_us)


FACTORY = re.compile(
    r"aten::(rand|randn|randint|randperm|zeros|ones|full|arange|linspace|eye|tensor|normal|bernoulli|"
    r"(rand|randn|randint|zeros|ones|full)_like|uniform_|normal_|random_|fill_|stack|cat|from_file)"
)
"""Ops that create a tensor's content."""
_NEAR = 400
"""Rows before a copy's op to search; an op that builds a tensor contains fewer slices."""


def copies_to_device(context: Context, kind: str) -> list[tuple[int, int]]:
    """Return call and device's row of each copy from `Pageable` or `Pinned` memory on the steps' own threads."""
    s, trace = context.trace.slices, context.trace
    tracks = {step.track for step in trace.steps}
    rows = trace.where(lambda n: n.startswith("Memcpy HtoD") and kind in n, Category.MEMCPY)
    calls = trace.calls_of(rows)
    known = (calls != NONE) & context.inside(s.ts[calls]) & np.isin(s.track[calls], list(tracks))
    rows, calls = rows[known], calls[known]
    order = np.argsort(s.ts[calls], kind="stable")
    return list(zip(calls[order].tolist(), rows[order].tolist(), strict=True))


def _megabytes(context: Context, rows: Sequence[int]) -> float:
    """Return the size of these copies per step."""
    return float(np.maximum(context.trace.slices.bytes[list(rows)], 0).sum()) / context.count / 1e6


def copying(context: Context, call: int) -> int:
    """Return the row of what copies: the outermost op around a runtime call, or the call itself without one."""
    op = context.paths.outermost_op(call)
    return call if op == NONE else op


def factories(context: Context) -> dict[int, int]:
    """Return for calls that copy pageable memory the row of the op that built the tensor on the host, if one did.

    It is the op right before the copy's, with no other op between, if it launched nothing.
    """
    calls = np.array([call for call, _ in context.cached(copies_to_device, "Pageable")], np.int64)
    own = np.array(list(map(context.paths.outermost_op, calls.tolist())), np.int64)
    calls, own = calls[own != NONE], own[own != NONE]
    before = _ops_before(context.trace, own)
    calls, before = calls[before != NONE], before[before != NONE]
    built = context.trace.called(before, FACTORY.fullmatch)
    built[built] = ~context.launching(before[built])
    return dict(zip(calls[built].tolist(), before[built].tolist(), strict=True))


def _ops_before(trace: Trace, rows: Int64, near: int = _NEAR) -> Int64:
    """Return for each op the row of the op that ended last before it under the same parent, or NONE.

    Only the `near` rows before each op are searched.
    """
    s, parent = trace.slices, trace.slices.parent[rows]
    first = np.array([trace.track_rows(track).start for track in range(len(trace.tracks))], np.int64)
    least = np.maximum(np.maximum(first[s.track[rows]], parent + 1), rows - near)  # rows around it come before it
    previous, left, at = np.full(len(rows), NONE, np.int64), np.arange(len(rows)), rows - 1
    while len(left):
        reached = at >= least[left]
        left, at = left[reached], at[reached]
        it_is = (s.parent[at] == parent[left]) & (s.category[at] == int(Category.CPU_OP))
        previous[left[it_is]] = at[it_is]
        left, at = left[~it_is], at[~it_is] - 1
    return previous


def host_built_tensor(context: Context) -> Iterable[Habit]:
    """Yield factory ops without device work that are followed by a pageable copy to the device in every step."""
    factory = context.cached(factories)
    copies = {call: row for call, row in context.cached(copies_to_device, "Pageable") if call in factory}
    for group in context.by_scope(copies):
        built = [factory[call] for call in group]
        making = context.length_us(built) * context.host_scale
        unsaid = [call for call in group if call not in context.sync_calls]
        sending = context.length_us(unsaid)
        if making + sending < context.notable_us or len(group) < context.count:
            continue
        effect = f"blocks the host for {duration(sending)}" if unsaid else "is a sync, listed as one"
        removed = [*built, *(copying(context, call) for call in unsaid)]
        yield context.habit(
            "host-built-tensor",
            group,
            making + sending,
            [
                f"{context.trace.name(built[0])} fills it on the host in {duration(making)} per step",
                f"copying its {_megabytes(context, [copies[call] for call in group]):.1f} MB {effect}",
            ],
            [Change(host=tuple(context.interval(row) for row in removed))],
        )


def inline_pin(context: Context) -> Iterable[Habit]:
    """Yield `pin_memory` that takes a notable time on the steps' own thread, outside of a loader."""
    rows = context.outermost(context.rows(Category.CPU_OP, lambda n: n in ("aten::pin_memory", "aten::_pin_memory")))
    own = [r for r in rows if not any(map(is_loader, context.scope(r)))]
    for group in context.by_scope(own):
        took = context.length_us(group) * context.host_scale
        if took < context.notable_us or len(group) < context.count:
            continue
        yield context.habit(
            "inline-pin",
            group,
            took,
            [f"pin_memory takes {duration(took)} per step on the thread that launches the work"],
            [Change(host=tuple(context.interval(r) for r in group))],
        )


def copy_in_line(context: Context) -> Iterable[Habit]:
    """Yield pinned copies on a stream with kernels that take a notable part of a device-bound step."""
    s = context.trace.slices
    if context.step.device_busy_us < 0.75 * context.period_us:
        return
    work = context.trace.device_rows
    computes = ~context.trace.called(work, lambda n: n.startswith("Mem"))
    computing = set(distinct(s.stream[work[computes]]).tolist())
    copies = context.cached(copies_to_device, "Pinned")
    in_line = [(call, row) for call, row in copies if int(s.stream[row]) in computing]
    rows = [row for _, row in in_line]
    if context.length_us(rows) < 5 * context.notable_us:  # without overlap they take no longer
        return
    alone = sum(_alone(context, row) for row in rows) / context.count / 1e3
    if alone < 5 * context.notable_us:
        return
    yield context.habit(
        "copy-in-line",
        [call for call, _ in in_line],
        alone,
        [
            f"{len(rows) / context.count:.0f} copies per step, {_megabytes(context, rows):.1f} MB, take "
            f"{duration(alone)} while no kernel runs",
        ],
        [Change(work=tuple((row, 0.0) for row in rows)), Change(), Change(work=tuple((row, 0.3) for row in rows))],
    )


def _alone(context: Context, row: int) -> int:
    """Return how long nothing else ran on the device during this copy, in ns."""
    s = context.trace.slices
    begin, end = int(s.ts[row]), int(s.end[row])
    rest = [st for st in context.work.streams(int(s.device[row])) if st != int(s.stream[row])]
    beside = sum(context.work.of(int(s.device[row]), st).busy.between(begin, end) for st in rest)
    return max(0, end - begin - beside)
