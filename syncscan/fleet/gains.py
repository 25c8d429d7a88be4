"""From the members and meetings of a job to what removing findings gains the whole job, each with a range.

The job's replay is calibrated as one rank's is: the hosts' own times are scaled, all by one factor, until the step
takes what it takes without the profiler.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import mean

import msgspec

from syncscan.fleet.lateness import Met
from syncscan.fleet.members import Members
from syncscan.model.rank import RankGraph
from syncscan.model.step import REPEATABILITY
from syncscan.whatif.calibrate import MIN_SCALE, Times, scales
from syncscan.whatif.calibrated_step import MODEL
from syncscan.whatif.job import Job, Meeting, Removal, Scales, period

ROUNDS = 12
"""Halvings when the job is calibrated: to 0.03 % of a scale."""
TOLD_NS = 1_000_000.0
"""A trace in which at least so much work runs both alone and beside a collective tells its own slowdown."""
REPEATED = 0.02
"""A job's step that is timed again a minute later takes so much less or more (nine jobs on two H200s, by
capture and in turns: up to 1.8 %, in the middle 0.8 %)."""
MANY_NODES = 20_000
"""Of a job with more in all its programs only some ranks are replayed: a replay of all would take a second or more."""
LATEST = 16
"""So many ranks of each kind are replayed of such a job, the latest, beside those that came last anywhere."""


class JobGain(msgspec.Struct, frozen=True):
    """What the job gains, µs a step."""

    gain_us: float
    range_us: tuple[float, float]


class JobProjector:
    """A job that can be replayed, calibrated.

    Args:
        members: of the job.
        all_met: their meetings.
        unprofiled_us: its step without the profiler, where that is known.
    """

    def __init__(self, members: Members, all_met: Sequence[Met], unprofiled_us: float | None) -> None:
        self.ranks = _replayed(members, all_met)
        """Places of the ranks that are replayed: the others never came last, nor would without what is removed."""
        self.job = _job(members, all_met, self.ranks)
        self.known = unprofiled_us is not None
        self._times = Times(self._takes)
        guessed = mean(graph.own_share for graph in self.job.graphs)
        self.scales = Scales(guessed)
        if unprofiled_us is not None:
            self.scales = Scales(*scales(self._times, guessed, unprofiled_us * 1e3, ROUNDS))
        before = period(self.job, self.scales)
        self.unit = (1.0 if self.known or not before else self._takes(1.0, 1.0) / before) / 1e3
        self.before = before
        self.many = _nodes(self.job.graphs) > MANY_NODES
        alone = range(self.job.steps) if self.job.steps > 1 and not self.many else ()
        self._nearby = [(near, period(self.job, near)) for near in self._calibrated_near(guessed, unprofiled_us)]
        self._singles = {step: period(self.job, self.scales, steps=[step]) for step in alone}

    def _calibrated_near(self, guessed: float, unprofiled_us: float | None) -> list[Scales]:
        if unprofiled_us is None:
            return []
        times = (unprofiled_us * 1e3 * (1 + sign * REPEATED) for sign in (-1, 1))
        return [Scales(*scales(self._times, guessed, time, ROUNDS)) for time in times]

    def _takes(self, host: float, device: float) -> float:
        """What the step takes with these scales, ns."""
        return period(self.job, Scales(host, device))

    @property
    def baseline_us(self) -> float:
        """The step as it is, replayed."""
        return self.before * self.unit

    def gain(self, gone: Mapping[int, frozenset[int]]) -> JobGain:
        """Of removing these findings: rank's place → numbers."""
        if not self.before:
            return JobGain(0.0, (0.0, 0.0))
        numbers = {at: gone[place] for at, place in enumerate(self.ranks) if place in gone}
        removal, whole = Removal(numbers), Removal(numbers, whole=True)
        ratio = self._ratio(removal)
        ratios = [ratio, self._ratio(whole), *self._alone(removal), *self._slack(removal), *self._near(removal)]
        extra = REPEATABILITY + MODEL * (1.0 - ratio)
        low, high = 1.0 - max(ratios) - extra, 1.0 - min(ratios) + extra
        step_us = self.baseline_us
        return JobGain(max(0.0, 1.0 - ratio) * step_us, (max(0.0, low) * step_us, high * step_us))

    def _ratio(self, removal: Removal) -> float:
        return period(self.job, self.scales, removal) / self.before

    def _alone(self, removal: Removal) -> list[float]:
        """The same of each step by itself."""
        return [
            period(self.job, self.scales, removal, [step]) / alone for step, alone in self._singles.items() if alone
        ]

    def _near(self, removal: Removal) -> list[float]:
        """The same if the step's time without the profiler were a little less or more than it was measured to be."""
        return [period(self.job, scales, removal) / before for scales, before in self._nearby if before]

    def _slack(self, removal: Removal) -> list[float]:
        """The same with the least and the most of the hosts' time taken to be the profiler's, if it is a guess."""
        if self.known:
            return []
        guessed = self.scales.host
        others = [Scales(), Scales(max(MIN_SCALE, guessed - (1.0 - guessed) / 2))]
        return [period(self.job, other, removal) / (period(self.job, other) or 1.0) for other in others]


