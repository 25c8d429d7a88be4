"""Yield the habit for rounds of ops on single tensors that each step repeats about once per parameter."""

from __future__ import annotations

from collections.abc import Iterable

from syncscan.habits.context import Context
from syncscan.habits.parameter_loops import ParameterLoop, parameter_loops
from syncscan.model.duration import duration
from syncscan.model.habit import Change, Habit
from syncscan.model.interval import ThreadInterval
from syncscan.rules.pages import advice_of

STAY = (0.1, 0.0, 0.4)
"""Remaining part of its host time when batched: likely, with the most and with the least saved. The most is as
recorded, since recording lengthens some ops more than others (measured: 1.2 to 1.5 of a recorded 2.4 ms, H200, torch
2.11)."""


def find(context: Context) -> Iterable[Habit]:
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
