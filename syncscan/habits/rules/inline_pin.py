"""Yield the habit if `pin_memory` takes a notable time on the steps' own thread, outside of a loader."""

from __future__ import annotations

from collections.abc import Iterable

from syncscan.habits.context import Context
from syncscan.model.duration import duration
from syncscan.model.habit import Change, Habit
from syncscan.model.slice_names import is_loader
from syncscan.model.trace import Category
from syncscan.rules.pages import advice_of


def find(context: Context) -> Iterable[Habit]:
    rows = context.outermost(context.rows(Category.CPU_OP, lambda n: n in ("aten::pin_memory", "aten::_pin_memory")))
    own = [r for r in rows if not any(map(is_loader, context.scope(r)))]
    for group in context.by_scope(own):
        took = context.length_us(group) * context.host_scale
        if took < context.notable_us or len(group) < context.count:
            continue
        yield context.habit(
            advice_of("inline-pin"),
            group,
            took,
            [f"pin_memory takes {duration(took)} per step on the thread that launches the work"],
            [Change(host=tuple(context.interval(r) for r in group))],
        )
