"""Project the gain of the whole job if findings are removed, each with a range.

The job's replay is calibrated like one rank's: the hosts' own times are scaled, all by one factor, until the replayed
step takes as long as the unprofiled step.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import mean

from msgspec.structs import replace

from syncscan.fleet.collectives_and_clocks import Members
from syncscan.fleet.lateness import CollectiveArrivals
from syncscan.model.rank import RankGraph
from syncscan.model.step import REPEATABILITY
from syncscan.whatif.calibrate import MIN_SCALE, ScaledTime, scales
from syncscan.whatif.calibrated_step import MODEL
from syncscan.whatif.job_replay import AS_RECORDED, Job, Scales, SharedCollective, period

ROUNDS = 12
"""Bisection steps to calibrate the job: accurate to 0.03 % of a scale."""
TOLD_NS = 1_000_000.0
"""Work, both alone and beside a collective, from which a trace determines its own slowdown."""
REPEATED = 0.02
"""Relative variation of a job's step that is timed again a minute later (nine jobs on two H200s, by capture and in
turns: up to 1.8 %, median 0.8 %)."""
MANY_NODES = 20_000
"""Nodes in all programs beyond which only some ranks are replayed: a replay of all would take a second or more."""
LATEST = 16
"""Latest ranks of each kind that are replayed for such a job, besides those that were last at any collective."""


class JobProjector:
    """A calibrated job that can be replayed."""

    def __init__(
        self, members: Members, all_arrivals: Sequence[CollectiveArrivals], unprofiled_us: float | None
    ) -> None:
        self.ranks = _replayed(members, all_arrivals)
        """Indices of the replayed ranks: the others were never last, and wouldn't be without the removed findings."""
        self.waits = _job(members, all_arrivals, self.ranks)
        """The job whose findings take nothing along but their waits."""
        self.job = replace(self.waits, graphs=tuple(graph.fixed() for graph in self.waits.graphs))
        self.known = unprofiled_us is not None
        self._times = ScaledTime(self._takes)
        estimated = mean(graph.own_share for graph in self.job.graphs)
        self.scales: Scales = (estimated, 1.0)
        if unprofiled_us is not None:
            self.scales = scales(self._times, estimated, unprofiled_us * 1e3, ROUNDS)
        before = period(self.job, self.scales)
        self.unit = (1.0 if self.known or not before else self._takes(1.0, 1.0) / before) / 1e3
        self.before = before
        self.many = _nodes(self.job.graphs) > MANY_NODES
        alone = range(self.job.steps) if self.job.steps > 1 and not self.many else ()
        self._nearby = [(near, period(self.job, near)) for near in self._calibrated_near(estimated, unprofiled_us)]
        self._singles = {step: period(self.job, self.scales, steps=[step]) for step in alone}

    def _calibrated_near(self, estimated: float, unprofiled_us: float | None) -> list[Scales]:
        if unprofiled_us is None:
            return []
        times = (unprofiled_us * 1e3 * (1 + sign * REPEATED) for sign in (-1, 1))
        return [scales(self._times, estimated, time, ROUNDS) for time in times]

    def _takes(self, host: float, device: float) -> float:
        """Return the step time with these scales, ns."""
        return period(self.job, (host, device))

    @property
    def baseline_us(self) -> float:
        return self.before * self.unit

    def gain(self, removed: Mapping[int, frozenset[int]]) -> tuple[float, tuple[float, float]]:
        """Return the gain without these findings, and its range, µs per step: their numbers by rank index."""
        if not self.before:
            return 0.0, (0.0, 0.0)
        without = {at: removed[place] for at, place in enumerate(self.ranks) if place in removed}
        ratio, whole = (period(self.job, self.scales, without, with_ops=ops) / self.before for ops in (False, True))
        waits = period(self.waits, self.scales, without) / self.before
        ratios = [ratio, whole, waits, *self._alone(without), *self._slack(without), *self._near(without)]
        extra = REPEATABILITY + MODEL * (1.0 - ratio)
        low, high = 1.0 - max(ratios) - extra, 1.0 - min(ratios) + extra
        step_us = self.baseline_us
        return max(0.0, 1.0 - ratio) * step_us, (max(0.0, low) * step_us, high * step_us)

    def _alone(self, removed: Mapping[int, frozenset[int]]) -> list[float]:
        """Return the ratios for each step on its own."""
        return [
            period(self.job, self.scales, removed, [step]) / alone for step, alone in self._singles.items() if alone
        ]

    def _near(self, removed: Mapping[int, frozenset[int]]) -> list[float]:
        """Return the ratios if the unprofiled step time were slightly shorter or longer than measured."""
        return [period(self.job, scales, removed) / before for scales, before in self._nearby if before]

    def _slack(self, removed: Mapping[int, frozenset[int]]) -> list[float]:
        """Return the ratios with the least and the most profiler overhead, if that is an estimate."""
        if self.known:
            return []
        estimated, _ = self.scales
        alternatives = [AS_RECORDED, (max(MIN_SCALE, estimated - (1.0 - estimated) / 2), 1.0)]
        return [period(self.job, other, removed) / (period(self.job, other) or 1.0) for other in alternatives]


