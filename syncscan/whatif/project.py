"""From an Analysis and selectors to a Projection: the step replayed without the chosen findings, with a range."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from syncscan.model.analysis import Analysis, Bound
from syncscan.model.finding import Finding, Removal
from syncscan.model.period import step_period
from syncscan.model.projection import Projection
from syncscan.model.trace import Category, Trace
from syncscan.whatif.build import build
from syncscan.whatif.calibrate import Calibration, calibrate
from syncscan.whatif.graph import Graph
from syncscan.whatif.replay import Steady, period, prepare, steady
from syncscan.whatif.select import select
from syncscan.whatif.waits import Hold

THROTTLE = 0.15
"""How much slower kernels can run once the device has no pauses: at the power limit its clocks fall (H200: 13 to 17 %)."""
REPEATABILITY = 0.02
"""Two measurements of the same step differ by about this part of it."""
MODEL = 0.10
"""The part of a saving that the model itself leaves uncertain."""


class Stage:
    """One analysis, ready to be projected: its graph, built once, and its calibrations, each found once."""

    def __init__(self, analysis: Analysis) -> None:
        self.trace = analysis.trace
        self.number = {f.id: n for n, f in enumerate(analysis.findings)}
        self.graph = build(analysis.trace, _holds(analysis.findings))
        self.step = analysis.step
        self.observed_ns = step_period(analysis.trace)
        self._calibrated: dict[float | None, Calibration] = {}

    def calibration(self, step_ms: float | None) -> Calibration:
        """With the step's unprofiled time as given, else as capture stored it, else guessed."""
        known = step_ms * 1e3 if step_ms else self.step.unprofiled_us
        if known not in self._calibrated:
            self._calibrated[known] = calibrate(
                self.graph, self.observed_ns, known * 1e3 if known else None, *_recorded(self.trace)
            )
        return self._calibrated[known]


def project(
    analysis: Analysis,
    selectors: Sequence[str],
    *,
    step_ms: float | None = None,
    keep_timing: bool = False,
    stage: Stage | None = None,
) -> Projection:
    """The step without the findings that these selectors name.

    Args:
        analysis: of a trace with steps, or of a whole trace as one step.
        selectors: each `all`, `scope:GLOB`, `rule:ID`, `op:GLOB` or `id:ID`.
        step_ms: the step's time without the profiler in ms, if you measured it and capture didn't.
        keep_timing: keep explicit synchronises around timings, whatever the selectors say.
        stage: what an earlier projection of this analysis has built.

    Raises:
        UsageError: a selector is none, or names nothing.
    """
    stage = stage or Stage(analysis)
    chosen = [f for f in select(analysis, selectors) if not (keep_timing and _times(f))]
    return _Projector(stage, stage.calibration(step_ms)).projection(chosen)


def _times(finding: Finding) -> bool:
    return finding.diagnosis.removal is Removal.NOTHING and "event" in finding.api.lower()


def _holds(findings: Sequence[Finding]) -> list[Hold]:
    return [
        Hold(n, o.sync.calls, o.sync.device, o.sync.stream, o.sync.diagnosis.removal)
        for n, f in enumerate(findings)
        for o in f.occurrences
    ]


def _recorded(trace: Trace) -> tuple[float, bool]:
    """Ops and runtime calls recorded in a step, and whether Python frames were recorded too."""
    s = trace.slices
    mask = trace.is_category(Category.CPU_OP, Category.ANNOTATION, Category.RUNTIME, Category.DRIVER)
    if trace.steps:
        mask &= (s.ts >= trace.steps[0].ts) & (s.ts < trace.steps[-1].end)
    return float(np.count_nonzero(mask)) / max(1, len(trace.steps)), trace.info.with_stack


class _Projector:
    def __init__(self, stage: Stage, calibration: Calibration) -> None:
        self.stage, self.calibration = stage, calibration
        self.graph: Graph = stage.graph
        self.before = steady(calibration.replay)
        self._spread: dict[frozenset[int], tuple[float, float]] = {}

    def projection(self, findings: Sequence[Finding]) -> Projection:
        removed = frozenset(self.stage.number[f.id] for f in findings)
        after = steady(self.calibration.replay, removed)
        unit = self.calibration.unit / 1e3
        device = self.graph.busy_ns * self.calibration.replay.stretch
        return Projection(
            removed=tuple(f.id for f in findings),
            observed_us=self.calibration.observed_ns / 1e3,
            baseline_us=self.before.period * unit,
            predicted_us=after.period * unit,
            range_us=self.range(removed, after),
            bound_after=_bound(after, device),
            host_limit_us=after.host * unit,
            device_limit_us=device * unit,
        )

    def moved(self, finding: Finding) -> float:
        """How much of its wait, in µs a step, turns up again at the other syncs without it."""
        number = self.stage.number[finding.id]
        after = steady(self.calibration.replay, frozenset([number]))
        own = self.before.waits.get(number, 0.0)
        others = self.before.waited - own
        return min(own, max(0.0, after.waited - others)) * self.calibration.unit / 1e3

    def range(self, removed: frozenset[int], after: Steady) -> tuple[float, float]:
        """What the step may take instead, in µs: over single steps, over what the trace leaves open, and the model."""
        base = self.before.period
        ratios = [after.period / base if base else 1.0]
        count = len(self.graph.programs)
        for replay in (self.calibration.replay, *self.calibration.slack):
            whole = period(replay)
            ratios.append(period(replay, removed) / whole if whole else 1.0)
        for k in range(count if count > 1 else 0):
            alone = period(self.calibration.replay, steps=[k])
            ratios.append(period(self.calibration.replay, removed, [k]) / alone if alone else 1.0)
        extra = REPEATABILITY + MODEL * (1.0 - ratios[0])
        low, high = min(ratios) - extra, max(ratios) + extra
        high = max(high, self._throttled(removed, after) / base + extra if base else high)
        unit = self.calibration.unit / 1e3
        floor = max(0.0, low)
        return floor * base * unit, max(min(high, 1.0 + REPEATABILITY), ratios[0]) * base * unit

    def _throttled(self, removed: frozenset[int], after: Steady) -> float:
        """The step if the device runs slower for having lost its pauses."""
        replay = self.calibration.replay
        device = self.graph.busy_ns * replay.stretch
        pauses = max(1e-9, 1.0 - device / max(self.before.period, 1.0))
        lost = max(0.0, device / max(after.period, 1.0) - device / max(self.before.period, 1.0)) / pauses
        return period(prepare(self.graph, replay.scale, replay.stretch * (1.0 + THROTTLE * min(lost, 1.0))), removed)


def _bound(after: Steady, device: float) -> Bound:
    if device >= 0.9 * after.period:
        return Bound.DEVICE
    if after.host >= 0.9 * after.period:
        return Bound.HOST
    return Bound.SYNC if after.waited > 0.1 * after.period else Bound.HOST
