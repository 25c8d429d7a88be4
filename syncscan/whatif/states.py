"""Project the step's states: its syncs removed or not, its network compiled or not, and both.

Only of steps that their launches hold: there a compile saves launches. What one of them saves alone is nothing where
the other prevents its gain, so that both are projected together.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from syncscan.facts.device_work import share_in_all_steps
from syncscan.facts.network import is_compiled
from syncscan.model.finding import Finding
from syncscan.model.habit import Area, Basis, Change, Habit
from syncscan.model.projection import Projection
from syncscan.model.states import (
    COMPILE,
    EAGER,
    REDUCE_OVERHEAD,
    Obstacle,
    ProjectedState,
    States,
    in_words,
    prevented,
    standing,
)
from syncscan.model.step import REPEATABILITY
from syncscan.whatif.compile_changes import Launching
from syncscan.whatif.habit_gains import by_gain
from syncscan.whatif.joint import Joint
from syncscan.whatif.projector import Projector

HELD = 0.6
"""A device that works a larger part of the step leaves little to launches."""
STALLED = 1 / 3
"""A step whose host stalls for a larger part of it isn't held by launches."""
LEAST_LAUNCHES = 50
"""Fewer launches per step aren't worth a compile."""
LEAST_NS = 3_000
"""No launch takes the host less: what is taken to be the host's where no unprofiled time is known."""
STEADY = 0.9
"""The part of a step's kernels that all steps have, by their names: with less, shapes or control flow change."""
WEIGHED = 3
"""Most syncs whose cost once the step is compiled is projected, a replay each: the costliest within the network, then
others."""
RULE, GRAPH = "launch-bound", "graph"


def together(
    projector: Projector, findings: Sequence[Finding], habits: Sequence[Habit]
) -> tuple[tuple[Finding, ...], tuple[Habit, ...], States | None, Change, tuple[Obstacle, ...]]:
    """Project syncs and launches together.

    Returns findings and habits with what each gains with the other, the step's states, the change that compiling with
    CUDA graphs makes to the step without the syncs that break them, and the obstacles to that, where launches hold it.
    """
    held = _worth(projector) and not _stalled(projector, habits)
    obstacles = projector.obstacles if held or any(h.rule == RULE for h in habits) else ()
    if not held:
        bounds = tuple(h if h.rule != RULE else _at_most(projector, h, obstacles) for h in habits)
        return tuple(findings), bounds, None, Change(), obstacles
    program = [f for f in findings if not f.intended]
    joint = projector.joint(_best(obstacles, removed=True))
    within = frozenset(f.id for f in joint.breaking())
    breaking = [f for f in program if f.id in within]
    states = _states(projector, obstacles, program, breaking)
    compiles = joint.how is not Launching.EAGER
    weighed = {f.id for f in [*breaking, *(f for f in program if f.id not in within)][:WEIGHED] if compiles}
    least = joint.likely_us(program) if weighed else 0.0
    costed_findings = tuple(_once_compiled(joint, f, program, least) if f.id in weighed else f for f in findings)
    reached_habits = [_as_reached(projector, h, states, obstacles) if h.rule == RULE else h for h in habits]
    listed_habits = [h for h in reached_habits if h.rule != RULE or states.pair or h.recoverable_us]
    ordered = tuple(sorted(listed_habits, key=by_gain))
    return costed_findings, ordered, states, joint.change(breaking), obstacles


def _best(obstacles: Sequence[Obstacle], *, removed: bool) -> str:
    """Return the way to launch with the least launches that can be had, with or without the step's syncs."""
    unavailable = prevented(standing(obstacles, removed))
    return next((way for way in (REDUCE_OVERHEAD, COMPILE) if way not in unavailable), EAGER)


def _at_most(projector: Projector, habit: Habit, obstacles: Sequence[Obstacle]) -> Habit:
    """Return the habit of launches with their time as an upper bound; with no gain where no way to save it is left."""
    if obstacles:
        fix = " ".join([in_words(obstacles), *dict.fromkeys(obstacle.fix for obstacle in obstacles)])
        habit = replace(habit, fix=fix)
    if habit.recoverable_us is None or habit.recoverable_range_us is None:
        return habit
    if _best(obstacles, removed=True) == EAGER:
        return replace(habit, recoverable_us=None, recoverable_range_us=None, basis=None)
    step_us = projector.unprofiled_us or projector.observed_ns / 1e3
    return habit.gaining_at_most(max(habit.recoverable_us, habit.recoverable_range_us[1]), step_us)


