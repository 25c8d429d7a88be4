"""From a Graph and the unprofiled step's time to a scale of the host's own time: the profiler's overhead taken out.

Recording costs host time with every slice, and nothing on the device. So the host's own time is scaled, by one factor,
until the replay of the step as it was takes the time that the step takes without the profiler.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import TypeAlias

import msgspec

from syncscan.model.step import REPEATABILITY
from syncscan.model.step_times import NOISY
from syncscan.whatif.graph import Graph
from syncscan.whatif.replay import Replay, period

Takes: TypeAlias = "Callable[[float, float], float]"
"""From the scales of host and device to the replayed step's time, ns."""

SLICE_NS = 2_500.0
"""Host time that recording one op or runtime call takes (measured on an H200's host: 1.4 to 3.5 µs); see `guess`."""
STACK_FACTOR = 1.8
"""The same with Python frames recorded too (measured: 3.1 to 6.4 µs)."""
LEAST_OWN = 0.35
"""The smallest part of the host's time that a guess leaves to the program (with Python frames: 0.26 to 0.43)."""
MIN_SCALE, MAX_SCALE = 0.2, 1.5
"""What a known step time may say of the host: the profiler at most five times its work, or a slower machine."""
MIN_STRETCH, MAX_STRETCH = 0.7, 1.5
"""What it may say of the device: other clocks."""
LESS = 0.8
"""A step that takes as long with so much of the host's time isn't held by the host."""
ROUNDS = 20
"""Halvings of an interval: to a millionth of it, and of the time, far below what any is known to."""
NEAR_ROUNDS = 10
"""The same, to a thousandth, of times that are a twentieth more or less as that is how far the step's is unknown."""
TRUNCATED = 0.2
"""How far ITP goes from the line's guess towards the middle: this part of the interval's square, as its authors do."""


_UNKNOWN = (
    "The trace doesn't hold the step's time without the profiler, so the numbers hold for the profiled step; about "
    "{:.0%} of the host's time in it is taken to be the profiler's own. --step-ms MS replaces that guess."
)
_DEVICE = (
    "The device sets this step's pace, and its work took {:.2f} times as long without the profiler as in the trace "
    "(other clocks): the replay scales it."
)


class Calibration(msgspec.Struct, frozen=True, eq=False):
    """A replay that takes the step's real time, and how it was found.

    `unit` turns the replay's times into reported ones: 1 where the unprofiled step's time is known. Where it isn't, the
    overhead is guessed, and times are reported in proportion, as parts of the profiled step.
    """

    replay: Replay
    unit: float
    observed_ns: float
    """The step's time: without the profiler where that is known, else in the trace."""
    profiled_ns: float
    """In the trace."""
    known: bool
    notes: tuple[str, ...] = ()
    guessed: float = 1.0
    """The scale of the host that the number of recorded slices makes likely, whatever was found."""
    slack: tuple[Replay, ...] = ()
    """Replays with other scales that explain the same observation: what the trace leaves open."""


def calibrate(
    graph: Graph,
    observed_ns: float,
    unprofiled_ns: float | None,
    slices: float,
    stacks: bool,
    uncertainty: float = 0.0,
) -> Calibration:
    """Find the scale.

    Args:
        graph: the steps as profiled.
        observed_ns: the profiled step's time.
        unprofiled_ns: the same step's time without the profiler, where it is known.
        slices: ops and runtime calls recorded in a step, mean.
        stacks: the trace was recorded with Python frames.
        uncertainty: within which part of it the unprofiled time is known.
    """
    guessed = guess(graph, slices, stacks)
    if unprofiled_ns is None:
        replay, recorded = Replay(graph, guessed), Replay(graph)
        mine = period(replay)
        unit = period(recorded) / mine if mine else 1.0
        slack = (recorded, Replay(graph, max(MIN_SCALE, guessed - (1.0 - guessed) / 2)))
        return Calibration(
            replay,
            unit,
            observed_ns,
            observed_ns,
            known=False,
            slack=slack,
            guessed=guessed,
            notes=(_UNKNOWN.format(1.0 - guessed),),
        )

    replay_with = cache(lambda *scales: Replay(graph, *scales))  # of the found ones the period is asked for again
    times = Times(lambda *scales: period(replay_with(*scales)))
    replay = replay_with(*scales(times, guessed, unprofiled_ns))
    notes = (_DEVICE.format(replay.stretch),) if abs(replay.stretch - 1.0) > 0.02 else ()
    # A surer time the ranges allow for anyway: of two detectors, the steepest we have, 5 % off either way lay within.
    near = [1.0 - uncertainty, 1.0 + uncertainty] if uncertainty > NOISY else []
    others = tuple(replay_with(*scales(times, guessed, unprofiled_ns * part, NEAR_ROUNDS)) for part in near)
    return Calibration(replay, 1.0, unprofiled_ns, observed_ns, known=True, notes=notes, guessed=guessed, slack=others)


