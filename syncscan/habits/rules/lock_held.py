"""Yield the habit for time that the step's thread was off its core while another Python thread ran."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from syncscan.habits.context import Context
from syncscan.habits.sampled_work import LEAST_SAMPLES, SURELY, deviation, gained
from syncscan.habits.stopped_thread import Stopped, stopped_by_others
from syncscan.model.duration import duration
from syncscan.model.finding import Confidence
from syncscan.model.habit import Habit, SampledTime
from syncscan.model.host import OtherThread, SampledHost
from syncscan.rules.pages import advice_of

NAMED = 2
"""Number of threads named in the evidence."""


def find(context: Context) -> Iterable[Habit]:
    sampled = context.sampled
    stopped = stopped_by_others(sampled) if sampled else None
    if sampled is None or stopped is None or stopped.surely_us < context.notable_us:
        return
    samples = sampled.samples * stopped.surely_us / sampled.step_us
    if samples < LEAST_SAMPLES:
        return
    sure = deviation(samples)
    low, high = SURELY * (1 - sure) * stopped.surely_us, min((1 + sure) * stopped.likely_us, stopped.most_us)
    habit = context.habit(
        advice_of("lock-held"), [], stopped.likely_us, _evidence(sampled, stopped), confidence=Confidence.MEDIUM
    )
    placed = SampledTime(_waits_for(sampled), stopped.by_phase)
    yield replace(habit, gain=gained(context, stopped.likely_us, low, high), per_step=1.0, sampled=placed)


def _evidence(sampled: SampledHost, stopped: Stopped) -> list[str]:
    ran = _running_beside(sampled)
    threads = [
        f"thread {other.name} ran for {duration(other.us)} per step, {other.beside_us / other.us:.0%} of it while the "
        f"step's thread was off-CPU{', in ' + other.places[0] if other.places else ''}"
        for other in ran[:NAMED]
    ]
    backward = stopped.likely_us - stopped.surely_us
    also = f", and for {duration(backward)} in backward" if backward else ""
    return [
        f"the step's thread was blocked for {duration(stopped.surely_us)} ({stopped.surely_us / sampled.step_us:.0%}"
        f" of the step) outside of its own waits{also}; it was off-CPU for "
        f"{duration(stopped.most_us)} in total",
        *threads,
    ]


def _running_beside(sampled: SampledHost) -> list[OtherThread]:
    """Return the threads that ran while the step's thread was off its core, longest first."""
    return sorted((o for o in sampled.others if o.beside_us), key=lambda other: -other.beside_us)


def _waits_for(sampled: SampledHost) -> str:
    """Return that the thread waits for the lock, and its likely holder: `held by THREAD: FUNCTION, FILE:LINE`."""
    holder = next(iter(_running_beside(sampled)), None)
    if holder is None:
        return "waits for the GIL"
    place, _, function = holder.places[0].partition(" ") if holder.places else ("", "", "")
    return f"waits for the GIL, held by {holder.name}" + (f": {function}, {place}" if place else "")
