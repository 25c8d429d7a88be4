"""Find progress bars, logging, tokenizing and collating on the step's thread, by samples."""

from __future__ import annotations

from collections.abc import Iterable

from syncscan.habits.context import Context
from syncscan.habits.sampled_work import ACTIVITIES, sampled_habit
from syncscan.model.habit import Habit
from syncscan.rules.pages import advice_of


def find(context: Context) -> Iterable[Habit]:
    for kind in ACTIVITIES:
        yield from sampled_habit(context, advice_of("side-work", kind.value), kind)
