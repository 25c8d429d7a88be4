"""Project the step without a set of findings by a calibrated replay, with its range.

A chip that would exceed its power limit lowers its clock. Power grows with about the 2.5th power of the clock (voltage
falls with it), so work that would draw P at full clock takes (P / limit) ** 0.4 times as long.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

from msgspec.structs import replace

from syncscan.model.capture import Clocks
from syncscan.model.finding import Finding, Removal
from syncscan.model.projection import Projection
from syncscan.model.step import BOUND_FROM, REPEATABILITY, Bound
from syncscan.model.trace import Trace
from syncscan.whatif.calibrate import Calibration
from syncscan.whatif.graph import Graph
from syncscan.whatif.replay import Replay, Steady, period, steady
from syncscan.whatif.surroundings import NOTABLE, Surroundings, shares_of
from syncscan.whatif.wait_effects import WaitEffect

UNKNOWN_SLOWDOWN = 0.15
"""Slowdown if the trace has no power data: matrix products on an H200 at its limit take 13 to 17 % longer."""
MOST_SLOWDOWN = 0.25
IDLE_POWER = 0.15
"""Part of its limit that a chip draws without work."""
SLOWDOWN_EXPONENT = 0.4


def slowdown(trace: Trace, busy: float) -> float:
    """Return how much longer kernels may take on this device if it works without pause: 0.15 is 15 %.

    Read from `clocks` in capture's table: power drawn in unprofiled steps, and the chip's limit, in W; `busy` is the
    part of those steps in which the device worked.
    """
    clocks = trace.info.capture.clocks.get("calibrated", Clocks())
    drawn, limit = clocks.power_w, clocks.power_limit_w
    if drawn is None or limit is None or not 0.0 < busy <= 1.0:
        return UNKNOWN_SLOWDOWN
    idle = IDLE_POWER * limit
    full = idle + max(0.0, drawn - idle) / busy
    return min(max(math.pow(full / limit, SLOWDOWN_EXPONENT) - 1.0, 0.0), MOST_SLOWDOWN)


MODEL = 0.10
"""Relative uncertainty of a saving that the model itself has."""
_NOTHING = "removing a sync gains nothing there unless this rank arrives last, which only the traces of all ranks show."
ONE_RANK = f"The step waits in its collectives for other ranks or the network: {_NOTHING}"
"""Note on a gain that the trace of one rank doesn't show."""


