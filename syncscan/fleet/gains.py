"""From the members and meetings of a job to what removing findings gains the whole job, each with a range.

The job's replay is calibrated as one rank's is: the hosts' own times are scaled, all by one factor, until the step
takes what it takes without the profiler.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from syncscan.fleet.lateness import Met
from syncscan.fleet.members import Members
from syncscan.model.rank import RankGraph
from syncscan.model.step import REPEATABILITY
from syncscan.whatif.calibrate import scales
from syncscan.whatif.calibrated_step import MODEL
from syncscan.whatif.job import Job, Meeting, Removal, Scales, period

ROUNDS = 12
"""Halvings when the job is calibrated: to 0.03 % of a scale."""
MANY_NODES = 100_000
"""Of a job with more in all its programs, fewer replays are made: each takes a second or more."""


@dataclass(frozen=True, slots=True)
class JobGain:
    """What the job gains, µs a step."""

    gain_us: float
    range_us: tuple[float, float]


class JobProjector:
    """A job that can be replayed, calibrated.

    Args:
        members: of the job.
        all_met: their meetings.
        observed_us: its step as recorded.
        unprofiled_us: without the profiler, where that is known.
    """

    def __init__(
        self, members: Members, all_met: Sequence[Met], observed_us: float, unprofiled_us: float | None
    ) -> None:
        self.job = _job(members, all_met)
        self.known = unprofiled_us is not None
        guessed = mean(graph.own_share for graph in self.job.graphs)
        self.scales = Scales(guessed)
        if unprofiled_us is not None:
            takes = lambda *found: period(self.job, Scales(*found))  # noqa: E731
            self.scales = Scales(*scales(takes, guessed, unprofiled_us * 1e3, ROUNDS))
        before = period(self.job, self.scales)
        self.unit = (1.0 if self.known else _profiled(self.job) / before if before else 1.0) / 1e3
        self.before = before
        self.many = sum(len(p.nodes) for g in self.job.graphs for p in g.programs) > MANY_NODES
        self._singles = (
            {}
            if self.many or self.job.steps < 2
            else {step: period(self.job, self.scales, steps=[step]) for step in range(self.job.steps)}
        )

    @property
    def baseline_us(self) -> float:
        """The step as it is, replayed."""
        return self.before * self.unit

    def gain(self, gone: Mapping[int, frozenset[int]]) -> JobGain:
        """Of removing these findings: rank's place → numbers."""
        if not self.before:
            return JobGain(0.0, (0.0, 0.0))
        ratio = self._ratio(Removal(gone))
        ratios = [
            ratio,
            self._ratio(Removal(gone, whole=True)),
            *self._alone(Removal(gone)),
            *self._slack(Removal(gone)),
        ]
        extra = REPEATABILITY + MODEL * (1.0 - ratio)
        low, high = 1.0 - max(ratios) - extra, 1.0 - min(ratios) + extra
        return JobGain(
            max(0.0, 1.0 - ratio) * self.baseline_us, (max(0.0, low) * self.baseline_us, high * self.baseline_us)
        )

    def _ratio(self, removal: Removal) -> float:
        return period(self.job, self.scales, removal) / self.before

    def _alone(self, removal: Removal) -> list[float]:
        """The same of each step by itself."""
        return [
            period(self.job, self.scales, removal, [step]) / alone for step, alone in self._singles.items() if alone
        ]

    def _slack(self, removal: Removal) -> list[float]:
        """The same with the least and the most of the hosts' time taken to be the profiler's, if it is a guess."""
        if self.known:
            return []
        others = [Scales(), Scales(max(0.2, 1.5 * self.scales.host - 0.5))]
        return [period(self.job, other, removal) / (period(self.job, other) or 1.0) for other in others]


def _profiled(job: Job) -> float:
    return period(job, Scales())


def _job(members: Members, all_met: Sequence[Met]) -> Job:
    meetings: dict[tuple[int, int], Meeting] = {}
    for one in all_met:
        waiting = [arrival.of for arrival in one.arrivals if arrival.waits]
        took = min((of.end - of.begin for of in waiting), default=0)
        meeting = Meeting(
            tuple(arrival.rank for arrival in one.arrivals),
            tuple(float(took if arrival.waits else arrival.of.end - arrival.of.begin) for arrival in one.arrivals),
            tuple(arrival.waits for arrival in one.arrivals),
        )
        for rank, place in zip(one.meeting.ranks, one.meeting.places, strict=True):
            meetings[rank, place] = meeting
    alone = {
        (rank, place): float(collective.end - collective.begin)
        for rank, member in enumerate(members.ranks)
        for place, collective in enumerate(member.of.collectives)
        if (rank, place) not in meetings
    }
    shared = _shared(members)
    return Job(tuple(_common(members, rank, shared) for rank in range(len(members.ranks))), meetings, alone)


def _shared(members: Members) -> set[int]:
    """The numbers of the steps that all ranks replay."""
    replayed = [
        {_number(members, place, program.step) for program in member.of.graph.programs}
        for place, member in enumerate(members.ranks)
        if member.of.graph
    ]
    return set(members.steps).intersection(*replayed)


def _common(members: Members, rank: int, shared: set[int]) -> RankGraph:
    """A rank's graph with the programs of these steps alone."""
    graph = members.ranks[rank].of.graph
    assert graph is not None, "the caller asks only where every rank has one"
    programs = tuple(program for program in graph.programs if _number(members, rank, program.step) in shared)
    return RankGraph(
        programs=programs,
        threads=graph.threads,
        streams=graph.streams,
        events=graph.events,
        own_share=graph.own_share,
        slowdown=graph.slowdown,
    )


def _number(members: Members, rank: int, step: int) -> int:
    of = members.ranks[rank].of
    return of.steps[step].number if of.numbered else step
