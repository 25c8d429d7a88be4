"""Return the habit for functions of tokenizers outside of a DataLoader, by samples."""

from __future__ import annotations

from collections.abc import Iterable

from syncscan.habits.context import Context
from syncscan.habits.sampled_work import WorkKind, sampled_habit
from syncscan.model.habit import Habit
from syncscan.rules.pages import advice_of


def find(context: Context) -> Iterable[Habit]:
    return sampled_habit(context, advice_of("tokenize-on-step"), WorkKind.TOKENIZING)
