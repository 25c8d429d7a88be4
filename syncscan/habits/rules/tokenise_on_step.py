"""Texts that the step's thread tokenises."""

from __future__ import annotations

from collections.abc import Iterable

from syncscan.habits.context import Context
from syncscan.habits.sampled_work import Kind, sampled_habit
from syncscan.model.habit import Advice, Area, Habit

ADVICE = Advice(
    rule="tokenise-on-step",
    area=Area.INPUT,
    title="The step's thread tokenises texts",
    why="Tokens are the same in every epoch, and while it makes them the thread launches nothing.",
    fix="Tokenise once before training (Dataset.map), or in the DataLoader's workers.",
    when_fine="When texts come one by one, as to a server, or the device has work for as long.",
)


def find(context: Context) -> Iterable[Habit]:
    """Functions of tokenisers, by samples, outside of a DataLoader."""
    return sampled_habit(context, ADVICE, Kind.TOKENISING)
