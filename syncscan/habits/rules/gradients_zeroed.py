"""Yield the habit if scopes of `Optimizer.zero_grad` launch work in every step.

The additions to zeros go too, unless gradients are views of buckets, so the lower bound keeps them. Later passes of
accumulated gradients add to real gradients and stay. Recording lengthens some ops more than others, so the upper
bound is all of it as recorded (measured: 1.4 to 2.0 of a recorded 2.7 ms, H200, torch 2.11).
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from syncscan.habits.context import Context
from syncscan.habits.optimizers import ZeroedGradients, zeroed_gradients
from syncscan.model.duration import duration
from syncscan.model.habit import Change, Habit
from syncscan.rules.pages import advice_of


def find(context: Context) -> Iterable[Habit]:
    zeroed = context.cached(zeroed_gradients)
    if zeroed is None:
        return
    filling = _without(context, zeroed, additions=False)
    gain = _without(context, zeroed, additions=True)
    yield context.habit(
        advice_of("gradients-zeroed"),
        zeroed.scopes,
        zeroed.host_us + zeroed.device_us,
        _evidence(context, zeroed),
        [gain, replace(gain, unstretched=True), filling] if zeroed.additions else [filling],
    )


def _without(context: Context, zeroed: ZeroedGradients, *, additions: bool) -> Change:
    rows = [*zeroed.scopes, *(zeroed.additions if additions else ())]
    work = [*zeroed.fills.tolist(), *(zeroed.sums.tolist() if additions else ())]
    return Change(host=tuple(context.interval(r) for r in rows), work=tuple((row, 0.0) for row in work))


def _evidence(context: Context, zeroed: ZeroedGradients) -> list[str]:
    fills, sums = len(zeroed.fills) / context.count, len(zeroed.sums) / context.count
    adding = f", the next backward pass {sums:.0f} that add to zeros" if zeroed.additions else ""
    return [
        f"zero_grad launches {fills:.0f} kernels per step{adding}: {duration(zeroed.host_us)} of host time, "
        f"{duration(zeroed.device_us)} of device time",
    ]
