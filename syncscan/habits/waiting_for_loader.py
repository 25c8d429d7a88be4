"""From a Context and a kind of DataLoader to the habit that the step waits for one, with the device idle meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from syncscan.habits.context import Context
from syncscan.model.habit import Advice, Change, Habit
from syncscan.model.trace import Category
from syncscan.model.units import duration


def waiting_for(
    context: Context, kind: Callable[[str], bool], advice: Advice, took: str, kept: Sequence[float]
) -> Iterable[Habit]:
    """Scopes of such a loader on the steps' thread, during which the device idles for a notable time.

    Args:
        context: of the trace.
        kind: whether a scope of this name is such a loader's `__next__`.
        advice: of the rule.
        took: the sentence for how long it takes, with `{ms}` for the figure.
        kept: parts of its time that may stay: likely, with the most and with the least saved.
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
    changes = [Change(host=tuple(context.interval(r, keep) for r in rows)) for keep in kept]
    yield context.habit(advice, rows, idle, evidence, changes)
