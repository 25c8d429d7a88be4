"""A progress bar that the step's thread draws."""

from __future__ import annotations

from collections.abc import Iterable

from syncscan.habits.context import Context
from syncscan.habits.sampled_work import Kind, sampled_habit
from syncscan.model.habit import Advice, Area, Habit

ADVICE = Advice(
    rule="progress-bar",
    area=Area.HOST,
    title="The step's thread draws a progress bar",
    why="Each update formats and writes to the terminal, and launches nothing meanwhile.",
    fix=(
        "Draw it seldom: tqdm(mininterval=1, miniters=50), Lightning's TQDMProgressBar(refresh_rate=50); or not at "
        "all: Trainer(enable_progress_bar=False), transformers' disable_tqdm=True."
    ),
    when_fine="When the device has work for as long.",
)


def find(context: Context) -> Iterable[Habit]:
    """Functions of tqdm, rich and Lightning's bars, by samples; not what they iterate over."""
    return sampled_habit(context, ADVICE, Kind.PROGRESS)
