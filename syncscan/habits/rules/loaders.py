"""Find steps that wait for a DataLoader while the device is idle: one without workers, or with too few."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from syncscan.habits.context import NOTABLE, Context
from syncscan.model.duration import duration
from syncscan.model.habit import Advice, Change, Habit
from syncscan.model.slice_names import is_loader_with_workers, is_loader_without_workers
from syncscan.model.trace import Category
from syncscan.rules.pages import advice_of


def _waiting_for(
    context: Context, kind: Callable[[str], bool], advice: Advice, took: str, remaining: Sequence[float]
) -> Iterable[Habit]:
    """Yield the habit if such a loader's scopes on the steps' thread leave the device idle for a notable time.

    `took` is the sentence for how long it takes, with `{ms}` for the figure; `remaining` are parts of its time that may
    remain: the likely one, with the most saved, with the least saved.
    """
    rows = context.outermost(context.rows(Category.ANNOTATION, kind))
    idle = context.idle_us(rows) * context.host_scale
    if not rows or idle < 5 * context.notable_us:
        return
    ms = context.length_us(rows) * context.host_scale / 1e3
    evidence = [
        took.format(ms=duration(1e3 * ms)),
        f"the device idles for {duration(idle)} of it, {idle / context.period_us:.0%} of the step",
    ]
    changes = [Change(host=tuple(context.interval(r, keep) for r in rows)) for keep in remaining]
    yield context.habit(advice, rows, idle, evidence, changes)


WORKERS = 4
"""Number of workers that the likely gain assumes."""


def no_workers(context: Context) -> Iterable[Habit]:
    return _waiting_for(
        context,
        is_loader_without_workers,
        advice_of("loader-no-workers"),
        "the loader takes {ms} per step on the step's own thread",
        (1 / WORKERS, NOTABLE, 0.5),
    )


def few_workers(context: Context) -> Iterable[Habit]:
    return _waiting_for(
        context,
        is_loader_with_workers,
        advice_of("loader-few-workers"),
        "the step waits {ms} for its next batch",
        (0.5, 0.0, 0.9),
    )
