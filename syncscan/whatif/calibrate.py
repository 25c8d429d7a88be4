"""Calibrate a replay to the unprofiled step's time, by scaling the host's own time.

Recording costs host time with every slice, and nothing on the device. So the host's own time is scaled by one factor
until the replay of the recorded step takes as long as the step without the profiler. A given or stored time is checked
against the nearest that the replay reaches.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import TypeAlias

import msgspec

from syncscan.errors import UsageError
from syncscan.model.duration import duration
from syncscan.model.step import REPEATABILITY
from syncscan.model.step_times import NOISY
from syncscan.whatif.graph import Graph
from syncscan.whatif.replay import Replay, period
from syncscan.whatif.surroundings import in_percent

Takes: TypeAlias = "Callable[[float, float], float]"
"""Function of the scales of host and device that returns the replayed step's time, ns."""

SLICE_NS = 2_500.0
"""Host time of recording one op or runtime call (measured on an H200's host: 1.4 to 3.5 µs); see `Calibration`."""
STACK_FACTOR = 1.8
"""Factor of `SLICE_NS` if Python frames are recorded too (measured: 3.1 to 6.4 µs)."""
LEAST_OWN = 0.35
"""Smallest fraction of the host's time that an estimate leaves to the program (with Python frames: 0.26 to 0.43)."""
MIN_SCALE, MAX_SCALE = 0.2, 1.5
"""Range of host scales that a known step time may imply: five times the work by the profiler, or a slower machine."""
MIN_STRETCH, MAX_STRETCH = 0.7, 1.5
"""Range of the device's scale that it may imply, by other clocks."""
LESS = 0.8
"""A step that takes as long with this part of the host's time isn't bound by the host."""
ROUNDS = 20
"""Number of halvings of an interval: to a millionth of it, far below the accuracy of any time."""
NEAR_ROUNDS = 10
"""Number of halvings for times that differ by a twentieth, the uncertainty of the step's: to a thousandth."""
TRUNCATED = 0.2
"""ITP's move from the line's estimate to the middle: this part of the squared interval, as its authors do."""


_UNKNOWN = (
    "The trace doesn't hold the step's time without the profiler, so the numbers hold for the profiled step, with "
    "{} of its host time attributed to the profiler. --step-ms MS replaces this estimate."
)
_DEVICE = (
    "This step is device-bound, and its device work took {:.2f} times as long without the profiler as in the trace "
    "(different clocks), so the replay scales it."
)


class Calibration(msgspec.Struct, frozen=True, eq=False):
    """A replay that takes the step's real time, with how it was found.

    `unit` converts the replay's times to reported ones: 1 if the unprofiled step's time is known. Otherwise the
    overhead is estimated, and times are reported as fractions of the profiled step.
    """

    replay: Replay
    unit: float
    observed_ns: float
    """The step's time: without the profiler if known, else in the trace."""
    profiled_ns: float
    """The step's time in the trace."""
    known: bool
    notes: tuple[str, ...] = ()
    estimated: float = 1.0
    """Host scale that the number of recorded slices suggests; it may differ from the calibrated one."""
    slack: tuple[Replay, ...] = ()
    """Replays with other scales that explain the same observation."""


