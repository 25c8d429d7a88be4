"""Return the habit for functions of tqdm, rich and Lightning's bars, without what they iterate over, by samples."""

from __future__ import annotations

from collections.abc import Iterable

from syncscan.habits.context import Context
from syncscan.habits.sampled_work import WorkKind, sampled_habit
from syncscan.model.habit import Habit
from syncscan.rules.pages import advice_of


def find(context: Context) -> Iterable[Habit]:
    return sampled_habit(context, advice_of("progress-bar"), WorkKind.PROGRESS)
