"""Project what habits cost, by replaying the step with each one's changes."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from syncscan.model.habit import Basis, Change, Habit, HabitGain, Segment
from syncscan.model.step import REPEATABILITY
from syncscan.whatif.calibrated_step import MODEL, CalibratedStep
from syncscan.whatif.projector import Projector
from syncscan.whatif.replay import period
from syncscan.whatif.replayed_steps import NO_CHANGE

SHOWN_SEGMENTS = 5
"""Number of launch segments that get their own projection, as a replay takes a few ms."""
SURE = 0.5
"""Least part of a replay's saving to which its range extends."""


def project_habits(projector: Projector, habits: Sequence[Habit]) -> tuple[Habit, ...]:
    """Replay the step without each habit.

    If no replay takes the step's time, its habits get upper bounds.

    Args:
        projector: projector of the habits' trace.
        habits: habits with their measured costs.

    Returns:
        The habits with gains, ordered by gain; one without changes keeps its measured upper bound. Habits with less
        gain than can be measured are left out.
    """
    if not any(h.changes for h in habits) or not projector.replayable:
        return tuple(habits)
    step = projector.calibrated()
    if not step.before.period:
        return tuple(habits)
    gained = [_gained(projector, step, h) if h.changes else h for h in habits]
    least = REPEATABILITY * step.before.period * step.unit
    gained = [replace(h, segments=_segments(projector, step, h.segments, least)) for h in gained]
    telling = [h for h in gained if h.gain is None or h.gain.recoverable_us >= least]
    return tuple(sorted(telling, key=lambda h: (-(h.gain.recoverable_us if h.gain else 0.0), h.id)))


def _gained(projector: Projector, step: CalibratedStep, habit: Habit) -> Habit:
    gain = _gain(projector, step, habit.changes, habit.cost_us)
    return replace(habit, gain=gain, severity=gain.severity(step.calibration.observed_ns / 1e3))


def _segments(
    projector: Projector, step: CalibratedStep, segments: Sequence[Segment], least_us: float
) -> tuple[Segment, ...]:
    """Return the first of a habit's segments with their own savings, without those too small to measure."""
    with_gains = [replace(s, gain=_gain(projector, step, s.changes, s.host_us)) for s in segments[:SHOWN_SEGMENTS]]
    return tuple(s for s in with_gains if s.gain and s.gain.recoverable_us >= least_us)


def _gain(projector: Projector, step: CalibratedStep, changes: Sequence[Change], cost_us: float | None) -> HabitGain:
    """Return the gain of these changes: the likely one, with the most and with the least saved.

    If no replay takes the step's time, at most the measured cost and all that the recording doesn't explain.
    """
    unexplained_us = _unexplained_us(step)
    base = step.before.period * step.unit
    if unexplained_us is not None:
        base = step.calibration.observed_ns / 1e3
        most = _within((cost_us or 0.0) + unexplained_us, base)
        return HabitGain(most, (0.0, most), Basis.UPPER_BOUND)
    savings = [_saving(projector, step, change) * step.unit for change in changes]
    if changes[0].calls and cost_us is not None:
        savings = [min(s, cost_us) for s in savings]
    slack = REPEATABILITY * base + MODEL * max(savings[0], 0.0)
    low, high = min(savings) - slack, max(savings) + min(slack, SURE * (base - max(savings)))
    return HabitGain(
        recoverable_us=_within(savings[0], base),
        range_us=(_within(low, base), _within(high, base)),
        basis=Basis.REPLAY,
    )


def _unexplained_us(step: CalibratedStep) -> float | None:
    """Return the unprofiled step's time beyond the recorded one, in µs, if no replay takes its time; else None.

    Something then delays the step that the recording doesn't show, such as an allocator without a free block.
    """
    calibration = step.calibration
    if abs(step.before.period * step.unit * 1e3 - calibration.observed_ns) <= MODEL * calibration.observed_ns:
        return None
    return max(0.0, calibration.observed_ns - calibration.profiled_ns) / 1e3


def _saving(projector: Projector, step: CalibratedStep, change: Change) -> float:
    """Return how much shorter a step is with this change, in the replay's ns."""
    saved = step.before.period - _after(projector, step, change)
    return saved / min(1.0, step.replay.scale) if change.unstretched else saved


def _after(projector: Projector, step: CalibratedStep, change: Change) -> float:
    """Return the time of a step with this change, in the replay's ns."""
    if change == NO_CHANGE:
        return step.before.period
    return min(period(step.replay_of(projector.changed(change))), step.before.period)


def _within(us: float, base: float) -> float:
    return max(0.0, min(us, base))
