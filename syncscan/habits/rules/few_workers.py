"""A step that waits for a DataLoader whose workers can't keep up."""

from __future__ import annotations

from collections.abc import Iterable

from syncscan.habits.look import Look
from syncscan.model.habit import Advice, Area, Change, Habit
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
SPAN = "enumerate(DataLoader)#_MultiProcessing"


def find(look: Look) -> Iterable[Habit]:
    """Spans of a loader with workers on the steps' thread, during which the device idles for a notable time."""
    rows = look.outermost(look.rows(Category.ANNOTATION, lambda n: n.startswith(SPAN)))
    idle = look.idle_us(rows) * look.host_scale
    if not rows or idle < 5 * look.notable_us:
        return
    took = look.length_us(rows) * look.host_scale
    yield look.habit(
        ADVICE,
        rows,
        idle,
        [
            f"the step waits {took / 1e3:.2f} ms for its next batch",
            f"the device idles for {idle / 1e3:.2f} ms of it, {idle / look.period_us:.0%} of the step",
        ],
        [Change(host=tuple(look.stretch(r, keep) for r in rows)) for keep in (0.5, 0.0, 0.9)],
    )
