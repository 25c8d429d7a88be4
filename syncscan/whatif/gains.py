"""Project what a Projector's findings would gain: alone, together, in sets worth removing, and the step's outlook."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from syncscan.facts.slow_launches import library_setups, long_first_launches
from syncscan.model.duration import duration
from syncscan.model.finding import Cause, Finding
from syncscan.model.projection import RemovalGroup
from syncscan.model.step import REPEATABILITY, StepSummary
from syncscan.whatif.bound import decided, outlook, unsettled, without_replay
from syncscan.whatif.calibrated_step import CalibratedStep
from syncscan.whatif.groups import worth_removing
from syncscan.whatif.projector import NO_LAUNCHES, Projector
from syncscan.whatif.replay import STEADY

WEIGHED = 25
"""Findings whose range is sought with all replays, those that cost the most; so a trace with hundreds stays fast."""
REPLAYED = 200
"""Up to this many findings are each replayed alone. Of more, only those with a measurable effect: a replay each
would cost what the square of their number does."""

MOST_OF = 0.5
"""Least part of the recorded steps that calls on first use take to be what limits them."""


def project_gains(
    projector: Projector, step: StepSummary
) -> tuple[StepSummary, tuple[Finding, ...], tuple[RemovalGroup, ...]]:
    """Return the step and its findings with what removing them would gain, sorted by that, and sets worth removing.

    Gains are µs of the unprofiled step where its time is known (`step.unprofiled_us`), else of the profiled one.

    Gives the unchanged step and findings where the trace is missing too much of its steps for a verdict.
    """
    step = replace(step, unprofiled_us=projector.unprofiled_us)
    if not projector.replayable:
        return replace(step, reason=step.reason or NO_LAUNCHES), projector.findings, ()
    calibrated = projector.calibrated()
    if reason := unsettled(calibrated):
        return without_replay(step, reason, projector.surroundings.sampled_input), projector.findings, ()
    calibrated = calibrated.fixed
    costliest = sorted(projector.findings, key=lambda f: -(f.waited_us + f.idle_us))
    alone, joint_replays = _worth_replays(calibrated, [f for f in costliest if not _is_once(f)])
    gained = [_gained(calibrated, f, n >= WEIGHED) for n, f in enumerate(alone)]
    once_only = [f for f in costliest if _is_once(f)]
    ranked_findings = tuple(sorted([*gained, *_shared(calibrated, joint_replays), *once_only], key=_rank))
    removable = [f for f in ranked_findings if not f.intended]
    together = calibrated.projection(removable)
    groups = _groups(calibrated, removable)
    step = decided(calibrated, projector.ends(), step, frozenset(projector.number[f.id] for f in removable))
    step = replace(
        step,
        recoverable_us=max(0.0, together.saving_us),
        recoverable_range_us=together.saving_range_us,
        outlook=outlook(together, _first_use(projector)),
    )
    return step, ranked_findings, groups


def _is_once(finding: Finding) -> bool:
    """Return whether it sets something up on purpose: it is in no further step, so none gains by its removal."""
    return finding.intended and finding.cause is Cause.INIT


def _first_use(projector: Projector) -> str:
    """Return which calls that are made once take most of the recorded steps, with the advice; empty where none do."""
    trace = projector.trace
    rows = [*long_first_launches(trace).tolist(), *library_setups(trace).tolist()]
    took, steps_ns = int(trace.slices.dur[rows].sum()), projector.observed_ns * max(1, projector.measured.count)
    if took < MOST_OF * steps_ns:
        return ""
    calls = "1 call takes" if len(rows) == 1 else f"{len(rows)} calls take"
    times = f"{duration(took / 1e3)} of {duration(steps_ns / 1e3)}"
    return f"{calls} {times}, as on first use, once, to load code or set a library up; warm up before recording"


def _worth_replays(step: CalibratedStep, costliest: Sequence[Finding]) -> tuple[list[Finding], list[Finding]]:
    """Return the findings that are replayed alone, and the others, each of which could save less than is measurable."""
    if len(costliest) <= REPLAYED:
        return list(costliest), []
    least = REPEATABILITY * step.before.period * step.unit
    telling = [f for f in costliest[WEIGHED:] if step.most(step.number[f.id]) >= least]
    alone = [*costliest[:WEIGHED], *telling[: REPLAYED - WEIGHED]]
    replayed = {f.id for f in alone}
    return alone, [f for f in costliest if f.id not in replayed]


def _gained(step: CalibratedStep, finding: Finding, quick: bool) -> Finding:
    projection = step.projection([finding], quick=quick)
    gained = finding.gaining(max(0.0, projection.saving_us), projection.saving_range_us, projection.baseline_us)
    return replace(gained, moved_us=min(step.moved([finding]), finding.waited_us), untold=step.untold(finding))


def _shared(step: CalibratedStep, findings: Sequence[Finding]) -> list[Finding]:
    """Return these findings with their parts of what they save together, by what each could save at most.

    None saves more alone than all together, or than its own waits and calls last: so far its range goes.
    """
    if not findings:
        return []
    together = step.projection(findings, quick=True)
    saving, moved = max(0.0, together.saving_us), step.moved(findings)
    most = [step.most(step.number[f.id]) for f in findings]
    highest = together.saving_range_us[1]
    total = sum(most) or 1.0
    return [
        replace(
            finding.gaining(min(saving * own / total, own), (0.0, min(highest, own)), together.baseline_us),
            moved_us=min(moved * own / total, finding.waited_us),
            untold=step.untold(finding),
        )
        for finding, own in zip(findings, most, strict=True)
    ]


def _rank(finding: Finding) -> tuple[bool, float, float, str]:
    gain = finding.recoverable_us or 0.0
    return finding.intended, -round(gain, 3), -finding.waited_us, finding.id


def _groups(step: CalibratedStep, findings: Sequence[Finding]) -> tuple[RemovalGroup, ...]:
    gains = {step.number[f.id]: f.recoverable_us or 0.0 for f in findings}
    ids = {step.number[f.id]: f.id for f in findings}
    longest = sorted(findings, key=lambda f: -(f.waited_us + f.idle_us))
    candidates = [step.number[f.id] for f in longest]

    def most(number: int, gone: frozenset[int]) -> float:
        # Two steady states are each found to within a part of them.
        return step.most(number, gone) / step.unit + 2 * STEADY * step.before.period

    return tuple(
        RemovalGroup(
            ids=tuple(ids[n] for n in members),
            saving_us=(before - after) * step.unit,
            alone_us=max(gains[n] for n in members),
            after_us=after * step.unit,
        )
        for members, before, after in worth_removing(lambda removed: step.after(removed).period, candidates, most)
    )
