"""Return the habit if the device idles for a notable time while the steps' thread is in a loader with workers."""

from __future__ import annotations

from collections.abc import Iterable

from syncscan.habits.context import Context
from syncscan.habits.waiting_for_loader import waiting_for
from syncscan.model.habit import Habit
from syncscan.model.slice_names import is_loader_with_workers
from syncscan.rules.pages import advice_of


def find(context: Context) -> Iterable[Habit]:
    return waiting_for(
        context,
        is_loader_with_workers,
        advice_of("loader-few-workers"),
        "the step waits {ms} for its next batch",
        (0.5, 0.0, 0.9),
    )
