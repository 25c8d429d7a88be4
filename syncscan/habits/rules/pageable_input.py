"""Yield the habit if pageable copies take notable time in the steps, without those of tensors just built.

A copy that the host waits for is a sync, whose finding states what a pinned copy would gain.
"""

from __future__ import annotations

from collections.abc import Iterable

from syncscan.habits.context import Context
from syncscan.habits.input_copies import copying, factories, pageable_copies
from syncscan.model.duration import duration
from syncscan.model.habit import Change, Habit
from syncscan.rules.pages import advice_of

SMALL = 100_000
"""Bytes per step below which staging a copy costs less than the call."""


def find(context: Context) -> Iterable[Habit]:
    before = context.cached(factories)
    calls = [c for c in context.cached(pageable_copies) if c.call not in context.sync_calls and c.call not in before]
    for group in context.by_scope(c.call for c in calls):
        members = set(group)
        copies = [c for c in calls if c.call in members]
        held = context.length_us(group)
        size, device_ns = sum(c.size for c in copies) / context.count, sum(c.device_ns for c in copies)
        if held < context.notable_us or size < SMALL:
            continue
        yield context.habit(
            advice_of("pageable-input"),
            group,
            held,
            [
                f"{len(copies) / context.count:.0f} copies per step, {size / 1e6:.1f} MB, "
                f"block the host for {duration(held)}",
                f"the bus runs at {size * context.count / device_ns if device_ns else 0.0:.1f} GB/s for them",
            ],
            [Change(host=tuple(context.interval(copying(context, c.call)) for c in copies))],
        )
