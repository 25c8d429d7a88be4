"""From a trace of a serving framework to its phases: how many steps each has, and how long one takes."""

from __future__ import annotations

from collections import defaultdict

import msgspec

from syncscan.facts.period import step_intervals
from syncscan.model.arrays import median
from syncscan.model.step_marks import ServingPhase
from syncscan.model.trace import Trace


class PhaseSummary(msgspec.Struct, frozen=True):
    """The steps of one phase and batch."""

    phase: ServingPhase
    batch: int | None
    """Requests, None where the marks don't say."""
    count: int
    median_us: float
    """From a step's begin to the next one's."""


def phases_of(trace: Trace) -> tuple[PhaseSummary, ...]:
    """The phases of a trace, prefill before decode, and of one phase what takes the most time first.

    Empty where its steps are all of one phase, or of none that is known.
    """
    lengths: defaultdict[tuple[ServingPhase, int | None], list[int]] = defaultdict(list)
    for step, interval in zip(trace.main_steps, step_intervals(trace), strict=False):
        if step.mark:
            lengths[step.mark.phase, step.mark.batch].append(interval.length)
    if len({phase for phase, _ in lengths}) < 2:
        return ()
    order = list(ServingPhase)
    return tuple(
        PhaseSummary(phase, batch, len(taken), median(taken) / 1e3)
        for (phase, batch), taken in sorted(lengths.items(), key=lambda item: (order.index(item[0][0]), -sum(item[1])))
    )