def _replayed(members: Members, all_arrivals: Sequence[CollectiveArrivals]) -> tuple[int, ...]:
    """Return the indices of the ranks that a job's replay needs: all of a small one.

    The last rank decides when a collective starts. So for a large job, those ranks are replayed that were last at any
    collective, and the latest of each kind of rank, by its findings: without syncs one of them may become the last.
    """
    graphs = [member.of.graph for member in members.ranks]
    if _nodes([graph for graph in graphs if graph]) <= MANY_NODES:
        return tuple(range(len(members.ranks)))
    late: defaultdict[int, float] = defaultdict(float)
    for one in all_arrivals:
        begin = one.begin
        for arrival in one.arrivals:
            late[arrival.rank] += arrival.begin - begin
    kinds: defaultdict[frozenset[str], list[int]] = defaultdict(list)
    for place, member in enumerate(members.ranks):
        kinds[frozenset(finding.id for finding in member.of.findings)].append(place)
    latest = (sorted(places, key=lambda place: -late[place])[:LATEST] for places in kinds.values())
    return tuple(sorted({one.last.rank for one in all_arrivals}.union(*latest)))


def _nodes(graphs: Sequence[RankGraph]) -> int:
    return sum(len(program.nodes) for graph in graphs for program in graph.programs)


def _job(members: Members, all_arrivals: Sequence[CollectiveArrivals], ranks: Sequence[int]) -> Job:
    """Return the programs and collectives of these ranks; a rank's index in the job is that in `ranks`."""
    at = {place: number for number, place in enumerate(ranks)}
    collectives: dict[tuple[int, int], SharedCollective] = {}
    for matched in all_arrivals:
        took = min((arrival.of.end - arrival.of.begin for arrival in matched.arrivals if arrival.waits), default=0)
        there = [
            (at[arrival.rank], place, arrival)
            for arrival, place in zip(matched.arrivals, matched.collective.places, strict=True)
            if arrival.rank in at
        ]
        collective = SharedCollective(
            tuple(number for number, _, _ in there),
            tuple(float(took if a.waits else a.of.end - a.of.begin) for _, _, a in there),
            tuple(arrival.waits for _, _, arrival in there),
        )
        collectives.update({(number, place): collective for number, place, _ in there})
    alone = {
        (number, place): float(collective.end - collective.begin)
        for number, rank in enumerate(ranks)
        for place, collective in enumerate(members.ranks[rank].of.collectives)
        if (number, place) not in collectives
    }
    shared = _shared_steps(members)
    graphs = [_common(members, rank, members.ranks[rank].of.graph, shared) for rank in ranks]
    return Job(tuple(_with_slowdown(graphs)), collectives, alone)


def _with_slowdown(graphs: Sequence[RankGraph]) -> list[RankGraph]:
    """Replace the slowdown beside a collective by the average where a rank's own trace hardly determines it."""
    by = sum(graph.slowdown_by_ns for graph in graphs)
    usual = sum(graph.slowdown * graph.slowdown_by_ns for graph in graphs) / by if by else 1.0
    return [graph if graph.slowdown_by_ns >= TOLD_NS else replace(graph, slowdown=usual) for graph in graphs]


def _shared_steps(members: Members) -> frozenset[int]:
    """Return the numbers of the steps that all ranks replay."""
    replayed = (
        {_number(members, place, program.step) for program in member.of.graph.programs}
        for place, member in enumerate(members.ranks)
        if member.of.graph
    )
    return frozenset(members.steps).intersection(*replayed)


def _common(members: Members, rank: int, graph: RankGraph | None, shared: frozenset[int]) -> RankGraph:
    assert graph is not None, "the caller asks only where every rank has one"
    programs = tuple(program for program in graph.programs if _number(members, rank, program.step) in shared)
    return replace(graph, programs=programs)


def _number(members: Members, rank: int, step: int) -> int:
    of = members.ranks[rank].of
    return of.steps[step].number if of.numbered else step
