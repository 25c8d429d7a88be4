"""From an Analysis and selectors to a Projection: the step replayed without the chosen findings, with a range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from syncscan.model.analysis import Analysis, Bound
from syncscan.model.finding import Cause, Finding, Removal
from syncscan.model.period import step_period
from syncscan.model.projection import Pipeline, Projection
from syncscan.model.trace import Category, Trace
from syncscan.whatif.build import build
from syncscan.whatif.calibrate import Calibration, calibrate
from syncscan.whatif.loader import loader_waits
from syncscan.whatif.replay import Replay, Steady, period, prepare, steady
from syncscan.whatif.select import select
from syncscan.whatif.throttle import slowdown
from syncscan.whatif.waits import Hold

REPEATABILITY = 0.01
"""Two measurements of the same step differ by about this part of it."""
MODEL = 0.10
"""The part of a saving that the model itself leaves uncertain."""
FULL = 0.9
"""What works this part of a step bounds it."""
PACED = 0.05
"""A step that waits this part of its time for the DataLoader's workers goes at their pace."""


class Stage:
    """One analysis, ready to be projected: its graph, built once, and a projector for each calibration, made once."""

    def __init__(self, analysis: Analysis, unprofiled_us: float | None) -> None:
        self.trace = analysis.trace
        self.unprofiled_us = unprofiled_us
        self.observed_ns = step_period(analysis.trace)
        self.number = {f.id: n for n, f in enumerate(analysis.findings)}
        self.holds = _holds(analysis.findings)
        self.graph = build(analysis.trace, self.holds)
        self.paced = loader_waits(analysis.trace) > PACED * self.observed_ns
        self._projectors: dict[float | None, Projector] = {}

    def projector(self, step_ms: float | None = None) -> Projector:
        """With the step's unprofiled time as given, else as capture stored it, else with a guess."""
        known = step_ms * 1e6 if step_ms else self.unprofiled_us and self.unprofiled_us * 1e3
        if known not in self._projectors:
            found = calibrate(self.graph, self.observed_ns, known, *_recorded(self.trace))
            self._projectors[known] = Projector(self, found)
        return self._projectors[known]


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
        keep_timing: keep explicit synchronises, whatever the selectors say: they are wanted for timing.
        stage: what an earlier projection of this analysis has built.

    Raises:
        UsageError: a selector is none, or names nothing.
    """
    stage = stage or Stage(analysis, analysis.step.unprofiled_us)
    chosen = [f for f in select(analysis, selectors) if not (keep_timing and f.diagnosis.cause is Cause.EXPLICIT)]
    return stage.projector(step_ms).projection(chosen)


def pipeline(
    analysis: Analysis, scope: str, beside: str = "", *, step_ms: float | None = None, stage: Stage | None = None
) -> Pipeline:
    """An upper bound on what running a scope on a stream of its own, a step ahead, would save.

    The scope's device work waits for nothing and nothing waits for it, and the device does both at full speed: no
    pipeline does better. What real ones reach depends on how far the scope's kernels leave room for others.

    Args:
        analysis: of a trace whose scopes launch device work.
        scope: glob of the scope that would run ahead.
        beside: glob of the only scope that it would run beside; by default all the rest of the step.
        step_ms: the step's time without the profiler in ms.
        stage: what an earlier projection of this analysis has built.

    Raises:
        UsageError: no scope has such a name.
    """
    stage = stage or Stage(analysis, analysis.step.unprofiled_us)
    projector = stage.projector(step_ms)
    apart = build(stage.trace, stage.holds, ahead_of=scope)
    mine, rest = apart.work_of(moved=True), apart.work_of(moved=False)
    if beside:
        rest = build(stage.trace, stage.holds, ahead_of=beside).work_of(moved=True)
    replay = projector.calibration.replay
    best = period(prepare(apart, replay.scale, replay.stretch))
    best = min(max(best, projector.before.period - min(mine, rest)), projector.before.period)
    unit = projector.unit
    return Pipeline(scope, beside, mine * unit, rest * unit, projector.before.period * unit, best * unit)


def _holds(findings: Sequence[Finding]) -> list[Hold]:
    return [
        Hold(n, o.sync.calls, o.sync.device, o.sync.stream, o.sync.diagnosis.removal, o.sync.ops)
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


class Projector:
    """Projects findings on one calibration."""

    def __init__(self, stage: Stage, calibration: Calibration) -> None:
        self.stage, self.calibration = stage, calibration
        self.graph = stage.graph
        self.before = steady(calibration.replay)
        self.unit = calibration.unit / 1e3
        """Turns the replay's ns into reported µs."""
        self._known: dict[frozenset[int], Steady] = {}

    def after(self, removed: frozenset[int]) -> Steady:
        """The step without these findings, replayed once."""
        if removed not in self._known:
            then = steady(self.calibration.replay, removed)
            paced = self.stage.paced and then.period < self.before.period
            self._known[removed] = replace(then, period=self.before.period) if paced else then
        return self._known[removed]

    def projection(self, findings: Sequence[Finding], *, quick: bool = False) -> Projection:
        """The step without these findings; a `quick` one replays nothing more for its range."""
        removed = frozenset(self.stage.number[f.id] for f in findings)
        after, unit, found = self.after(removed), self.unit, self.calibration
        bound = Bound.INPUT if self.stage.paced else self._bound(after)
        return Projection(
            removed=tuple(f.id for f in findings),
            observed_us=found.observed_ns / 1e3,
            baseline_us=self.before.period * unit,
            predicted_us=after.period * unit,
            range_us=self.range(removed, quick),
            bound_after=bound,
            host_limit_us=after.host * unit,
            device_limit_us=after.device * unit,
            notes=(*found.notes, *_notes(findings, bound, self._slowdown)),
            profiled_us=self.stage.observed_ns / 1e3,
            calibrated=found.known,
            host_scale=found.replay.scale,
        )

    def moved(self, finding: Finding) -> float:
        """How much of its wait, in µs a step, turns up again at the other syncs without it."""
        number = self.stage.number[finding.id]
        own = self.before.waits.get(number, 0.0)
        more = self.after(frozenset([number])).waited - (self.before.waited - own)
        return max(0.0, min(own, more) * self.unit)

    def range(self, removed: frozenset[int], quick: bool = False) -> tuple[float, float]:
        """What the step may take instead, in µs.

        From the replays of single steps, from the replays that explain the observation as well, from a replacement that
        does without the op, from what a device without pauses loses, and from what the model leaves open.
        """
        base = self.before.period
        if not base:
            return 0.0, 0.0
        ratio = self.after(removed).period / base
        others = [ratio] if quick else [ratio, *self._others(removed)]
        extra = REPEATABILITY + MODEL * (1.0 - ratio)
        low, high = min(others) - extra, max(others) + extra
        most = max(1.0 + REPEATABILITY, ratio)
        return max(low, 0.0) * base * self.unit, min(high, most) * base * self.unit

    def _others(self, removed: frozenset[int]) -> list[float]:
        """What else the step may take without these findings, as parts of the step as it is."""
        replay, base = self.calibration.replay, self.before.period
        found = [steady(replay, removed, whole=True).period / base, self._throttled(removed) / base]
        found += [period(other, removed) / whole for other, whole in self._slack if whole]
        return found + [period(replay, removed, [k]) / alone for k, alone in self._alone if alone]

    @cached_property
    def _slack(self) -> list[tuple[Replay, float]]:
        return [(replay, period(replay)) for replay in self.calibration.slack]

    @cached_property
    def _alone(self) -> list[tuple[int, float]]:
        count = len(self.graph.programs)
        replay = self.calibration.replay
        return [(k, period(replay, steps=[k])) for k in range(count)] if count > 1 else []

    @cached_property
    def _slowdown(self) -> float:
        return slowdown(self.stage.trace, self.before.device / self.before.period if self.before.period else 0.0)

    @cached_property
    def _hot(self) -> Replay:
        replay = self.calibration.replay
        return prepare(self.graph, replay.scale, replay.stretch * (1.0 + self._slowdown))

    def _throttled(self, removed: frozenset[int]) -> float:
        """The step if the device slows down as far as it loses its pauses."""
        then = self.after(removed)
        cool = then.period
        if not then.device or not cool:
            return cool
        before, after = self.before.device / self.before.period, then.device / cool
        lost = (after - before) / (1.0 - before) if before < 1.0 else 0.0
        return cool + min(max(lost, 0.0), 1.0) * (period(self._hot, removed) - cool)

    def _bound(self, after: Steady) -> Bound:
        pauses = (self.graph.occupied_ns - self.graph.busy_ns) * self.calibration.replay.stretch
        device = after.device + max(pauses, 0.0)
        if device >= FULL * after.period and device >= after.host:
            return Bound.DEVICE
        if after.host >= FULL * after.period or after.waited < (1.0 - FULL) * after.period:
            return Bound.HOST
        return Bound.SYNC


def _notes(findings: Sequence[Finding], bound: Bound, slower: float) -> list[str]:
    notes = []
    if any(f.diagnosis.removal is Removal.KERNELS for f in findings):
        notes.append("The kernels behind a data-dependent shape stay: a replacement may compute more or less.")
    if findings and bound is Bound.DEVICE and slower:
        notes.append(
            f"A device without pauses may run into its power limit: the range allows for kernels {slower:.0%} slower."
        )
    if findings and bound is Bound.INPUT:
        notes.append("The step waits for the DataLoader's workers: they set its pace, with or without its syncs.")
    return notes