def calibrate(
    graph: Graph,
    observed_ns: float,
    unprofiled_ns: float | None,
    slices: float,
    stacks: bool,
    uncertainty: float = 0.0,
) -> Calibration:
    """Find the scales of host and device at which the replay takes the step's time.

    `unprofiled_ns` is the same step's time without the profiler, `uncertainty` its relative one; `slices` is the mean
    number of ops and runtime calls recorded in a step.
    """
    estimated = estimate_host_scale(graph, slices, stacks)
    if unprofiled_ns is None:
        replay, recorded = Replay(graph, estimated), Replay(graph)
        replayed = period(replay)
        unit = period(recorded) / replayed if replayed else 1.0
        slack = (recorded, Replay(graph, max(MIN_SCALE, estimated - (1.0 - estimated) / 2)))
        return Calibration(
            replay,
            unit,
            observed_ns,
            observed_ns,
            known=False,
            slack=slack,
            estimated=estimated,
            notes=(_UNKNOWN.format(in_percent(1.0 - estimated)),),
        )

    replay_with = cache(lambda *scales: Replay(graph, *scales))  # the periods of the found ones are needed again
    times = ScaledTime(lambda *scales: period(replay_with(*scales)))
    replay = replay_with(*scales(times, estimated, unprofiled_ns))
    notes = (_DEVICE.format(replay.stretch),) if abs(replay.stretch - 1.0) > 0.02 else ()
    # The ranges cover a more accurate time anyway: of two detectors, our steepest cases, 5 % off either way was within.
    near = [1.0 - uncertainty, 1.0 + uncertainty] if uncertainty > NOISY else []
    further = tuple(replay_with(*scales(times, estimated, unprofiled_ns * part, NEAR_ROUNDS)) for part in near)
    return Calibration(
        replay, 1.0, unprofiled_ns, observed_ns, known=True, notes=notes, estimated=estimated, slack=further
    )


class Curve:
    """An increasing function of x, which is evaluated once per x; known values narrow later searches."""

    def __init__(self, of: Callable[[float], float]) -> None:
        self._of = of
        self._known: dict[float, float] = {}

    def __call__(self, x: float) -> float:
        if x not in self._known:
            self._known[x] = self._of(x)
        return self._known[x]

    def reaches(self, target: float, low: float, high: float, rounds: int) -> float:
        """Return the x at which the function reaches a target: the upper end of an interval around it.

        By ITP (Oliveira and Takahashi, ACM Transactions on Mathematical Software 47, 2020), which estimates along the
        line between both ends and takes at most one step more than halving. A step's time consists of a few straight
        lines, so it needs 3 to 7 replays instead of 20.

        The value is at most the target at `low` and at least it at `high`. The final interval is as narrow as after
        `rounds` halvings, or the target is exceeded by no larger part.
        """
        width, part = high - low, 2.0**-rounds
        a, b = self._around(target, low, high)
        for left in range(rounds, -1, -1):
            below, above = self(a) - target, self(b) - target
            if b - a <= width * part or above <= part * target:
                break
            middle = (a + b) / 2
            line = (above * a - below * b) / (above - below)
            towards = math.copysign(min(TRUNCATED * (b - a) ** 2 / width, abs(middle - line)), middle - line)
            room = width * 2.0 ** (left - rounds) - (b - a) / 2
            x = line + towards
            if abs(x - middle) > room:
                x = middle - math.copysign(room, middle - line)
            a, b = (x, b) if self(x) < target else (a, x)
        return b

    def _around(self, target: float, low: float, high: float) -> tuple[float, float]:
        """Return the last known x in between with a smaller value, and the next one; the given ones without any."""
        known = [x for x in self._known if low < x < high]
        a = max((x for x in known if self(x) < target), default=low)
        return a, min((x for x in known if x > a), default=high)


class ScaledTime:
    def __init__(self, takes: Takes) -> None:
        self._takes = takes
        self.of_host = Curve(lambda scale: takes(scale, 1.0))
        """Time by the host's scale, with the device's work as recorded."""
        self._of_device: dict[float, Curve] = {}

    def of_device(self, scale: float) -> Curve:
        return self._of_device.setdefault(scale, Curve(lambda stretch: self._takes(scale, stretch)))


def scales(times: ScaledTime, estimated: float, target: float, rounds: int = ROUNDS) -> tuple[float, float]:
    """Return the scales of host and device at which a step takes its real time.

    The host's `estimated` scale counts if the step's time doesn't determine it; `rounds` is a number of halvings.
    """
    host = times.of_host
    scale = None if _insensitive(host, estimated, target) else _scale(host, target, rounds)
    if scale is not None:
        return scale, 1.0
    return estimated, _stretch(times.of_device(estimated), target, rounds)


