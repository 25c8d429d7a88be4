"""Summarize the phases of a serving framework's trace: number of steps, and their time."""

from __future__ import annotations

from collections import defaultdict

import msgspec

from syncscan.facts.period import step_intervals
from syncscan.model.arrays import median
from syncscan.model.step_marks import ServingPhase
from syncscan.model.trace import Trace


class PhaseSummary(msgspec.Struct, frozen=True):
    """The steps of one phase and batch size."""

    phase: ServingPhase
    batch: int | None
    """Number of requests, None if the marks don't state it."""
    count: int
    median_us: float
    """Time from the start of a step to the start of the next."""


def phases_of(trace: Trace) -> tuple[PhaseSummary, ...]:
    """Return the phases of a trace, prefill before decode, and within a phase the most time-consuming first.

    Empty if all steps are of one phase, or of no known phase.
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
