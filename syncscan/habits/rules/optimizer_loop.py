"""An optimizer that launches kernels for one parameter after the other."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from syncscan.habits.context import HELD, LEAST_NS, Context
from syncscan.model.habit import Advice, Area, Change, Habit
from syncscan.model.names import is_optimizer_step
from syncscan.model.trace import Category

ADVICE = Advice(
    rule="optimizer-loop",
    area=Area.DEVICE,
    title="The optimizer launches small kernels for each parameter in turn",
    why="Each launch costs the host some µs, however little there is to compute; the device waits for them.",
    fix="fused=True where the optimizer has it, else foreach=True (the default on a GPU unless switched off).",
    when_fine="When parameters are few and large, or the step is bound by the device anyway.",
)
MANY, SMALL_NS, BATCHED = 200, 20_000, 0.1
"""From so many launches a step, shorter than this on average, with at most this part of them batched."""
THOUSANDS = 1000
"""From so many on, their number alone is proof."""
STAY = (0.1, 0.0, 0.4)
"""What is left of its host time when fused: likely, and when most and least is saved."""


def find(context: Context) -> Iterable[Habit]:
    """Optimizer steps of many small kernels that aren't batched, and hold the step for sure."""
    s, trace = context.trace.slices, context.trace
    rows = context.outermost(context.rows(Category.ANNOTATION, is_optimizer_step, main=False))
    work = np.concatenate([np.zeros(0, np.int64), *(context.launched(context.interval(row)) for row in rows)])
    if len(work) < MANY * context.count:
        return
    together = trace.named(lambda n: "multi_tensor_apply" in n or "fused" in n.lower())
    batched = np.count_nonzero(together[work])
    mean_ns = float(s.dur[work].mean())
    took = context.length_us(rows) * context.host_scale
    if not context.launch_bound:
        took = _least(context, rows, len(work), mean_ns)
    if batched > BATCHED * len(work) or mean_ns > SMALL_NS or took < 5 * context.notable_us:
        return
    yield context.habit(
        ADVICE,
        rows,
        took,
        [
            f"{len(work) / context.count:.0f} kernels a step of {mean_ns / 1e3:.1f} µs on average",
            f"they take {took / 1e3:.2f} ms of the host ({took / context.period_us:.0%} of the step)",
        ],
        [Change(host=tuple(context.interval(r, stay) for r in rows)) for stay in STAY],
    )


def _least(context: Context, rows: list[int], launches: int, mean_ns: float) -> float:
    """What thousands of launches take of the host at least, in µs a step, where the step's own time isn't known.

    0 for fewer of them, and where the device is busy meanwhile or its kernels take longer than their launches.
    """
    if launches < THOUSANDS * context.count or mean_ns > HELD * LEAST_NS:
        return 0.0
    if context.idle_us(rows) < HELD * context.length_us(rows):
        return 0.0
    return launches * (LEAST_NS - mean_ns) / context.count / 1e3
