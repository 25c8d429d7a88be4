"""A step that waits for a DataLoader whose workers can't keep up."""

from __future__ import annotations

from collections.abc import Iterable

from syncscan.habits.context import Context
from syncscan.habits.waiting_for_loader import waiting_for
from syncscan.model.habit import Advice, Area, Habit
from syncscan.model.names import is_loader_with_workers

ADVICE = Advice(
    rule="loader-few-workers",
    area=Area.INPUT,
    title="The step waits for a DataLoader whose workers can't keep up",
    why="The loader has workers, and still the step finds no batch ready: they make them slower than it takes them.",
    fix=(
        "More workers, as far as there are cores; then a cheaper sample: decode smaller, cache, or augment on "
        "the device, in batches."
    ),
    when_fine="When the wait is only at the begin of an epoch: persistent_workers=True keeps them from starting anew.",
)


def find(context: Context) -> Iterable[Habit]:
    """Scopes of a loader with workers on the steps' thread, during which the device idles for a notable time."""
    return waiting_for(
        context, is_loader_with_workers, ADVICE, "the step waits {ms} for its next batch", (0.5, 0.0, 0.9)
    )
