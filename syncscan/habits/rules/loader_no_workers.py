"""Return the habit if the device idles for long while the steps' thread is in a loader without workers."""

from __future__ import annotations

from collections.abc import Iterable

from syncscan.habits.context import NOTABLE, Context
from syncscan.habits.waiting_for_loader import waiting_for
from syncscan.model.habit import Habit
from syncscan.model.slice_names import is_loader_without_workers
from syncscan.rules.pages import advice_of

WORKERS = 4
"""Number of workers that the likely gain assumes."""


def find(context: Context) -> Iterable[Habit]:
    return waiting_for(
        context,
        is_loader_without_workers,
        advice_of("loader-no-workers"),
        "the loader takes {ms} per step on the step's own thread",
        (1 / WORKERS, NOTABLE, 0.5),
    )