def _worth(projector: Projector) -> bool:
    """Return whether launches hold the step, for sure, and the same ones in each."""
    if not projector.projectable or is_compiled(projector.trace):
        return False
    step, steps = projector.calibrated(), max(1, len(projector.graph.programs))
    launches = sum(p.launches for p in projector.graph.programs) / steps
    if launches < LEAST_LAUNCHES or not step.before.period or step.paced_by is not None:
        return False
    known = step.calibration.known
    whole = step.before.period if known else launches * LEAST_NS
    return step.before.device < HELD * whole and share_in_all_steps(projector.trace) >= STEADY


def _stalled(projector: Projector, habits: Sequence[Habit]) -> bool:
    """Return whether something else than launches takes much of the host's time: a lock, a collection, its input.

    That goes first, and an op that launches can't be measured beside it.
    """
    step = projector.calibrated()
    gains = [h.recoverable_us or 0.0 for h in habits if h.area in (Area.HOST, Area.INPUT)]
    return max(gains, default=0.0) >= STALLED * step.before.period * step.unit


def _states(
    projector: Projector, obstacles: Sequence[Obstacle], program: Sequence[Finding], breaking: Sequence[Finding]
) -> States:
    states = []
    for launches in (EAGER, COMPILE, REDUCE_OVERHEAD):
        for removed in (False, True) if program else (False,):
            same = launches == EAGER and not removed
            if not same and launches not in prevented(standing(obstacles, removed)):
                states.append(_state(projector.joint(launches).projection(program if removed else []), removed))
    plain = projector.calibrated()
    base = plain.before.period * plain.unit
    alone, both = (projector.joint(_best(obstacles, removed=removed)) for removed in (False, True))
    pair = breaking and both.how is not Launching.EAGER
    return States(
        baseline_us=base,
        each=tuple(states),
        breaking=tuple(f.id for f in breaking),
        eager_frames=both.keeps_frames_eager(),
        pair=_state(both.projection(breaking), True) if pair else None,
        alone_us=(plain.fixed.projection(breaking).saving_us if breaking else 0.0, alone.projection([]).saving_us),
    )


def _state(projection: Projection, removed: bool) -> ProjectedState:
    return ProjectedState(projection.launches, removed, projection.predicted_us, projection.range_us)


def _once_compiled(joint: Joint, finding: Finding, program: Sequence[Finding], least_us: float) -> Finding:
    """Return a finding with its cost in the step whose network is compiled and that has no other syncs (`least_us`)."""
    if finding.recoverable_us is None:
        return finding
    gain = max(0.0, joint.likely_us([f for f in program if f.id != finding.id]) - least_us)
    return replace(finding, once_compiled_us=gain)


def _as_reached(projector: Projector, habit: Habit, states: States, obstacles: Sequence[Obstacle]) -> Habit:
    """Return the habit with what compiling with CUDA graphs reaches of the step as it is, its syncs in place.

    A step without any may also fit in one graph of the program's own: then that is the likely gain, and the
    range has both; what another habit is about isn't saved there. Where an obstacle is in the way of graphs, what
    launches take is an upper bound.
    """
    if standing(obstacles, removed=True):
        return _at_most(projector, habit, obstacles)
    parted = habit.splits or any(not f.intended and f.per_step >= 1.0 for f in projector.findings)
    best = _best(obstacles, removed=False)
    ways = [best] if parted or best != REDUCE_OVERHEAD else [GRAPH, best]
    base = states.baseline_us
    most = base if habit.cost_us is None else habit.cost_us
    gains = []
    for way in ways:
        p, limit = projector.joint(way).projection([]), most if way == GRAPH else base
        gains.append([min(max(0.0, us), limit) for us in (p.saving_us, *p.saving_range_us)])
    likely, low, high = zip(*gains, strict=True)
    gain = likely[0] if likely[0] >= REPEATABILITY * base else 0.0
    habit = replace(habit, changes=(projector.joint(ways[0]).change([]),))
    return habit.gaining(gain, (min(low), max(high)), Basis.REPLAY, base)
