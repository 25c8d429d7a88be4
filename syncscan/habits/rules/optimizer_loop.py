"""Yield the habit for optimizer steps of many small kernels that aren't batched and certainly bound the step."""

from __future__ import annotations

from collections.abc import Iterable

from syncscan.habits.context import Context
from syncscan.habits.optimizers import find_looping_optimizer
from syncscan.model.duration import duration
from syncscan.model.habit import Change, Habit
from syncscan.rules.pages import advice_of

STAY = (0.1, 0.0, 0.4)
"""Remaining part of its host time when fused: likely, with the most and with the least saved."""


def find(context: Context) -> Iterable[Habit]:
    looping = context.cached(find_looping_optimizer)
    if looping is None:
        return
    yield context.habit(
        advice_of("optimizer-loop"),
        looping.steps,
        looping.took_us,
        [
            f"{looping.kernels:.0f} kernels per step of {duration(looping.mean_ns / 1e3)} on average",
            f"they take {duration(looping.took_us)} of the host ({looping.took_us / context.period_us:.0%} of the "
            "step)",
        ],
        [Change(host=tuple(context.interval(r, stay) for r in looping.steps)) for stay in STAY],
    )
