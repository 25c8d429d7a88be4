"""Yield the habit for casts of tensors without gradient and for repeated casts of a step.

The lower bound keeps an op's first cast, which may be of its input.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from syncscan.habits.autocast import Casts, autocast_casts
from syncscan.habits.context import Context
from syncscan.model.arrays import distinct
from syncscan.model.duration import duration
from syncscan.model.habit import Change, Habit
from syncscan.rules.pages import advice_of

LEAST = 0.04
"""Least part of a step for casts to be reported: two equal steps differ by as much on average on an H200's host, and
where 72 casts took 2.4 % of a step, it took as long without them."""


def find(context: Context) -> Iterable[Habit]:
    casts = autocast_casts(context)
    rows = sorted({*casts.frozen, *casts.repeated}, key=lambda row: int(context.trace.slices.ts[row]))
    if len(rows) < context.count:
        return
    host_us, device_us = _took(context, rows)
    if host_us + device_us < LEAST * context.period_us:
        return
    inputs = set(casts.inputs)
    without_all, least = _without(context, rows), _without(context, [row for row in rows if row not in inputs])
    yield context.habit(
        advice_of("autocast-casts"),
        rows,
        host_us + device_us,
        _evidence(context, casts, host_us, device_us),
        [without_all, replace(without_all, unstretched=True), least],
    )


def _took(context: Context, rows: Sequence[int]) -> tuple[float, float]:
    """Return the host and device time of these casts, in µs per step."""
    work = [int(row) for cast in rows for row in context.launched(context.interval(cast))]
    return context.length_us(rows) * context.host_scale, context.length_us(distinct(work).tolist())


def _without(context: Context, rows: Sequence[int]) -> Change:
    intervals = tuple(context.interval(row) for row in rows)
    work = tuple((int(row), 0.0) for interval in intervals for row in context.launched(interval))
    return Change(host=intervals, work=work)


def _evidence(context: Context, casts: Casts, host_us: float, device_us: float) -> list[str]:
    sentences = []
    if casts.frozen:
        sentences.append(
            f"{len(casts.frozen) / context.count:.0f} casts per step in {casts.ops / context.count:.0f} ops cast "
            "tensors without gradients, which autocast doesn't cache"
        )
    if casts.repeated:
        sentences.append(f"{len(casts.repeated) / context.count:.0f} casts per step repeat an earlier cast")
    sentences.append(f"they take {duration(host_us)} of host time and {duration(device_us)} of device time")
    return sentences
