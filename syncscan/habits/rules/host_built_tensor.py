"""Yield factory ops without device work that are followed by a pageable copy to the device in every step.

A copy that the host waits for is a sync, whose finding states its cost; then only the factory counts here.
"""

from __future__ import annotations

from collections.abc import Iterable

from syncscan.habits.context import Context
from syncscan.habits.input_copies import copying, factories, pageable_copies
from syncscan.model.duration import duration
from syncscan.model.habit import Change, Habit
from syncscan.rules.pages import advice_of


def find(context: Context) -> Iterable[Habit]:
    before = context.cached(factories)
    built = {c.call: (c, before[c.call]) for c in context.cached(pageable_copies) if c.call in before}
    for group in context.by_scope(built):
        built_copies = [built[call] for call in group]
        making = context.length_us(row for _, row in built_copies) * context.host_scale
        unsaid = [call for call in group if call not in context.sync_calls]
        sending = context.length_us(unsaid)
        if making + sending < context.notable_us or len(built_copies) < context.count:
            continue
        size = sum(c.size for c, _ in built_copies) / context.count
        effect = f"blocks the host for {duration(sending)}" if unsaid else "is a sync, listed as one"
        removed = [*(row for _, row in built_copies), *(copying(context, call) for call in unsaid)]
        yield context.habit(
            advice_of("host-built-tensor"),
            group,
            making + sending,
            [
                f"{context.trace.name(built_copies[0][1])} fills it on the host in {duration(making)} per step",
                f"copying its {size / 1e6:.1f} MB {effect}",
            ],
            [Change(host=tuple(context.interval(row) for row in removed))],
        )
