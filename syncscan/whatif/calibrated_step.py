"""From a calibrated replay and a set of findings to a Projection of the step without them, and its range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from msgspec.structs import replace

from syncscan.model.finding import Finding, Removal
from syncscan.model.projection import Projection
from syncscan.model.step import BOUND_FROM, REPEATABILITY, Bound
from syncscan.model.trace import Trace
from syncscan.whatif.calibrate import Calibration
from syncscan.whatif.graph import Graph, HostWait
from syncscan.whatif.power import slowdown
from syncscan.whatif.replay import Replay, Steady, period, steady
from syncscan.whatif.replays import Without, foresee
from syncscan.whatif.shares import NOTABLE, Shares, shares_of
from syncscan.whatif.surroundings import Surroundings

MODEL = 0.10
"""The part of a saving that the model itself leaves uncertain."""
_NOTHING = (
    "removing a sync gains nothing there unless this rank is the one that comes last, which only the traces of all "
    "ranks together can tell."
)
ONE_RANK = f"The step waits in its collectives for other ranks or the network: {_NOTHING}"
"""What is said of a gain where the trace of one rank can't tell it."""


class CalibratedStep:
    """What the step takes as it is, and without any findings, with one calibration.

    Args:
        trace: whose step it is.
        graph: of the recorded steps.
        calibration: of that graph.
        number: a finding's id → its number in the graph.
        surroundings: what of the step isn't its own doing.
    """

    def __init__(
        self,
        trace: Trace,
        graph: Graph,
        calibration: Calibration,
        number: Mapping[str, int],
        surroundings: Surroundings,
    ) -> None:
        self.trace, self.graph, self.calibration, self.number = trace, graph, calibration, number
        self.replay = calibration.replay
        self.before = steady(self.replay)
        self.shares = shares_of(self.replay, self.before.period, surroundings.measured)
        """Parts of the step as it is."""
        self.behind = surroundings.behind if self.shares.communication >= NOTABLE else frozenset()
        """Numbers of the findings that wait behind collectives: their removal is taken to gain nothing."""
        self.paced_by = _pacemaker(self.shares, surroundings)
        """What sets the step's pace from outside, whatever becomes of its syncs; None where it is the step itself."""
        self.unit = calibration.unit / 1e3
        """Turns the replay's ns into reported µs."""

    def replay_of(self, graph: Graph) -> Replay:
        """Another graph of the same step, with the scales of this calibration."""
        return Replay(graph, self.replay.scale, self.replay.stretch)

    def after(self, removed: frozenset[int]) -> Steady:
        """The step without these findings: others come as late to its collectives, and its input, as they did."""
        then = self.unpaced(removed - self.behind)
        paced = self.paced_by is not None and then.period < self.before.period
        return replace(then, period=self.before.period) if paced else then

    def foresee(self, removals: Sequence[frozenset[int]], ranges: int = 0) -> None:
        """Replay the step without each of these sets at once, where so many will be asked for one by one.

        Args:
            removals: numbers of findings.
            ranges: of so many of the first the range will be asked for too.
        """
        told = removals[:ranges]
        replay, others = self.replay, (*self.calibration.slack, self._hot)
        asked = [Without(replay, removed - self.behind) for removed in removals]
        asked += [Without(replay, removed, whole=True) for removed in told]
        foresee(asked + [Without(other, removed) for other in others for removed in told])
        for number, _ in self._alone if told else ():
            foresee((Without(replay, removed) for removed in told), [number])

    def unpaced(self, removed: frozenset[int]) -> Steady:
        """The same if nobody else set its pace: whatever begins earlier ends as much earlier."""
        return steady(self.replay, removed)

    def most(self, number: int, gone: frozenset[int] = frozenset()) -> float:
        """What removing this finding can save at most, in µs: its waits, its calls and their ops, its copies.

        Each completion time is a maximum of others plus a duration, and no maximum moves further than its arguments do.

        Args:
            number: of the finding.
            gone: those that are removed already.
        """
        waited = self.after(gone).waits.get(number, 0.0)
        return max(0.0, waited + self._gone.get(number, 0.0)) * self.unit

    @cached_property
    def _gone(self) -> dict[int, float]:
        """By finding: what a removal takes out of a step beside the wait, in the replay's ns."""
        gone: dict[int, float] = {}
        count, replay = max(1, len(self.graph.programs)), self.replay
        for node in (node for program in self.graph.programs for node in program.nodes if isinstance(node, HostWait)):
            wait = node.wait
            host = wait.call_ns + wait.after_ns - wait.left_ns + wait.read_ns
            taken = replay.scale * host + replay.stretch * wait.copy_ns
            gone[wait.finding] = gone.get(wait.finding, 0.0) + taken / count
        return gone

    def projection(self, findings: Sequence[Finding], *, quick: bool = False) -> Projection:
        """The step without these findings; a `quick` one replays nothing more for its range."""
        removed = frozenset(self.number[f.id] for f in findings)
        after, unit, found = self.after(removed), self.unit, self.calibration
        bound = self._bound(after)
        return Projection(
            removed=tuple(f.id for f in findings),
            observed_us=found.observed_ns / 1e3,
            baseline_us=self.before.period * unit,
            predicted_us=after.period * unit,
            range_us=self.range(removed, quick),
            bound_after=bound,
            host_limit_us=after.host * unit,
            device_limit_us=after.device / 1e3,  # no part of it is the profiler's: it is what it is in the trace
            device_share=min(1.0, after.device / after.period) if after.period else 1.0,
            notes=(*found.notes, *_notes(findings, bound, self._slowdown), *self._of_ranks(findings)),
            profiled_us=found.profiled_ns / 1e3,
            calibrated=found.known,
            host_scale=found.replay.scale,
        )

    def _of_ranks(self, findings: Sequence[Finding]) -> list[str]:
        """What one rank's trace can't tell of a step that communicates."""
        return [ONE_RANK] if findings and self.shares.communication >= NOTABLE else []

    def untold(self, finding: Finding) -> str:
        """Why the gain of removing this one can't be told from the trace of one rank; empty where it can."""
        if self.shares.communication < NOTABLE:
            return ""
        if self.number[finding.id] in self.behind:
            return f"It waits behind collectives for other ranks or the network: {_NOTHING}"
        return ONE_RANK if self.paced_by is Bound.COMMUNICATION else ""

    def moved(self, findings: Sequence[Finding]) -> float:
        """How much of their waits, in µs a step, turns up again at the other syncs without them."""
        removed = frozenset(self.number[f.id] for f in findings)
        own = sum(self.before.waits.get(number, 0.0) for number in removed)
        more = self.after(removed).waited - (self.before.waited - own)
        return max(0.0, min(own, more) * self.unit)

    def range(self, removed: frozenset[int], quick: bool = False) -> tuple[float, float]:
        """What the step may take instead, in µs.

        From the replays of single steps, from the replays that explain the observation as well, from a replacement that
        does without the op, from what a device without pauses loses, and from what the model leaves open.
        """
        base = self.before.period
        if not base:
            return 0.0, 0.0
        ratio = self.after(removed).period / base
        others = [ratio] if quick else [ratio, *self._others(removed)]
        if self.shares.communication >= NOTABLE and self.paced_by is not Bound.INPUT:
            others += [1.0, self.unpaced(removed).period / base]
        extra = REPEATABILITY + MODEL * (1.0 - ratio)
        low, high = min(others) - extra, max(others) + extra
        most = max(1.0 + REPEATABILITY, ratio)
        return max(low, 0.0) * base * self.unit, min(high, most) * base * self.unit

    def _others(self, removed: frozenset[int]) -> list[float]:
        """What else the step may take without these findings, as parts of the step as it is."""
        replay, base = self.replay, self.before.period
        found = [steady(replay, removed, whole=True).period / base, self._throttled(removed) / base]
        found += [period(other, removed) / whole for other, whole in self._slack if whole]
        return found + [period(replay, removed, [k]) / alone for k, alone in self._alone if alone]

    @cached_property
    def _slack(self) -> list[tuple[Replay, float]]:
        return [(replay, period(replay)) for replay in self.calibration.slack]

    @cached_property
    def _alone(self) -> list[tuple[int, float]]:
        count = len(self.graph.programs)
        replay = self.replay
        return [(k, period(replay, steps=[k])) for k in range(count)] if count > 1 else []

    @cached_property
    def _slowdown(self) -> float:
        return slowdown(self.trace, self.before.device / self.before.period if self.before.period else 0.0)

    @cached_property
    def _hot(self) -> Replay:
        replay = self.replay
        return Replay(self.graph, replay.scale, replay.stretch * (1.0 + self._slowdown))

    def _throttled(self, removed: frozenset[int]) -> float:
        """The step if the device slows down as far as it loses its pauses."""
        cool, lost = self.after(removed).period, self._lost(removed)
        return cool + min(lost, 1.0) * (period(self._hot, removed) - cool) if lost > 0.0 else cool

    def _lost(self, removed: frozenset[int]) -> float:
        """The part of its pauses that the device loses without these findings; below 0 where it gains some."""
        then = self.after(removed)
        if not then.device or not then.period:
            return 0.0
        before, after = self.before.device / self.before.period, then.device / then.period
        return (after - before) / (1.0 - before) if before < 1.0 else 0.0

    @cached_property
    def _pauses(self) -> float:
        """How long the busiest stream pauses between queued work in a step, ns."""
        return max((self.graph.occupied_ns - self.graph.busy_ns) * self.replay.stretch, 0.0)

    def _bound(self, after: Steady) -> Bound:
        if self.paced_by is not None:
            return self.paced_by
        device = after.device + self._pauses
        if device >= BOUND_FROM * after.period and device >= after.host:
            return Bound.DEVICE
        if after.host >= BOUND_FROM * after.period or after.waited < (1.0 - BOUND_FROM) * after.period:
            return Bound.HOST
        return Bound.SYNC


def _pacemaker(shares: Shares, surroundings: Surroundings) -> Bound | None:
    if surroundings.waits_for_loader:
        return Bound.INPUT
    return Bound.COMMUNICATION if shares.waits_for_ranks else None


def _notes(findings: Sequence[Finding], bound: Bound, slower: float) -> list[str]:
    notes = []
    if any(f.diagnosis.removal is Removal.KERNELS for f in findings):
        notes.append("The kernels behind a data-dependent shape stay: a replacement may compute more or less.")
    if findings and bound is Bound.DEVICE and slower:
        notes.append(
            f"A device without pauses may run into its power limit: the range allows for kernels {slower:.0%} slower."
        )
    if findings and bound is Bound.INPUT:
        notes.append("The step waits for the DataLoader's workers: they set its pace, with or without its syncs.")
    return notes
