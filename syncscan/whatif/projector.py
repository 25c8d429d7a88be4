"""Projections from a trace and its findings: the step replayed without chosen findings, each with a range."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property, reduce

import numpy as np
from msgspec.structs import replace

from syncscan.errors import UsageError
from syncscan.facts.network import is_compiled
from syncscan.facts.period import step_period
from syncscan.model.finding import Cause, Finding
from syncscan.model.habit import Change
from syncscan.model.projection import Projection, Schedule, StepState
from syncscan.model.runtime_calls import is_query
from syncscan.model.states import COMPILE, EAGER, REDUCE_OVERHEAD, Obstacle, in_words, prevented, standing
from syncscan.model.step import NOT_MEASURED, REPEATABILITY, SOUND, Bound, Integrity, StepSummary
from syncscan.model.step_times import StepTimes
from syncscan.model.trace import HOST, Trace
from syncscan.whatif.bound import NOTHING, bound_of, unsettled
from syncscan.whatif.build import build
from syncscan.whatif.calibrate import MAX_SCALE, MIN_SCALE, calibrate, doubt, reach, refuse
from syncscan.whatif.calibrated_step import MODEL, CalibratedStep
from syncscan.whatif.compile_changes import Launching
from syncscan.whatif.compile_reach import Reach
from syncscan.whatif.graph import Graph
from syncscan.whatif.joint import Joint
from syncscan.whatif.obstacles import obstacles
from syncscan.whatif.replay import period
from syncscan.whatif.replayed_steps import NO_CHANGE, ReplayedSteps, both, find_steps, with_change
from syncscan.whatif.selectors import select
from syncscan.whatif.surroundings import Surroundings, surroundings_of
from syncscan.whatif.unfold import StepSchedules
from syncscan.whatif.wait_effects import NumberedPoint

MOST_UNSURE = 0.5
"""A time is taken to be known within this part of it at least: of a few steps that differ more nothing can be said."""
NO_LAUNCHES = "Its steps launch nothing, so their bound can't be determined."


class Projector:
    """One analyzed trace, ready to be projected: its graph, built once, and one calibrated replay for each step time.

    Without `measured`, nothing but host and device is taken to make the step what it is. If `integrity` allows no
    verdict, nothing is replayed.
    """

    def __init__(
        self,
        trace: Trace,
        findings: Sequence[Finding],
        unprofiled_us: float | None,
        measured: StepSummary = NOT_MEASURED,
        integrity: Integrity = SOUND,
        in_source: Sequence[Obstacle] = (),
    ) -> None:
        self.trace, self.findings, self.unprofiled_us = trace, tuple(findings), unprofiled_us
        self.measured, self.integrity, self.in_source = measured, integrity, tuple(in_source)
        self.number = {f.id: n for n, f in enumerate(findings)}
        self.points = [NumberedPoint(n, o, f.replacement) for n, f in enumerate(findings) for o in f.occurrences]
        self._calibrated: dict[float | None, CalibratedStep] = {}
        self._changed: dict[Change, Graph] = {}
        self._joint: dict[tuple[str, float | None], Joint] = {}
        self._reached: dict[bool, dict[frozenset[str], Reach]] = {False: {}, True: {}}

    @cached_property
    def observed_ns(self) -> float:
        return step_period(self.trace)

    @cached_property
    def surroundings(self) -> Surroundings:
        return surroundings_of(self.trace, self.findings, self.measured)

    @cached_property
    def obstacles(self) -> tuple[Obstacle, ...]:
        """None of a step that is compiled already."""
        if not self.replayable or is_compiled(self.trace):
            return ()
        breaking = self.joint(Launching.REDUCE_OVERHEAD).breaking()
        return obstacles(self.trace, self.steps.intervals, self.findings, breaking, self.in_source)

    @cached_property
    def steps(self) -> ReplayedSteps:
        return find_steps(self.trace, self.points)

    @cached_property
    def graph(self) -> Graph:
        return build(self.steps)

    def changed(self, change: Change) -> Graph:
        """Return the steps' graph with this change and with fixes; remedies ask again for what a habit asked for."""
        if change not in self._changed:
            graph = self.graph if change == NO_CHANGE else build(self._steps_with(change))
            self._changed[change] = graph.fixed()
        return self._changed[change]

    def then(self, removed: frozenset[int], change: Change) -> float:
        """Return the step's period with these findings (by number) fixed and this change made, in the replay's ns."""
        step = self.fixed
        if change == NO_CHANGE:
            return step.after(removed).period
        return period(step.replay_of(self.changed(change)), removed - step.behind)

    def _steps_with(self, change: Change) -> ReplayedSteps:
        if change == NO_CHANGE:
            return self.steps
        calls = frozenset(change.calls)
        waiting = [p for p in self.points if p.point.calls[0] not in calls]
        steps = self.steps if len(waiting) == len(self.points) else find_steps(self.trace, waiting)
        return with_change(steps, change)

    @property
    def replayable(self) -> bool:
        """Whether there is anything to replay: device work and a step, without missing data."""
        return self.integrity.verdict and bool(len(self.trace.device_rows)) and bool(self.graph.programs)

    @property
    def projectable(self) -> bool:
        """Whether the replay takes the step's time, so that its projections tell anything."""
        return self.replayable and not unsettled(self.calibrated())

    def calibrated(self, step_ms: float | None = None) -> CalibratedStep:
        """Use the step's unprofiled time as given, else as stored, else an estimate."""
        step_ns = step_ms * 1e6 if step_ms else self.unprofiled_us and self.unprofiled_us * 1e3
        if step_ms:
            refuse(step_ms * 1e6, reach(self.graph, step_ms * 1e6), self.observed_ns)
        return self._calibrated_to(step_ns)

    @property
    def fixed(self) -> CalibratedStep:
        """The step whose findings take along what their fixes do."""
        return self.calibrated().fixed

    def doubt(self, step_ms: float | None = None) -> str:
        """Return what is doubtful about the step's time without the profiler, a sentence; empty where nothing is.

        A time that a user gave (`step_ms`) and that the recorded step can't take is refused.
        """
        if self.unprofiled_us is None:
            return ""
        unprofiled_ns, recorded = self.unprofiled_us * 1e3, self.observed_ns
        by_host = min(max(unprofiled_ns, MIN_SCALE * recorded), MAX_SCALE * recorded)
        if step_ms:
            refuse(unprofiled_ns, reach(self.graph, unprofiled_ns) if self.replayable else by_host, recorded)
        replayed = self._calibrated_to(unprofiled_ns).before.period if self.replayable else by_host
        return doubt(unprofiled_ns, replayed, recorded)

    def _calibrated_to(self, step_ns: float | None) -> CalibratedStep:
        if step_ns not in self._calibrated:
            recorded = _recorded(self.trace, self.points, {*self.steps.threads})
            calibration = calibrate(self.graph, self.observed_ns, step_ns, *recorded, self._uncertainty(step_ns))
            self._calibrated[step_ns] = CalibratedStep(
                self.trace, self.graph, calibration, self.number, self.surroundings
            )
        return self._calibrated[step_ns]

    def _uncertainty(self, step_ns: float | None) -> float:
        """Within which part of it this time of the step (ns) is known: as capture timed it, or as a user says it."""
        stored = self.trace.info.capture
        if not stored.unprofiled_step_us or step_ns != stored.unprofiled_step_us * 1e3:
            return 0.0
        timed = StepTimes(stored.unprofiled_step_us, stored.unprofiled_steps_us, "", stored.unprofiled_period)
        return min(timed.uncertainty or 0.0, MOST_UNSURE)

    def ends(self) -> tuple[CalibratedStep, ...]:
        """Return the step with the least and the most of its time that may be the profiler's; empty if that's known."""
        calibration = self.calibrated().calibration
        if calibration.known:
            return ()
        ends = (replace(calibration, replay=replay, slack=()) for replay in calibration.slack)
        steps = (CalibratedStep(self.trace, self.graph, end, self.number, self.surroundings) for end in ends)
        return tuple(step.fixed for step in steps)

    def whatif(
        self,
        selectors: Sequence[str],
        *,
        step_ms: float | None = None,
        keep_timing: bool = False,
        launches: str | None = None,
        fix: bool = False,
    ) -> Projection:
        """Project the step without the findings that these selectors name, launched so; see `Analysis.whatif`."""
        self._require_work(step_ms)
        chosen = select(self.findings, selectors)
        removed = [f for f in chosen if not (keep_timing and f.cause is Cause.EXPLICIT)]
        if launches is not None:
            return self._as_launched(self.joint(launches, step_ms).projection(removed))
        step = self.calibrated(step_ms)
        projection = step.projection(removed)
        if fix:
            projection = replace(step.fixed.projection(removed), waits_us=projection.predicted_us)
        # What gains nothing leaves the device the limit that the analysis says it is.
        same = projection.saving_us < NOTHING * projection.baseline_us and projection.bound_after is not Bound.INPUT
        return replace(projection, bound_after=Bound.DEVICE) if same and self._full_device(step) else projection

    def _as_launched(self, projection: Projection) -> Projection:
        met = standing(self.obstacles, bool(projection.removed))
        if COMPILE in prevented(met) and projection.launches in (COMPILE, REDUCE_OVERHEAD):
            raise UsageError(f"{self.trace.info.path} gains nothing by a compile: {in_words(met)}", met[0].fix)
        if projection.launches in (EAGER, COMPILE) or not met:
            return projection
        return replace(projection, provided=f"Only once this is mended: {in_words(met)}")

    def _full_device(self, step: CalibratedStep) -> bool:
        own = frozenset(self.number[f.id] for f in self.findings if not f.intended)
        return not unsettled(step) and bound_of(step, own) is Bound.DEVICE

    def joint(self, launches: str, step_ms: float | None = None) -> Joint:
        ways = [way.value for way in Launching]
        if launches not in ways:
            raise UsageError(f"{launches!r} is no way to launch.", f"Use one of {', '.join(ways)}.")
        if launches != Launching.EAGER and is_compiled(self.trace):
            raise UsageError(
                f"{self.trace.info.path} contains a step that is already compiled.",
                "Record it without torch.compile to see what that gains.",
            )
        if (launches, step_ms) not in self._joint:
            self._joint[launches, step_ms] = Joint(
                self.trace,
                self.steps,
                self.findings,
                lambda change: build(with_change(self.steps, change)),
                self.calibrated(step_ms),
                Launching(launches),
                self._reached[launches == Launching.GRAPH],
            )
        return self._joint[launches, step_ms]

    def schedule(
        self,
        selectors: Sequence[str] = ("all",),
        *,
        at: int | None = None,
        step_ms: float | None = None,
        launches: str | None = None,
    ) -> Schedule | None:
        """Return one step with the findings fixed that these selectors name, launched so, launch by launch.

        Of the steps that are replayed, the one around `at` (ns) or the nearest is taken. None where there is no device
        work, or no launches.
        """
        if not self.integrity.verdict or not any(p.launches for p in self.graph.programs):
            return None
        chosen = select(self.findings, selectors)
        if launches is not None:
            return self.joint(launches, step_ms).schedule(chosen, at)
        removed = frozenset(self.number[f.id] for f in chosen)
        return StepSchedules(self.steps, self.calibrated(step_ms).fixed.replay).schedule(at, removed)

    def state(self, findings: Sequence[str], changes: Sequence[Change]) -> StepState | None:
        """Return the step without these findings and with these changes; None where nothing can be replayed."""
        if not self.replayable or not any(p.launches for p in self.graph.programs):
            return None
        step, removed = self.fixed, frozenset(self.number[id] for id in findings)
        change = reduce(both, changes, NO_CHANGE)
        middle, (low, high) = self.then(removed, NO_CHANGE) * step.unit, step.range(removed)
        if change == NO_CHANGE:
            return StepState(middle, (low, high))
        base = step.before.period
        after = min(base, self.then(removed, change))
        doubt = (REPEATABILITY * base + MODEL * (base - after)) * step.unit
        us = after * step.unit
        least, most = us - max(doubt, middle - low), us + max(doubt, high - middle)
        return StepState(us, (max(0.0, least), min(most, base * step.unit)))

    def after(self, findings: Sequence[str], changes: Sequence[Change], *, at: int | None) -> StepState | None:
        """Return that state with one of its steps, launch by launch."""
        state = self.state(findings, changes)
        if state is None:
            return None
        step, removed = self.fixed, frozenset(self.number[id] for id in findings)
        change = reduce(both, changes, NO_CHANGE)
        replay = step.replay_of(self.changed(change))
        schedule = StepSchedules(self._steps_with(change), replay, step.replay).schedule(at, removed)
        return StepState(state.us, state.range_us, schedule)

    def _require_work(self, step_ms: float | None) -> None:
        path = self.trace.info.path
        if not len(self.trace.device_rows):
            raise UsageError(f"{path} contains no device work, so there is nothing to replay.", "Record it on a GPU.")
        if not self.replayable:
            raise UsageError(f"{path} can't be replayed. {self.integrity.reason() or NO_LAUNCHES}")
        if reason := unsettled(self.calibrated(step_ms)):
            raise UsageError(f"{path} can't be projected. {reason}")


def _recorded(trace: Trace, points: Sequence[NumberedPoint], threads: Collection[int]) -> tuple[float, bool]:
    """Return how many ops and calls were recorded per step, and whether Python frames were recorded too.

    Only those on the replayed threads count, since recording others, or counters that are written as slices, takes none
    of their time. Nor do the queries of a polling loop: the host waits meanwhile.
    """
    s, steps = trace.slices, trace.main_steps
    of_threads = np.zeros(len(trace.tracks), np.bool_)
    of_threads[[*threads, *(step.track for step in steps[:1])]] = True
    mask = trace.is_category(*HOST) & of_threads[s.track]
    mask[[call for _, point, _ in points if is_query(point.api) for call in point.calls]] = False
    if steps:
        mask &= (s.ts >= steps[0].ts) & (s.ts < steps[-1].end)
    return float(np.count_nonzero(mask)) / max(1, len(steps)), trace.info.with_stack