def reach(graph: Graph, known_ns: float) -> float:
    """Return the time nearest to this one that any plausible scales of host and device give the step."""
    least, most = (period(Replay(graph, *scales)) for scales in ((MIN_SCALE, MIN_STRETCH), (MAX_SCALE, MAX_STRETCH)))
    return min(max(known_ns, least), most)


def estimate_host_scale(graph: Graph, slices: float, stacks: bool) -> float:
    """Return the part of the host's own time that isn't the profiler's, from the number of recorded slices."""
    host_ns = graph.host_ns
    if not host_ns:
        return 1.0
    overhead = slices * SLICE_NS * (STACK_FACTOR if stacks else 1.0)
    return max(LEAST_OWN, 1.0 - overhead / host_ns)


def _insensitive(host: Curve, estimated: float, target: float) -> bool:
    """Return whether the estimate explains the step, and the host's share matters too little to be determined.

    Less host time must make no difference either: with few slices the estimate adds nothing.
    """
    return abs(host(estimated) - target) <= REPEATABILITY * target and all(
        abs(host(scale) - host(estimated)) <= REPEATABILITY * target
        for scale in ((estimated + 1.0) / 2, LESS * estimated)
    )


def _scale(host: Curve, target: float, rounds: int) -> float | None:
    """Return the scale at which the step takes `target`; None if no plausible one does (the device sets the pace)."""
    if not host(MIN_SCALE) <= target <= host(MAX_SCALE):
        return None
    return host.reaches(target, MIN_SCALE, MAX_SCALE, rounds)


def _stretch(device: Curve, target: float, rounds: int) -> float:
    """Return how much longer the device's work must be for the step to take `target`, within what clocks explain."""
    if device(MIN_STRETCH) >= target:
        return MIN_STRETCH
    if device(MAX_STRETCH) <= target:
        return MAX_STRETCH
    return device.reaches(target, MIN_STRETCH, MAX_STRETCH, rounds)


DOUBTED, REFUSED = 1.1, 1.5
"""Factors between a time and the nearest replayed one from which it is doubted, and refused if a user gave it. Of the
times that capture stored in 60 recordings, the replay reaches all within 2 %, except one whose recorded steps took half
of the time of the others (1.35)."""


def doubt(known_ns: float, nearest_ns: float, recorded_ns: float) -> str:
    """Return what is doubtful about this time of a step; empty if nothing is."""
    if _off(known_ns, nearest_ns) < DOUBTED:
        return ""
    return f"Doubtful: {_comparison(known_ns, nearest_ns, recorded_ns)}. Results based on it may be off by as much."


def refuse(known_ns: float, nearest_ns: float, recorded_ns: float) -> None:
    """Refuse a user's time that can't be the recorded step's; arguments as for `doubt`."""
    if _off(known_ns, nearest_ns) >= REFUSED:
        raise UsageError(
            f"This can't be right: {_comparison(known_ns, nearest_ns, recorded_ns)}.",
            "Give the time of one step in ms (see the end of a report for what counts as a step), or omit it.",
        )


def _off(known_ns: float, nearest_ns: float) -> float:
    """Return the ratio of the larger to the smaller; 1 if there is nothing to compare."""
    least, most = sorted((known_ns, nearest_ns))
    return most / least if least > 0 else 1.0


def _comparison(known_ns: float, nearest_ns: float, recorded_ns: float) -> str:
    limit = "at least" if known_ns < nearest_ns else "at most"
    known, nearest, recorded = (duration(ns / 1e3) for ns in (known_ns, nearest_ns, recorded_ns))
    replayed = f"in the trace it takes {recorded}, and a replay takes {limit} {nearest}"
    return f"a step should take {known} without the profiler; {replayed}"
