"""Yield the habit if most steps after the first allocate device memory or pin host memory.

Calls that a sync's finding counts aren't counted again: those that waited for the device, or that free memory.
Calls of a merely informational finding count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from syncscan.habits.context import Context
from syncscan.model.arrays import distinct, median
from syncscan.model.duration import duration
from syncscan.model.finding import Confidence
from syncscan.model.habit import Change, Habit
from syncscan.model.runtime_calls import allocates, api_name, frees, pins, unmaps
from syncscan.model.slice_names import is_loader
from syncscan.model.trace import Category
from syncscan.rules.pages import advice_of

LEAST = 2
"""Fewest calls per step; a single one may be a straggler."""


def find(context: Context) -> Iterable[Habit]:
    rows = _calls(context)
    if not rows or not _steady(context, rows):
        return
    took = context.length_us(rows) * context.host_scale
    if took < context.notable_us:
        return
    name = context.trace.name
    freeing = {call for call in context.sync_calls if frees(name(call)) or unmaps(name(call))}
    given_back = [f for f in context.findings if any(freeing.intersection(o.calls) for o in f.occurrences)]
    yield context.habit(
        advice_of("allocation-storm"),
        rows,
        took,
        _evidence(context, rows, took, [f.id for f in given_back]),
        [Change(host=tuple(map(context.interval, rows)), calls=tuple(rows))],
        Confidence.HIGH if given_back else Confidence.MEDIUM,
    )


def _calls(context: Context) -> list[int]:
    s, trace = context.trace.slices, context.trace
    calling = (Category.RUNTIME, Category.DRIVER)
    rows = [
        row
        for category in calling
        for row in context.rows(category, lambda name: allocates(name) and not unmaps(name), main=False)
    ]
    if not rows:
        return []
    counted = {c for f in context.findings if not f.intended for o in f.occurrences for c in o.calls}
    launching = set(distinct(s.track[context.launch_calls]).tolist())
    rows = [row for row in rows if row not in counted and int(s.track[row]) in launching]
    return sorted((r for r in rows if not (pins(trace.name(r)) and _pins_a_batch(context, r))), key=lambda r: s.ts[r])


def _pins_a_batch(context: Context, row: int) -> bool:
    """Return whether `pin_memory` or a loader pins, which is another habit or on the loader's own thread."""
    return context.op(row) in ("aten::pin_memory", "aten::_pin_memory") or any(map(is_loader, context.scope(row)))


def _steady(context: Context, rows: Sequence[int]) -> bool:
    """Return whether most steps after the first recorded one make such calls; a single step proves nothing."""
    starts = np.sort(context.trace.slices.ts[list(rows)])
    counts = [int(np.subtract(*np.searchsorted(starts, [end, begin]))) for begin, end in context.steps]
    return len(counts) > 1 and median(counts[1:]) >= LEAST


def _evidence(context: Context, rows: Sequence[int], took: float, given_back: Sequence[str]) -> list[str]:
    names = Counter(api_name(context.trace.name(row)) for row in rows)
    calls = ", ".join(f"{name}: {count / context.count:.3g}" for name, count in names.most_common(3))
    sentences = [f"driver calls per step that allocate memory: {calls}; they take {duration(took)} of host time"]
    if given_back:
        sentences.append(f"memory is freed in the steps, a sync of its own: {', '.join(given_back[:3])}")
    return sentences
