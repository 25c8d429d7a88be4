"""Yield the habit if pinned copies on a stream with kernels take a notable part of a device-bound step."""

from __future__ import annotations

from collections.abc import Iterable

from syncscan.habits.context import Context
from syncscan.habits.input_copies import pinned_copies
from syncscan.model.arrays import distinct
from syncscan.model.duration import duration
from syncscan.model.habit import Change, Habit
from syncscan.rules.pages import advice_of


def find(context: Context) -> Iterable[Habit]:
    s = context.trace.slices
    if context.step.device_busy_us < 0.75 * context.period_us:
        return
    work = context.trace.device_rows
    computes = ~context.trace.called(work, lambda n: n.startswith("Mem"))
    computing = set(distinct(s.stream[work[computes]]).tolist())
    in_line = [c for c in context.cached(pinned_copies) if int(s.stream[c.row]) in computing]
    if context.length_us(c.row for c in in_line) < 5 * context.notable_us:  # without overlap they take no longer
        return
    alone = sum(_alone(context, c.row) for c in in_line) / context.count / 1e3
    if alone < 5 * context.notable_us:
        return
    size = sum(c.size for c in in_line) / context.count
    yield context.habit(
        advice_of("copy-in-line"),
        [c.call for c in in_line],
        alone,
        [
            f"{len(in_line) / context.count:.0f} copies per step, {size / 1e6:.1f} MB, take {duration(alone)} "
            f"while no kernel runs",
        ],
        [
            Change(work=tuple((c.row, 0.0) for c in in_line)),
            Change(),
            Change(work=tuple((c.row, 0.3) for c in in_line)),
        ],
    )


def _alone(context: Context, row: int) -> int:
    """Return how long nothing else ran on the device during this copy, in ns."""
    s = context.trace.slices
    begin, end = int(s.ts[row]), int(s.end[row])
    rest = [st for st in context.work.streams(int(s.device[row])) if st != int(s.stream[row])]
    beside = sum(context.work.of(int(s.device[row]), st).busy_within(begin, end) for st in rest)
    return max(0, end - begin - beside)
