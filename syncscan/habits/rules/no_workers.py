"""A step that waits for a DataLoader without workers: the training process makes every batch itself."""

from __future__ import annotations

from collections.abc import Iterable

from syncscan.habits.look import NOTABLE, Look
from syncscan.model.habit import Advice, Area, Change, Habit
from syncscan.model.trace import Category

ADVICE = Advice(
    rule="loader-no-workers",
    area=Area.INPUT,
    title="The step waits for a DataLoader that has no workers",
    why="With num_workers=0 the training process makes each batch itself, between two steps, while the device idles.",
    fix="Give the DataLoader workers: num_workers=4 a GPU is a start; pin_memory=True and persistent_workers=True too.",
    when_fine="When batches are made in much less time than a step takes, or the data already lie on the device.",
)
SPAN = "enumerate(DataLoader)#_SingleProcessDataLoaderIter"
WORKERS = 4
"""What the likely gain takes for granted: that so many workers share the making of batches."""


def find(look: Look) -> Iterable[Habit]:
    """Spans of a single-process loader on the steps' thread, during which the device idles for a notable time."""
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
            f"the loader takes {took / 1e3:.2f} ms a step on the step's own thread",
            f"the device idles for {idle / 1e3:.2f} ms of it, {idle / look.period_us:.0%} of the step",
        ],
        [Change(host=tuple(look.stretch(r, keep) for r in rows)) for keep in (1 / WORKERS, NOTABLE, 0.5)],
    )
