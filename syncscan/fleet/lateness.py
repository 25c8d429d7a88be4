"""Determine who delayed the others in each step, why, and the critical path.

Times are on the job's clock.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from statistics import median

import msgspec

from syncscan.fleet.collectives_and_clocks import JobCollective, Members, collective_of
from syncscan.model.fleet import LateCause, Lateness, PathSegment
from syncscan.model.rank import RankCollective
from syncscan.model.step import REPEATABILITY

DONE_BEFORE_NS = 50_000
"""A rank whose collective was done this much before the last rank's began didn't wait for it: NCCL buffers small
messages to another rank. Ends of ranks that did wait lie up to 20 µs apart (two H200s, 180 all-reduces)."""


STARVED_NS = 500_000
"""Pause between launch and begin up to which a collective's device was idle or nearly so: its host sets the pace."""


class Arrival(msgspec.Struct, frozen=True):
    """A rank's arrival at a collective, ns on the job's clock."""

    rank: int
    """Index of the rank."""
    of: RankCollective
    begin: int
    end: int
    waits: bool
    """Whether it waited for the last rank."""

    @property
    def launched(self) -> int:
        """Return when its host launched the collective."""
        return self.begin - self.of.begin + self.of.launched


class CollectiveArrivals(msgspec.Struct, frozen=True, dict=True):
    """A collective with its arrivals, in the order of the ranks."""

    collective: JobCollective
    arrivals: tuple[Arrival, ...]

    @cached_property
    def last(self) -> Arrival:
        return max(self.arrivals, key=lambda arrival: arrival.begin)

    @property
    def begin(self) -> int:
        """Return when the first rank arrived."""
        return min(arrival.begin for arrival in self.arrivals)

    @cached_property
    def late_ns(self) -> float:
        """Return how much later the last rank arrived than the median of those that waited for it."""
        last = self.last
        begins = [a.begin for a in self.arrivals if a is not last and a.waits]
        return last.begin - median(begins) if begins else 0.0


def match_arrivals(
    members: Members, collectives: Sequence[JobCollective], clocks: Sequence[int]
) -> list[CollectiveArrivals]:
    """Return the collectives with their arrivals, ordered by end."""
    arrived = [CollectiveArrivals(collective, _arrivals(members, collective, clocks)) for collective in collectives]
    return sorted(arrived, key=lambda one: max(arrival.end for arrival in one.arrivals))


def _arrivals(members: Members, collective: JobCollective, clocks: Sequence[int]) -> tuple[Arrival, ...]:
    of = [collective_of(members, rank, place) for rank, place in zip(collective.ranks, collective.places, strict=True)]
    begins = [one.begin + clocks[rank] for one, rank in zip(of, collective.ranks, strict=True)]
    last = max(begins)
    return tuple(
        Arrival(rank, one, begin, begin + one.end - one.begin, begin + one.end - one.begin >= last - DONE_BEFORE_NS)
        for rank, one, begin in zip(collective.ranks, of, begins, strict=True)
    )


def waited_ns(all_arrivals: Sequence[CollectiveArrivals]) -> Mapping[int, float]:
    """Return how long each rank waited for others in total, by its index."""
    total: defaultdict[int, float] = defaultdict(float)
    for matched in all_arrivals:
        for arrival in matched.arrivals:
            if arrival.waits:
                total[arrival.rank] += matched.last.begin - arrival.begin
    return total


LateParts = Mapping[tuple[LateCause, int], float]
"""How much later than the others a rank arrived in one step, ns, by cause and the finding's number there, or NONE."""


def lateness_by_step(all_arrivals: Sequence[CollectiveArrivals]) -> Mapping[tuple[int, int], LateParts]:
    """Return how much each rank delayed the others, by step and rank index."""
    parts: defaultdict[tuple[int, int], dict[tuple[LateCause, int], float]] = defaultdict(dict)
    before: dict[tuple[int, ...], CollectiveArrivals] = {}
    for matched in sorted(all_arrivals, key=lambda one: one.last.begin):
        new = matched.late_ns - _carried(matched, before.get(matched.collective.ranks))
        if new > 0:
            key = matched.collective.step, matched.last.rank
            for cause, length in _causes(matched, before.get(matched.collective.ranks), new).items():
                parts[key][cause] = parts[key].get(cause, 0.0) + length
        before[matched.collective.ranks] = matched
    return parts


def _carried(matched: CollectiveArrivals, before: CollectiveArrivals | None) -> float:
    """Return how much of a rank's lateness it had at the previous collective already, ns.

    Ranks that compute during a collective, as under DDP, keep that much of their lead; those whose devices wait for
    their hosts keep the lead of their hosts, unless a sync blocked them meanwhile.
    """
    if before is None or before.last.rank != matched.last.rank:
        return 0.0
    since = {arrival.rank: arrival for arrival in before.arrivals}
    waiting = [arrival for arrival in matched.arrivals if arrival.rank != matched.last.rank and arrival.waits]
    leads = [_kept_lead(since[other.rank], other, before.last, matched.last) for other in waiting]
    return min(median(leads), before.late_ns) if leads else 0.0


def _kept_lead(before: Arrival, now: Arrival, last_before: Arrival, last: Arrival) -> float:
    """Return the lead that one rank keeps over the last between two collectives, ns."""
    if now.begin - now.launched > STARVED_NS:
        return before.of.beside
    held = (now.of.waited - before.of.waited) - (last.of.waited - last_before.of.waited)
    return max(last_before.launched - before.launched - max(held, 0), before.of.beside, 0)


