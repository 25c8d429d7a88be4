"""Batches that the step's thread puts together."""

from __future__ import annotations

from collections.abc import Iterable

from syncscan.habits.context import Context
from syncscan.habits.sampled_work import Kind, sampled_habit
from syncscan.model.habit import Advice, Area, Habit

ADVICE = Advice(
    rule="collate-on-step",
    area=Area.INPUT,
    title="The step's thread puts batches together",
    why="A collate function stacks and pads samples one by one, and launches nothing meanwhile.",
    fix="Give it to a DataLoader with workers (collate_fn=, num_workers=), which does it ahead of the step.",
    when_fine="When the device has work for as long.",
)


def find(context: Context) -> Iterable[Habit]:
    """Collate functions and all that they call, by samples, outside of a DataLoader."""
    return sampled_habit(context, ADVICE, Kind.COLLATING)
