"""Yield outermost scopes before the first op with gradients that have a notable part of device time.

A scope that communicates gathers weights or waits for other ranks, and isn't a frozen part.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable

import numpy as np

from syncscan.habits.context import Context
from syncscan.model.arrays import among, numbered
from syncscan.model.duration import duration
from syncscan.model.finding import Confidence
from syncscan.model.habit import Change, Habit
from syncscan.model.interval import ThreadInterval
from syncscan.model.slice_names import is_collective, is_collective_kernel, is_loader, is_step
from syncscan.model.trace import NONE, Category
from syncscan.rules.pages import advice_of

SHARE = 0.1
"""Least part of device time that must lie in the scope."""
BUSY = 0.75
"""Least part of the step in which the device must work; a step that waits for its host gains nothing by a second
stream."""
_NEVER = np.iinfo(np.int64).max
TORCHS = re.compile(r"(nccl|rccl|gloo|ucc|mpi|xccl|hccl):|Optimizer\.|(Fully|FSDP|DistributedData|DataParallel)|## ")
"""Scopes that torch itself creates around communication, optimizers and wrappers of the trained module."""


def find(context: Context) -> Iterable[Habit]:
    s, trace = context.trace.slices, context.trace
    if context.step.device_busy_us < BUSY * context.period_us:
        return
    first = _first_trained(context)
    if len(first) < context.count:
        return
    rows = context.outermost(context.rows(Category.ANNOTATION, _is_programs))
    starts, trained = [begin for begin, _ in first], list(first.values())
    begins, ends = s.ts[rows].tolist(), s.end[rows].tolist()
    ahead = [r for r, begin, end in zip(rows, begins, ends, strict=True) if _before(starts, trained, begin, end)]
    for name in dict.fromkeys(trace.name(r) for r in ahead):
        same_name = [r for r in ahead if trace.name(r) == name]
        work = np.concatenate(context.launched_by(same_name))
        kernels = work[s.category[work] == int(Category.KERNEL)].tolist()
        took = context.length_us(kernels)
        other_work = context.step.device_busy_us - took
        if (
            took < SHARE * context.step.device_busy_us
            or len(same_name) < context.count
            or trace.called(work, is_collective_kernel).any()
            or not _same_stream(context, kernels, first)
        ):
            continue
        yield context.habit(
            advice_of("frozen-scope-in-line"),
            same_name,
            min(took, other_work),
            [
                f"scope {name!r} launches {duration(took)} of device work per step before anything is trained, "
                f"and the rest {duration(other_work)} on the same stream",
            ],
            [
                Change(ahead=tuple(context.interval(r) for r in same_name)),
                Change(ahead=tuple(context.interval(r) for r in same_name)),
                Change(),
            ],
            Confidence.MEDIUM,
        )


def _is_programs(name: str) -> bool:
    """Return whether a scope of this name may be the program's own."""
    return not (is_step(name) or is_loader(name) or is_collective(name) or TORCHS.match(name))


def _before(starts: list[int], trained: list[int], begin: int, end: int) -> bool:
    """Return whether this interval lies in a step before anything is trained in it; both lists are sorted."""
    k = bisect_right(starts, begin) - 1
    return k >= 0 and end <= trained[k]


def _first_trained(context: Context) -> dict[tuple[int, int], int]:
    """Return for each training step when its first op with a node in the backward graph begins.

    An op without a node carries the number of the next node. So of the ops with a number that appears in backward, the
    last one created the node.
    """
    s = context.trace.slices
    ops, _ = context.trace.rows_of(Category.CPU_OP)
    ops = ops[s.sequence.take(ops) != NONE]
    back = s.fwd_thread[ops] > 0
    forward = ops[~back]
    forward = forward[among(s.sequence[forward], np.sort(s.sequence[ops[back]]))]
    numbers, which = numbered(s.sequence[forward])
    last = np.zeros(len(numbers), np.int64)
    np.maximum.at(last, which, s.ts[forward])
    last.sort()
    next_ = np.append(last, _NEVER)[np.searchsorted(last, context.begins)].tolist()
    return {(begin, end): at for (begin, end), at in zip(context.steps, next_, strict=True) if at < end}


def _same_stream(context: Context, kernels: list[int], first: dict[tuple[int, int], int]) -> bool:
    """Return whether the scope's kernels and those of the trained part share a stream."""
    s = context.trace.slices
    streams = {int(s.stream[k]) for k in kernels}
    (_, end), at = next(iter(first.items()))
    trained = {int(s.stream[w]) for w in context.launched(ThreadInterval(NONE, at, end), any_thread=True)}
    return bool(streams & trained)