class CalibratedStep:
    """The step as it is and without any findings, with one calibration.

    `number` gives a finding's number in the graph by its id.
    """

    def __init__(
        self,
        trace: Trace,
        graph: Graph,
        calibration: Calibration,
        number: Mapping[str, int],
        surroundings: Surroundings,
        waits: CalibratedStep | None = None,
    ) -> None:
        self.trace, self.graph, self.calibration, self.number = trace, graph, calibration, number
        self.surroundings = surroundings
        self.waits = waits
        """The step whose findings take nothing along but their waits, if this one's take more."""
        self.replay = calibration.replay
        self.before = steady(self.replay)
        self.shares = shares_of(self.replay, self.before.period, surroundings)
        self.behind = surroundings.behind if self.shares.communication >= NOTABLE else frozenset()
        """Numbers of the findings that wait behind collectives, whose removal is assumed to gain nothing."""
        ranks = Bound.COMMUNICATION if self.shares.waits_for_ranks else None
        self.paced_by = Bound.INPUT if surroundings.waits_for_loader else ranks
        """The bound that sets the step's pace from outside, independent of its syncs; None without one."""
        self.unit = calibration.unit / 1e3
        """Factor from the replay's ns to reported µs."""

    def replay_of(self, graph: Graph) -> Replay:
        return Replay(graph, self.replay.scale, self.replay.stretch)

    @cached_property
    def fixed(self) -> CalibratedStep:
        """The step whose findings take along what their fixes do."""
        graph, calibration = self.graph.fixed(), self.calibration
        replays = [Replay(graph, r.scale, r.stretch) for r in (calibration.replay, *calibration.slack)]
        calibration = replace(calibration, replay=replays[0], slack=tuple(replays[1:]))
        return CalibratedStep(self.trace, graph, calibration, self.number, self.surroundings, self)

    def after(self, removed: frozenset[int]) -> Steady:
        """Return the step without these findings, with other ranks and its input as late as they were."""
        return self.paced(self.unpaced(removed - self.behind))

    def paced(self, then: Steady) -> Steady:
        """Return a step that takes no less than now where something else sets its pace."""
        held = self.paced_by is not None and then.period < self.before.period
        return replace(then, period=self.before.period) if held else then

    def unpaced(self, removed: frozenset[int]) -> Steady:
        """Return the step if nothing else set its pace: what begins earlier ends as much earlier."""
        return steady(self.replay, removed)

    def most(self, number: int, already: frozenset[int] = frozenset()) -> float:
        """Return the most that removing this finding can save, in µs: its waits, its calls and their ops, its copies.

        Each completion time is a maximum of others plus a duration, and no maximum moves further than its arguments.
        """
        waited = self.after(already).waits.get(number, 0.0)
        return max(0.0, waited + self._gone.get(number, 0.0)) * self.unit

    def limit(self, number: int) -> float:
        """Return the most that removing this finding can save by any of the range's replays, in µs.

        That is its longest wait by any of them, its calls, its copies, and the whole op around it. An error of the
        whole step isn't one of this call's.
        """
        replays = [self.replay, *self.calibration.slack, self._hot]
        states = [steady(replay) for replay in replays]
        states += [steady(self.replay, step=k) for k, _ in self._alone]
        waits = max((state.waits.get(number, 0.0) / state.period for state in states if state.period), default=0.0)
        own = self._gone.get(number, 0.0) + self._ops.get(number, 0.0)
        return max(0.0, waits * self.before.period + own) * self.unit

    @cached_property
    def _gone(self) -> dict[int, float]:
        """Time in the replay's ns that removing each finding takes out of a step besides its wait."""
        scale, stretch = self.replay.scale, self.replay.stretch
        return self._of_waits(
            lambda wait: scale * (wait.call_ns + wait.after_ns - wait.left_ns + wait.read_ns) + stretch * wait.copy_ns
        )

    @cached_property
    def _ops(self) -> dict[int, float]:
        """Time that the whole ops around each finding take in a step beyond what goes with it anyway, likewise."""
        return self._of_waits(lambda wait: self.replay.scale * max(0.0, wait.op_ns - wait.read_ns))

    def _of_waits(self, time: Callable[[WaitEffect], float]) -> dict[int, float]:
        times: dict[int, float] = {}
        count = max(1, len(self.graph.programs))
        for wait in (wait for program in self.graph.programs for wait in program.host_waits):
            times[wait.finding] = times.get(wait.finding, 0.0) + time(wait) / count
        return times

    def projection(self, findings: Sequence[Finding], *, quick: bool = False) -> Projection:
        """Return the step without these findings; a `quick` projection replays nothing more for its range."""
        removed = frozenset(self.number[f.id] for f in findings)
        after, unit, calibration = self.after(removed), self.unit, self.calibration
        bound = self.bound(after, self.graph)
        return Projection(
            removed=tuple(f.id for f in findings),
            observed_us=calibration.observed_ns / 1e3,
            baseline_us=self.before.period * unit,
            predicted_us=after.period * unit,
            range_us=self.range(removed, quick),
            bound_after=bound,
            host_limit_us=after.host * unit,
            device_limit_us=after.device / 1e3,  # no part of it is the profiler's, so it is as in the trace
            device_share=min(1.0, after.device / after.period) if after.period else 1.0,
            notes=(*calibration.notes, *self._notes(findings, bound)),
            profiled_us=calibration.profiled_ns / 1e3,
            calibrated=calibration.known,
            host_scale=calibration.replay.scale,
        )

    def _notes(self, findings: Sequence[Finding], bound: Bound) -> Iterator[str]:
        if any(f.removal is Removal.KERNELS for f in findings):
            yield "Kernels after a data-dependent shape are kept: a replacement may compute more or less."
        if findings and bound is Bound.DEVICE and self._slowdown:
            yield (
                "Without idle time, the device may reach its power limit: the range allows for kernels "
                f"{self._slowdown:.0%} slower."
            )
        if findings and bound is Bound.INPUT:
            yield "The step waits for the DataLoader's workers, which limit it with or without its syncs."
        if findings and self.shares.communication >= NOTABLE:  # which one rank's trace doesn't show
            yield ONE_RANK

    def untold(self, finding: Finding) -> str:
        """Return why one rank's trace doesn't show the gain of removing this finding; empty if it does."""
        if self.shares.communication < NOTABLE:
            return ""
        if self.number[finding.id] in self.behind:
            return f"It waits behind collectives for other ranks or the network: {_NOTHING}"
        return ONE_RANK if self.paced_by is Bound.COMMUNICATION else ""

    def moved(self, findings: Sequence[Finding]) -> float:
        """Return how much of their waits, in µs per step, reappears at the other syncs without them."""
        removed = frozenset(self.number[f.id] for f in findings)
        own = sum(self.before.waits.get(number, 0.0) for number in removed)
        more = self.after(removed).waited - (self.before.waited - own)
        return max(0.0, min(own, more) * self.unit)

    def range(self, removed: frozenset[int], quick: bool = False) -> tuple[float, float]:
        """Return the least and the most that the step may take instead, in µs.

        From replays of single steps, replays that explain the observation as well, a replacement without the op, a
        device that slows down without pauses, and the model's uncertainty; but they save no more than each of them can.
        """
        base = self.before.period
        if not base:
            return 0.0, 0.0
        ratio = self.after(removed).period / base
        ratios = [ratio] if quick else [ratio, *self._others(removed)]
        if self.shares.communication >= NOTABLE and self.paced_by is not Bound.INPUT:
            ratios += [1.0, self.unpaced(removed).period / base]
        extra = REPEATABILITY + MODEL * (1.0 - ratio)
        low, high = min(ratios) - extra, min(max(ratios) + extra, max(1.0 + REPEATABILITY, ratio))
        before, after = base * self.unit, ratio * base * self.unit
        least = min(after, before - sum(self.limit(number) for number in removed)) if removed else 0.0
        return max(low * before, least, 0.0), high * before

    def _others(self, removed: frozenset[int]) -> list[float]:
        """Return alternative times of the step without these findings, as parts of the step as it is."""
        replay, base = self.replay, self.before.period
        alternatives = [steady(replay, removed, with_ops=True).period / base, self._throttled(removed) / base]
        alternatives += [self.waits.after(removed).period / base] if self.waits else []
        alternatives += [period(other, removed) / whole for other in self.calibration.slack if (whole := period(other))]
        return alternatives + [period(replay, removed, k) / alone for k, alone in self._alone if alone]

    @cached_property
    def _alone(self) -> list[tuple[int, float]]:
        count = len(self.graph.programs)
        replay = self.replay
        return [(k, period(replay, step=k)) for k in range(count)] if count > 1 else []

    @cached_property
    def _slowdown(self) -> float:
        return slowdown(self.trace, self.before.device / self.before.period if self.before.period else 0.0)

    @cached_property
    def _hot(self) -> Replay:
        replay = self.replay
        return Replay(self.graph, replay.scale, replay.stretch * (1.0 + self._slowdown))

    def _throttled(self, removed: frozenset[int]) -> float:
        """Return the step if the device slows down to the extent that it loses its pauses."""
        cool, lost = self.after(removed).period, self._lost(removed)
        return cool + min(lost, 1.0) * (period(self._hot, removed) - cool) if lost > 0.0 else cool

    def _lost(self, removed: frozenset[int]) -> float:
        """Return the part of its pauses that the device loses without these findings; negative if it gains some."""
        then = self.after(removed)
        if not then.device or not then.period:
            return 0.0
        before, after = self.before.device / self.before.period, then.device / then.period
        return (after - before) / (1.0 - before) if before < 1.0 else 0.0

    def bound(self, after: Steady, graph: Graph) -> Bound:
        """Return what limits a step of this graph, whose device also pauses between queued work."""
        if self.paced_by is not None:
            return self.paced_by
        device = after.device + max((graph.occupied_ns - graph.busy_ns) * self.replay.stretch, 0.0)
        if device >= BOUND_FROM * after.period and device >= after.host:
            return Bound.DEVICE
        if after.host >= BOUND_FROM * after.period or after.waited < (1.0 - BOUND_FROM) * after.period:
            return Bound.HOST
        return Bound.SYNC
