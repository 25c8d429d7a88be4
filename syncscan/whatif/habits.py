"""From habits to the same with what the replay says they cost: the step replayed with each one's changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from syncscan.model.analysis import Analysis
from syncscan.model.habit import Basis, Change, Habit, HabitGain
from syncscan.whatif.build import build
from syncscan.whatif.project import MODEL, REPEATABILITY, Projector, Stage
from syncscan.whatif.replay import period, prepare

SURE = 0.5
"""A range reaches down to no less than this part of the step that the replay leaves."""


def project_habits(
    analysis: Analysis, habits: Sequence[Habit], *, step_ms: float | None = None, stage: Stage | None = None
) -> tuple[Habit, ...]:
    """Replay the step without each habit.

    A habit whose change gives work a stream of its own gets an upper bound: no pipeline does better, and how much of it
    two streams really gain depends on how much of the device each leaves free, which a trace doesn't tell.

    Args:
        analysis: of the trace in which the habits were found.
        habits: as found, with their measured costs.
        step_ms: the step's time without the profiler in ms, if you measured it and capture didn't.
        stage: what an earlier projection of this analysis has built.

    Returns:
        The habits with gains, by the gain's size; one without changes keeps its measured upper bound.
    """
    if not any(h.changes for h in habits):
        return tuple(habits)
    stage = stage or Stage(analysis, analysis.step.unprofiled_us)
    projector = stage.projector(step_ms)
    if not stage.graph.programs or not projector.before.period:
        return tuple(habits)
    found = [_projected(stage, projector, h) if h.changes else h for h in habits]
    return tuple(sorted(found, key=lambda h: (-(h.gain.recoverable_us if h.gain else 0.0), h.id)))


def _projected(stage: Stage, projector: Projector, habit: Habit) -> Habit:
    base = projector.before.period * projector.unit
    savings = [base - _after(stage, projector, change) * projector.unit for change in habit.changes]
    bound = bool(habit.changes[0].ahead)
    if bound and habit.cost_us is not None:
        savings = [min(s, habit.cost_us) for s in savings]
    slack = REPEATABILITY * base + MODEL * max(savings[0], 0.0)
    low, high = min(savings) - slack, max(savings) + min(slack, SURE * (base - max(savings)))
    gain = HabitGain(
        recoverable_us=_within(savings[0], base),
        range_us=(0.0, _within(savings[0], base)) if bound else (_within(low, base), _within(high, base)),
        basis=Basis.UPPER_BOUND if bound else Basis.REPLAY,
    )
    return replace(habit, gain=gain, severity=gain.severity(base))


def _after(stage: Stage, projector: Projector, change: Change) -> float:
    """The time of a step with this change, in the replay's ns."""
    removed = frozenset(stage.number[i] for i in change.removed if i in stage.number)
    if not (change.host or change.work or change.ahead or change.queued):
        return projector.after(removed).period
    graph = build(stage.trace, stage.holds, change=change)
    replay = projector.calibration.replay
    return min(period(prepare(graph, replay.scale, replay.stretch), removed), projector.before.period)


def _within(us: float, base: float) -> float:
    return max(0.0, min(us, base))