class Curve:
    """Something that only grows with x: each x is asked once, and what is known narrows what is sought.

    Args:
        of: what it is at an x.
    """

    def __init__(self, of: Callable[[float], float]) -> None:
        self._of = of
        self._known: dict[float, float] = {}

    def __call__(self, x: float) -> float:
        """What it is there."""
        if x not in self._known:
            self._known[x] = self._of(x)
        return self._known[x]

    def reaches(self, target: float, low: float, high: float, rounds: int) -> float:
        """Where it reaches something: the upper end of an interval around that.

        By ITP (Oliveira and Takahashi, ACM Transactions on Mathematical Software 47, 2020), which guesses along the
        line between both ends and takes no more than one step more than halving would. A step's time is made of a few
        straight lines, so where 20 halvings replay it 20 times, it does 3 to 7 times.

        Args:
            target: what is reached.
            low: an x at which it is less, or just that.
            high: one at which it is more, or just that.
            rounds: the interval is as narrow in the end as so many halvings make the one between these, or what is
                reached is exceeded by no larger a part of it.
        """
        whole, part = high - low, 2.0**-rounds
        a, b = self._around(target, low, high)
        for left in range(rounds, -1, -1):
            below, above = self(a) - target, self(b) - target
            if b - a <= whole * part or above <= part * target:
                break
            middle = (a + b) / 2
            line = (above * a - below * b) / (above - below)
            towards = math.copysign(min(TRUNCATED * (b - a) ** 2 / whole, abs(middle - line)), middle - line)
            room = whole * 2.0 ** (left - rounds) - (b - a) / 2
            x = line + towards
            if abs(x - middle) > room:
                x = middle - math.copysign(room, middle - line)
            a, b = (x, b) if self(x) < target else (a, x)
        return b

    def _around(self, target: float, low: float, high: float) -> tuple[float, float]:
        """The last known x between these at which it is less, and the next one; these where none is known."""
        known = [x for x in self._known if low < x < high]
        a = max((x for x in known if self(x) < target), default=low)
        return a, min((x for x in known if x > a), default=high)


class Times:
    """A step's time by the scales of its host and its device.

    Args:
        takes: replays it with both.
    """

    def __init__(self, takes: Takes) -> None:
        self._takes = takes
        self.of_host = Curve(lambda scale: takes(scale, 1.0))
        """By the host's scale, with the device's work as recorded."""
        self._of_device: dict[float, Curve] = {}

    def of_device(self, scale: float) -> Curve:
        """By the device's, with this one of the host."""
        return self._of_device.setdefault(scale, Curve(lambda stretch: self._takes(scale, stretch)))


def scales(times: Times, guessed: float, target: float, rounds: int = ROUNDS) -> tuple[float, float]:
    """The scales of host and device at which a step takes its real time.

    Args:
        times: the replayed step's time by the two scales, and what is known of it.
        guessed: the host's scale where the step's time can't tell it.
        target: the step's time without the profiler, ns.
        rounds: the scale is found as closely as by so many halvings of an interval.
    """
    host = times.of_host
    scale = None if _insensitive(host, guessed, target) else _scale(host, target, rounds)
    if scale is not None:
        return scale, 1.0
    return guessed, _stretch(times.of_device(guessed), target, rounds)


def reach(graph: Graph, known_ns: float) -> float:
    """The time nearest to this one that any plausible scale of host and device gives the step."""
    least, most = (period(Replay(graph, *scales)) for scales in ((MIN_SCALE, MIN_STRETCH), (MAX_SCALE, MAX_STRETCH)))
    return min(max(known_ns, least), most)


def guess(graph: Graph, slices: float, stacks: bool) -> float:
    """The part of the host's own time that isn't the profiler's, from the number of slices it recorded."""
    own = graph.host_ns
    if not own:
        return 1.0
    overhead = slices * SLICE_NS * (STACK_FACTOR if stacks else 1.0)
    return max(LEAST_OWN, 1.0 - overhead / own)


def _insensitive(host: Curve, guessed: float, target: float) -> bool:
    """Whether the guess already explains the step, and the host's share hardly matters: then it can't be found.

    Less of the host's time must make no difference either: with few slices the guess leaves nothing to be more of.
    """
    return abs(host(guessed) - target) <= REPEATABILITY * target and all(
        abs(host(scale) - host(guessed)) <= REPEATABILITY * target for scale in ((guessed + 1.0) / 2, LESS * guessed)
    )


def _scale(host: Curve, target: float, rounds: int) -> float | None:
    """The scale at which the step takes `target`; None where no plausible one does (the device sets the pace)."""
    if not host(MIN_SCALE) <= target <= host(MAX_SCALE):
        return None
    return host.reaches(target, MIN_SCALE, MAX_SCALE, rounds)


def _stretch(device: Curve, target: float, rounds: int) -> float:
    """How much longer the device's work must be for the step to take `target`, within what clocks explain."""
    if device(MIN_STRETCH) >= target:
        return MIN_STRETCH
    if device(MAX_STRETCH) <= target:
        return MAX_STRETCH
    return device.reaches(target, MIN_STRETCH, MAX_STRETCH, rounds)