def _causes(
    matched: CollectiveArrivals, before: CollectiveArrivals | None, late_ns: float
) -> dict[tuple[LateCause, int], float]:
    """Return what the last rank did more than the others since their previous collective; the rest is its host's.

    At the first collective, events before the recording may be the cause.
    """
    since = {a.rank: a.of for a in before.arrivals} if before else {}
    last, left = matched.last, late_ns
    waiting = [a for a in matched.arrivals if a is not last and a.waits]

    def more(of: str) -> float:
        own = getattr(last.of, of) - getattr(since.get(last.rank), of, 0)
        return float(own - median(getattr(a.of, of) - getattr(since.get(a.rank), of, 0) for a in waiting))

    causes: dict[tuple[LateCause, int], float] = {}
    idle, finding = _idle_more(last, waiting, since)
    for cause, length in (
        ((LateCause.KERNELS, -1), more("worked")),
        ((LateCause.INPUT, -1), more("loaded")),
        ((LateCause.SYNC, finding), idle),
    ):
        taken = min(max(length, 0.0), left)
        left -= taken
        if taken:
            causes[cause] = taken
    rest = LateCause.HOST if before else LateCause.BEFORE
    return causes | ({(rest, -1): left} if left else {})


def _idle_more(last: Arrival, waiting: Sequence[Arrival], since: Mapping[int, RankCollective]) -> tuple[float, int]:
    """Return how much longer the last rank's device was idle after syncs, and the finding with the largest part."""
    own = _idle(last, since)
    usual = median(sum(_idle(other, since).values()) for other in waiting)
    return sum(own.values()) - usual, max(own, key=own.__getitem__, default=-1)


def _idle(arrival: Arrival, since: Mapping[int, RankCollective]) -> dict[int, float]:
    earlier = dict(since[arrival.rank].bubbles) if arrival.rank in since else {}
    return {finding: length - earlier.get(finding, 0) for finding, length in arrival.of.bubbles}


def lateness(
    members: Members, all_lateness: Mapping[tuple[int, int], LateParts], observed_us: float
) -> tuple[Lateness, ...]:
    """Return the rank that delayed the others the most in each step; none where that is too little to measure."""
    latest = []
    for step in members.steps:
        ranks = {rank: parts for (number, rank), parts in all_lateness.items() if number == step}
        if not ranks:
            continue
        rank, most = max(ranks.items(), key=lambda item: sum(item[1].values()))
        if sum(most.values()) / 1e3 >= REPEATABILITY * observed_us:
            latest.append(_lateness_of(members, step, rank, most))
    return tuple(latest)


def _lateness_of(members: Members, step: int, rank: int, of: LateParts) -> Lateness:
    by_cause: defaultdict[LateCause, float] = defaultdict(float)
    for (cause, _), length in of.items():
        by_cause[cause] += length / 1e3
    parts = sorted(by_cause.items(), key=lambda part: -part[1])
    cause = parts[0][0]
    syncs = {number: length for (what, number), length in of.items() if what is LateCause.SYNC and number >= 0}
    finding = max(syncs, key=syncs.__getitem__) if cause is LateCause.SYNC and syncs else None
    member = members.ranks[rank]
    has_finding = finding is not None and finding < len(member.of.findings)
    return Lateness(
        step=step,
        rank=member.number,
        late_us=sum(of.values()) / 1e3,
        cause=cause,
        finding=member.of.findings[finding].id if has_finding and finding is not None else "",
        parts=tuple(parts),
    )


def critical_path(
    members: Members, all_arrivals: Sequence[CollectiveArrivals], clocks: Sequence[int]
) -> tuple[PathSegment, ...]:
    """Return the critical path, from the last collective back to the first step's begin: always the last arrival.

    Consecutive segments of one rank are merged.
    """
    if not all_arrivals:
        return ()
    of_rank = _by_rank(all_arrivals)
    begin = min(_first_begin(members, rank, clocks) for rank in range(len(members.ranks)))
    segments: list[PathSegment] = []
    at: CollectiveArrivals | None = all_arrivals[-1]
    while at is not None:
        last = at.last
        earlier = _before(*of_rank[last.rank], last.begin)
        since = max(a.end for a in earlier.arrivals) if earlier else begin
        segments.append(
            PathSegment(
                at.collective.step,
                members.ranks[last.rank].number,
                (since - begin) / 1e3,
                (last.begin - begin) / 1e3,
                at.collective.kind,
            )
        )
        at = earlier
    return tuple(_merge(segments[::-1]))


def _first_begin(members: Members, rank: int, clocks: Sequence[int]) -> int:
    steps = members.ranks[rank].of.steps
    return (steps[0].begin if steps else 0) + clocks[rank]


def _by_rank(all_arrivals: Sequence[CollectiveArrivals]) -> Mapping[int, tuple[list[CollectiveArrivals], list[int]]]:
    """Return each rank's collectives ordered by end, and those ends, by rank index."""
    by_rank: defaultdict[int, tuple[list[CollectiveArrivals], list[int]]] = defaultdict(lambda: ([], []))
    for matched in all_arrivals:
        end = max(arrival.end for arrival in matched.arrivals)
        for arrival in matched.arrivals:
            collectives, ends = by_rank[arrival.rank]
            collectives.append(matched)
            ends.append(end)
    return by_rank


def _before(collectives: Sequence[CollectiveArrivals], ends: Sequence[int], begin: int) -> CollectiveArrivals | None:
    """Return the last collective of a rank that ended before it arrived at another."""
    ended = bisect_left(ends, begin)
    return collectives[ended - 1] if ended else None


def _merge(segments: Sequence[PathSegment]) -> list[PathSegment]:
    merged: list[PathSegment] = []
    for segment in segments:
        if merged and (merged[-1].rank, merged[-1].step) == (segment.rank, segment.step):
            segment = PathSegment(segment.step, segment.rank, merged.pop().begin_us, segment.end_us, segment.collective)
        merged.append(segment)
    return merged