def _replayed(members: Members, all_met: Sequence[Met]) -> tuple[int, ...]:
    """Places of the ranks that a job's replay needs: all of a small one.

    Who comes last decides when a collective starts. So of a large job those are replayed that came last anywhere, and
    of each kind of rank, by the findings that it has, the latest: without syncs one of them may come last instead.
    """
    graphs = [member.of.graph for member in members.ranks]
    if _nodes([graph for graph in graphs if graph]) <= MANY_NODES:
        return tuple(range(len(members.ranks)))
    late: defaultdict[int, float] = defaultdict(float)
    for one in all_met:
        begin = one.begin
        for arrival in one.arrivals:
            late[arrival.rank] += arrival.begin - begin
    kinds: defaultdict[frozenset[str], list[int]] = defaultdict(list)
    for place, member in enumerate(members.ranks):
        kinds[frozenset(finding.id for finding in member.of.findings)].append(place)
    latest = (sorted(places, key=lambda place: -late[place])[:LATEST] for places in kinds.values())
    return tuple(sorted({one.last.rank for one in all_met}.union(*latest)))


def _nodes(graphs: Sequence[RankGraph]) -> int:
    return sum(len(program.nodes) for graph in graphs for program in graph.programs)


def _job(members: Members, all_met: Sequence[Met], ranks: Sequence[int]) -> Job:
    """These ranks' programs and meetings; a rank's place in the job is that in `ranks`."""
    at = {place: number for number, place in enumerate(ranks)}
    meetings: dict[tuple[int, int], Meeting] = {}
    for one in all_met:
        took = min((arrival.of.end - arrival.of.begin for arrival in one.arrivals if arrival.waits), default=0)
        there = [
            (at[arrival.rank], place, arrival)
            for arrival, place in zip(one.arrivals, one.meeting.places, strict=True)
            if arrival.rank in at
        ]
        meeting = Meeting(
            tuple(number for number, _, _ in there),
            tuple(float(took if a.waits else a.of.end - a.of.begin) for _, _, a in there),
            tuple(arrival.waits for _, _, arrival in there),
        )
        meetings.update({(number, place): meeting for number, place, _ in there})
    alone = {
        (number, place): float(collective.end - collective.begin)
        for number, rank in enumerate(ranks)
        for place, collective in enumerate(members.ranks[rank].of.collectives)
        if (number, place) not in meetings
    }
    shared = _shared_steps(members)
    graphs = [_common(members, rank, members.ranks[rank].of.graph, shared) for rank in ranks]
    return Job(tuple(_with_slowdown(graphs)), meetings, alone)


def _with_slowdown(graphs: Sequence[RankGraph]) -> list[RankGraph]:
    """What slows a rank down beside a collective is the others' figure where its own trace hardly tells it."""
    by = sum(graph.slowdown_by_ns for graph in graphs)
    usual = sum(graph.slowdown * graph.slowdown_by_ns for graph in graphs) / by if by else 1.0
    return [
        graph if graph.slowdown_by_ns >= TOLD_NS else msgspec.structs.replace(graph, slowdown=usual) for graph in graphs
    ]


def _shared_steps(members: Members) -> frozenset[int]:
    """The numbers of the steps that all ranks replay."""
    replayed = (
        {_number(members, place, program.step) for program in member.of.graph.programs}
        for place, member in enumerate(members.ranks)
        if member.of.graph
    )
    return frozenset(members.steps).intersection(*replayed)


def _common(members: Members, rank: int, graph: RankGraph | None, shared: frozenset[int]) -> RankGraph:
    """A rank's graph with the programs of these steps alone."""
    assert graph is not None, "the caller asks only where every rank has one"
    programs = tuple(program for program in graph.programs if _number(members, rank, program.step) in shared)
    return msgspec.structs.replace(graph, programs=programs)


def _number(members: Members, rank: int, step: int) -> int:
    of = members.ranks[rank].of
    return of.steps[step].number if of.numbered else step
