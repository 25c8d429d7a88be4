"""Logging that the step's thread does itself."""

from __future__ import annotations

from collections.abc import Iterable

from syncscan.habits.context import Context
from syncscan.habits.sampled_work import Kind, sampled_habit
from syncscan.model.habit import Advice, Area, Habit

ADVICE = Advice(
    rule="logging-on-step",
    area=Area.HOST,
    title="The step's thread logs",
    why="While it formats and writes, it launches nothing.",
    fix=(
        "Log every some ten steps, all values at once; hand records to another thread "
        "(logging.handlers.QueueHandler); keep debug messages behind logger.isEnabledFor."
    ),
    when_fine="When the device has work for as long.",
)


def find(context: Context) -> Iterable[Habit]:
    """Functions of `logging` and of loggers of experiments, by samples."""
    return sampled_habit(context, ADVICE, Kind.LOGGING)
