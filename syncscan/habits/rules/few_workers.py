"""A step that waits for a DataLoader whose workers can't keep up."""

from __future__ import annotations

from collections.abc import Iterable

from syncscan.habits.context import Context
from syncscan.model.habit import Advice, Area, Change, Habit
from syncscan.model.names import is_loader_with_workers
from syncscan.model.trace import Category

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
    rows = context.outermost(context.rows(Category.ANNOTATION, is_loader_with_workers))
    idle = context.idle_us(rows) * context.host_scale
    if not rows or idle < 5 * context.notable_us:
        return
    took = context.length_us(rows) * context.host_scale
    yield context.habit(
        ADVICE,
        rows,
        idle,
        [
            f"the step waits {took / 1e3:.2f} ms for its next batch",
            f"the device idles for {idle / 1e3:.2f} ms of it, {idle / context.period_us:.0%} of the step",
        ],
        [Change(host=tuple(context.interval(r, keep) for r in rows)) for keep in (0.5, 0.0, 0.9)],
    )
