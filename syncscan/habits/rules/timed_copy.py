"""A timed region that holds a copy of the input to the device."""

from __future__ import annotations

from collections.abc import Iterable

from syncscan.habits.look import Look
from syncscan.habits.regions import closing_syncs, timed_regions
from syncscan.habits.sources import Copy, copies_to_device
from syncscan.model.finding import Confidence
from syncscan.model.habit import Advice, Area, Habit

ADVICE = Advice(
    rule="timed-transfer",
    area=Area.TIMING,
    title="The timed region holds a copy of the input to the device",
    why="The time then is the bus's and the host's as well as the model's, and spreads with both.",
    fix="Copy the input before the first event, or time the copy apart. `syncscan time` reports it as paid once.",
    when_fine="When the time from a request on the host to its answer is what you want to know.",
)


def find(look: Look) -> Iterable[Habit]:
    """Copies to the device between the two events of timed regions, or in steps that end with a synchronise."""
    copies = copies_to_device(look, pageable=True) + copies_to_device(look, pageable=False)
    regions = timed_regions(look)
    spans = [(r.begin, r.end) for r in regions]
    if not regions and closing_syncs(look):
        spans = look.spans
    s = look.trace.slices
    mine = [c for c in copies if any(a <= int(s.ts[c.call]) < b for a, b in spans)]
    if not mine:
        return
    took = look.length_us(c.call for c in mine) + sum(c.waited_ns for c in mine) / look.count / 1e3
    yield look.habit(
        ADVICE,
        [c.call for c in mine],
        None,
        [f"{_size(mine) / look.count / 1e6:.2f} MB a step are copied inside the timed region: {took:.0f} µs of it"],
        confidence=Confidence.HIGH if regions else Confidence.MEDIUM,
    )


def _size(copies: list[Copy]) -> int:
    return sum(c.size for c in copies)
