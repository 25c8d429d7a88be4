"""From habits to the same with what the replay says they cost: the step replayed with each one's changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from syncscan.model.habit import Basis, Change, Habit, HabitGain
from syncscan.whatif.calibrate import REPEATABILITY
from syncscan.whatif.calibrated_step import MODEL, CalibratedStep
from syncscan.whatif.projector import Projector
from syncscan.whatif.replay import period
from syncscan.whatif.replayed_steps import NO_CHANGE

SURE = 0.5
"""A range reaches down to no less than this part of the step that the replay leaves."""


def project_habits(projector: Projector, habits: Sequence[Habit]) -> tuple[Habit, ...]:
    """Replay the step without each habit.

    A habit whose change gives work a stream of its own gets an upper bound: no pipeline does better, and how much of it
    two streams really gain depends on how much of the device each leaves free, which a trace doesn't tell. Where no
    replay takes the step's time, its habits get upper bounds too.

    Args:
        projector: of the trace in which the habits were found.
        habits: as found, with their measured costs.

    Returns:
        The habits with gains, by the gain's size; one without changes keeps its measured upper bound. One that would
        save less than can be measured isn't among them.
    """
    if not any(h.changes for h in habits) or not projector.replayable:
        return tuple(habits)
    step = projector.calibrated()
    if not step.before.period:
        return tuple(habits)
    found = [_gained(projector, step, h) if h.changes else h for h in habits]
    least = REPEATABILITY * step.before.period * step.unit
    telling = [h for h in found if h.gain is None or h.gain.recoverable_us >= least]
    return tuple(sorted(telling, key=lambda h: (-(h.gain.recoverable_us if h.gain else 0.0), h.id)))


def _gained(projector: Projector, step: CalibratedStep, habit: Habit) -> Habit:
    unexplained_us = _unexplained_us(step)
    return _projected(projector, step, habit) if unexplained_us is None else _bounded(step, habit, unexplained_us)


def _projected(projector: Projector, step: CalibratedStep, habit: Habit) -> Habit:
    base = step.before.period * step.unit
    savings = [base - _after(projector, step, change) * step.unit for change in habit.changes]
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


def _unexplained_us(step: CalibratedStep) -> float | None:
    """What the unprofiled step takes beyond the recorded one, in µs, where no replay takes its time; else None.

    Then something holds the step that the recording doesn't show, such as an allocator that finds no free block.
    """
    found = step.calibration
    if abs(step.before.period * step.unit * 1e3 - found.observed_ns) <= MODEL * found.observed_ns:
        return None
    return max(0.0, found.observed_ns - found.profiled_ns) / 1e3


def _bounded(step: CalibratedStep, habit: Habit, unexplained_us: float) -> Habit:
    """At most a habit takes what it was measured to take, and all that the recording doesn't explain."""
    base = step.calibration.observed_ns / 1e3
    most = _within((habit.cost_us or 0.0) + unexplained_us, base)
    gain = HabitGain(most, (0.0, most), Basis.UPPER_BOUND)
    return replace(habit, gain=gain, severity=gain.severity(base))


def _after(projector: Projector, step: CalibratedStep, change: Change) -> float:
    """The time of a step with this change, in the replay's ns."""
    if change == NO_CHANGE:
        return step.before.period
    return min(period(step.replay_of(projector.changed(change))), step.before.period)


def _within(us: float, base: float) -> float:
    return max(0.0, min(us, base))
