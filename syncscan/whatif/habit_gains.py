"""Project what habits cost, by replaying the step with each one's changes."""

from __future__ import annotations

from collections.abc import Sequence

from syncscan.model.habit import Basis, Habit
from syncscan.model.step import REPEATABILITY
from syncscan.whatif.calibrated_step import MODEL, CalibratedStep
from syncscan.whatif.projector import Projector

SURE = 0.5
"""Least part of a replay's saving to which its range extends."""


def project_habits(projector: Projector, habits: Sequence[Habit]) -> tuple[Habit, ...]:
    """Replay the step without each habit, and order the habits by gain.

    If no replay takes the step's time, its habits get upper bounds. One without changes keeps its measured upper bound;
    habits with less gain than can be measured are left out.
    """
    if not any(h.changes for h in habits) or not projector.replayable:
        return tuple(habits)
    step = projector.calibrated()
    if not step.before.period:
        return tuple(habits)
    least = REPEATABILITY * step.before.period * step.unit
    gained = [_gaining(projector, step, habit) if habit.changes else habit for habit in habits]
    measurable = [h for h in gained if h.recoverable_us is None or h.recoverable_us >= least]
    return tuple(sorted(measurable, key=by_gain))


def by_gain(habit: Habit) -> tuple[float, str]:
    """Order habits by their gain, the largest first."""
    return -(habit.recoverable_us or 0.0), habit.id


def _gaining(projector: Projector, step: CalibratedStep, habit: Habit) -> Habit:
    """Return the habit with the gain of its changes: the likely one, with the most and with the least saved.

    If no replay takes the step's time, at most the measured cost and all that the recording doesn't explain.
    """
    unexplained_us, observed_us = _unexplained_us(step), step.calibration.observed_ns / 1e3
    base, cost_us = step.before.period * step.unit, habit.cost_us
    if unexplained_us is not None:
        return habit.gaining_at_most(_within((cost_us or 0.0) + unexplained_us, observed_us), observed_us)
    savings = []
    for change in habit.changes:
        saved = max(0.0, step.before.period - projector.then(frozenset(), change)) * step.unit
        savings.append(saved / min(1.0, step.replay.scale) if change.unstretched else saved)
    if habit.changes[0].calls and cost_us is not None:
        savings = [min(s, cost_us) for s in savings]
    slack = REPEATABILITY * base + MODEL * max(savings[0], 0.0)
    low, high = min(savings) - slack, max(savings) + min(slack, SURE * (base - max(savings)))
    range_us = _within(low, base), _within(high, base)
    return habit.gaining(_within(savings[0], base), range_us, Basis.REPLAY, observed_us)


def _unexplained_us(step: CalibratedStep) -> float | None:
    """Return the unprofiled step's time beyond the recorded one, in µs, if no replay takes its time; else None.

    Something then delays the step that the recording doesn't show, such as an allocator without a free block.
    """
    calibration = step.calibration
    if abs(step.before.period * step.unit * 1e3 - calibration.observed_ns) <= MODEL * calibration.observed_ns:
        return None
    return max(0.0, calibration.observed_ns - calibration.profiled_ns) / 1e3


def _within(us: float, base: float) -> float:
    return max(0.0, min(us, base))
