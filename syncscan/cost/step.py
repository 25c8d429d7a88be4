"""From a trace and its costs to the measured step: its time, its parts, and what bounds it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from syncscan.cost.held import time_held
from syncscan.model.finding import Occurrence
from syncscan.model.interval import Interval
from syncscan.model.names import is_loader
from syncscan.model.period import busy_time, step_period
from syncscan.model.runtime_calls import is_launch
from syncscan.model.step import BOUND_FROM, Bound, StepSummary
from syncscan.model.trace import NONE, Step, Trace

RECORDED = 0.5
"""A verdict needs the device work of at least this part of the launches."""
NOTABLE = 0.1
"""Input or syncs bound a step when they cost at least this part of it."""


def steps_of(trace: Trace) -> tuple[Step, ...]:
    """The steps to average over: the profiler's, or the whole trace as one where it marks none."""
    if trace.steps:
        return trace.steps
    s = trace.slices
    if not len(s):
        return ()
    return (Step(0, NONE, int(s.ts.min()), int(s.end.max())),)


def step_summary(trace: Trace, occurrences: Sequence[Occurrence]) -> StepSummary:
    """Measure the step: means over the analysed steps, and what bounds it.

    A step's time is throughput, host and device both done: the longer of the host's period (from one step's begin to
    the next) and the device's (from one step's first or last work to the next step's), and never less than what the
    device worked, since pipelined steps overlap on it.
    """
    steps = steps_of(trace)
    if not steps:
        return _unknown("The trace holds no slices.")
    return _Summary(trace, steps, [o for o in occurrences if not o.sync.diagnosis.intended]).value()


class _Summary:
    def __init__(self, trace: Trace, steps: tuple[Step, ...], occurrences: list[Occurrence]) -> None:
        self.trace, self.steps, self.occurrences = trace, steps, occurrences
        self.host = float(np.mean([s.end - s.ts for s in steps]))
        self.busy = busy_time(trace, [Interval(step.ts, step.end) for step in steps]) / len(steps)
        self.observed = max(step_period(trace), self.busy)
        self.unprofiled = trace.info.capture.unprofiled_step_us

    def value(self) -> StepSummary:
        n = len(self.steps)
        busy = self.busy
        wait = time_held(self.occurrences) / n
        bubble = sum(o.cost.bubble_ns for o in self.occurrences) / n
        waiting_input = self._input() / n
        bound, reason = self._bound(busy, bubble, waiting_input)
        return StepSummary(
            count=n,
            observed_us=self.observed / 1e3,
            host_us=self.host / 1e3,
            wait_us=wait / 1e3,
            device_busy_us=busy / 1e3,
            device_idle_us=(self.observed - busy) / 1e3,
            bubble_us=bubble / 1e3,
            input_us=waiting_input / 1e3,
            bound=bound,
            reason=reason,
            unprofiled_us=self.unprofiled,
        )

    def _input(self) -> int:
        """Time of the DataLoader's `__next__` on the steps' own threads, in ns."""
        s = self.trace.slices
        rows = np.flatnonzero(self.trace.named(is_loader))
        tracks = {step.track for step in self.steps}
        return sum(
            int(s.dur[r])
            for r in rows
            if (int(s.track[r]) in tracks or NONE in tracks)
            and any(step.ts <= int(s.ts[r]) < step.end for step in self.steps)
        )

    def _recorded(self) -> float:
        """The part of the steps' launches whose device work is in the trace: a file cut short lacks much of it."""
        s = self.trace.slices
        launches = np.flatnonzero(self.trace.named(is_launch) & (s.correlation != NONE))
        launches = launches[(s.ts[launches] >= self.steps[0].ts) & (s.ts[launches] < self.steps[-1].end)]
        if not len(launches):
            return 1.0
        return float(self.trace.started_work(launches).mean())

    def _bound(self, busy: float, bubble: float, waiting_input: float) -> tuple[Bound, str]:
        if not len(self.trace.device_rows):
            return Bound.UNKNOWN, "The trace holds no device work, so nothing can be said about what bounds the step."
        if not self.trace.info.complete:
            return Bound.UNKNOWN, "The trace is cut short: a part of it doesn't tell what bounds the step."
        if (recorded := self._recorded()) < RECORDED:
            lost = f"Only {recorded:.0%} of the launches have their device work in the trace"
            return Bound.UNKNOWN, f"{lost}, so nothing can be said about what bounds the step."
        if not self.observed:
            return Bound.UNKNOWN, "The steps take no time, so nothing can be said about what bounds them."
        share = busy / self.observed
        if share >= BOUND_FROM:
            return Bound.DEVICE, f"The device works {share:.0%} of the step."
        if self.unprofiled and busy >= BOUND_FROM * self.unprofiled * 1e3:
            share = min(busy / self.unprofiled / 1e3, 1.0)
            return Bound.DEVICE, f"The device works {share:.0%} of the step as it is without the profiler."
        idle = f"The device works {share:.0%} of the step"
        if waiting_input >= NOTABLE * self.observed and waiting_input >= bubble:
            return (
                Bound.INPUT,
                f"{idle}; the host spends {waiting_input / self.observed:.0%} waiting for the DataLoader.",
            )
        if bubble >= NOTABLE * self.observed:
            return Bound.SYNC, f"{idle}; behind syncs it stands idle for {bubble / self.observed:.0%}."
        return Bound.HOST, f"{idle} and waits for the host's launches in the rest."


def _unknown(reason: str) -> StepSummary:
    return StepSummary(0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, Bound.UNKNOWN, reason)
