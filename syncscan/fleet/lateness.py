"""From the meetings of a job, on one clock, to who held the others up in each step, why, and the critical path."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from statistics import median

import msgspec

from syncscan.fleet.clocks import Clocks
from syncscan.fleet.meetings import JobMeeting, collective_of
from syncscan.fleet.members import Members
from syncscan.model.fleet import Cause, Lateness, PathSegment
from syncscan.model.rank import RankCollective
from syncscan.model.step import REPEATABILITY

DONE_BEFORE_NS = 50_000
"""A rank whose collective was done so much before the last rank's began didn't wait for it: who sends little to another
rank doesn't, as NCCL buffers it. Ends of ranks that did wait lie up to 20 µs apart (two H200s, 180 all-reduces)."""


STARVED_NS = 500_000
"""A collective that begins so soon behind its launch found its device idle, or nearly: its host sets the pace."""


class Arrival(msgspec.Struct, frozen=True):
    """A rank at a meeting, ns on the job's clock."""

    rank: int
    """Its place."""
    of: RankCollective
    begin: int
    end: int
    waits: bool
    """Whether it waited until the last had come."""

    @property
    def launched(self) -> int:
        """When its host launched the collective."""
        return self.begin - self.of.begin + self.of.launched


class Met(msgspec.Struct, frozen=True, dict=True):
    """A meeting with its arrivals, in the order of the ranks."""

    meeting: JobMeeting
    arrivals: tuple[Arrival, ...]

    @cached_property
    def last(self) -> Arrival:
        """Who came last."""
        return max(self.arrivals, key=lambda arrival: arrival.begin)

    @property
    def begin(self) -> int:
        """When the first came."""
        return min(arrival.begin for arrival in self.arrivals)

    @cached_property
    def late_ns(self) -> float:
        """How much later the last came than the others in their middle, of those that waited for it."""
        last = self.last
        others = [a.begin for a in self.arrivals if a is not last and a.waits]
        return last.begin - median(others) if others else 0.0


def met(members: Members, meetings: Sequence[JobMeeting], clocks: Clocks) -> list[Met]:
    """The meetings in the order in which they ended."""
    found = [Met(meeting, _arrivals(members, meeting, clocks)) for meeting in meetings]
    return sorted(found, key=lambda one: max(arrival.end for arrival in one.arrivals))


def _arrivals(members: Members, meeting: JobMeeting, clocks: Clocks) -> tuple[Arrival, ...]:
    of = [collective_of(members, rank, place) for rank, place in zip(meeting.ranks, meeting.places, strict=True)]
    begins = [one.begin + clocks.added[rank] for one, rank in zip(of, meeting.ranks, strict=True)]
    last = max(begins)
    return tuple(
        Arrival(rank, one, begin, begin + one.end - one.begin, begin + one.end - one.begin >= last - DONE_BEFORE_NS)
        for rank, one, begin in zip(meeting.ranks, of, begins, strict=True)
    )


def waited_ns(all_met: Sequence[Met]) -> Mapping[int, float]:
    """Rank's place → how long it waited for others, in all."""
    total: defaultdict[int, float] = defaultdict(float)
    for one in all_met:
        for arrival in one.arrivals:
            if arrival.waits:
                total[arrival.rank] += one.last.begin - arrival.begin
    return total


class Held(msgspec.Struct, frozen=True):
    """How much later than the others a rank came in one step, ns, in all and by cause."""

    late_ns: float
    parts: Mapping[tuple[Cause, int], float]
    """(Cause, the finding's number at this rank or NONE)."""


def held(all_met: Sequence[Met]) -> Mapping[tuple[int, int], Held]:
    """(Step, rank's place) → how much it held the others up."""
    late: defaultdict[tuple[int, int], float] = defaultdict(float)
    parts: defaultdict[tuple[int, int], dict[tuple[Cause, int], float]] = defaultdict(dict)
    before: dict[tuple[int, ...], Met] = {}
    for one in sorted(all_met, key=lambda one: one.last.begin):
        new = one.late_ns - _carried(one, before.get(one.meeting.ranks))
        if new > 0:
            key = one.meeting.step, one.last.rank
            late[key] += new
            for cause, length in _causes(one, before.get(one.meeting.ranks), new).items():
                parts[key][cause] = parts[key].get(cause, 0.0) + length
        before[one.meeting.ranks] = one
    return {key: Held(total, parts[key]) for key, total in late.items()}


def _carried(one: Met, before: Met | None) -> float:
    """How much of a rank's lateness is that with which it came to the meeting before, ns.

    Ranks that compute on while a collective waits, as under DDP, keep so much of their lead; those whose devices wait
    for their hosts keep what lead their hosts have, as far as no sync held them meanwhile.
    """
    if before is None or before.last.rank != one.last.rank:
        return 0.0
    since = {arrival.rank: arrival for arrival in before.arrivals}
    others = [arrival for arrival in one.arrivals if arrival.rank != one.last.rank and arrival.waits]
    kept = [_kept(since[other.rank], other, before.last, one.last) for other in others]
    return min(median(kept), before.late_ns) if kept else 0.0


def _kept(before: Arrival, now: Arrival, last_before: Arrival, last: Arrival) -> float:
    """The lead that one rank keeps over the last from a meeting to the next, ns."""
    if now.begin - now.launched > STARVED_NS:
        return before.of.beside
    held = (now.of.waited - before.of.waited) - (last.of.waited - last_before.of.waited)
    return max(last_before.launched - before.launched - max(held, 0), before.of.beside, 0)


def _causes(one: Met, before: Met | None, late_ns: float) -> dict[tuple[Cause, int], float]:
    """What the last rank did more than the others since these ranks met before; what that leaves is its host's.

    When they meet for the first time, what came before the recording may be why.
    """
    since = {a.rank: a.of for a in before.arrivals} if before else {}
    last, left = one.last, late_ns
    others = [a for a in one.arrivals if a is not last and a.waits]

    def more(of: str) -> float:
        own = getattr(last.of, of) - getattr(since.get(last.rank), of, 0)
        return float(own - median(getattr(a.of, of) - getattr(since.get(a.rank), of, 0) for a in others))

    found: dict[tuple[Cause, int], float] = {}
    idle, finding = _idle_more(last, others, since)
    for cause, length in (
        ((Cause.KERNELS, -1), more("worked")),
        ((Cause.INPUT, -1), more("loaded")),
        ((Cause.SYNC, finding), idle),
    ):
        taken = min(max(length, 0.0), left)
        left -= taken
        if taken:
            found[cause] = taken
    rest = Cause.HOST if before else Cause.BEFORE
    return found | ({(rest, -1): left} if left else {})


def _idle_more(last: Arrival, others: Sequence[Arrival], since: Mapping[int, RankCollective]) -> tuple[float, int]:
    """How much longer the last rank's device stood idle behind syncs, and behind which finding the most."""
    own = _idle(last, since)
    usual = median(sum(_idle(other, since).values()) for other in others)
    return sum(own.values()) - usual, max(own, key=own.__getitem__, default=-1)


def _idle(arrival: Arrival, since: Mapping[int, RankCollective]) -> dict[int, float]:
    earlier = dict(since[arrival.rank].bubbles) if arrival.rank in since else {}
    return {finding: length - earlier.get(finding, 0) for finding, length in arrival.of.bubbles}


def lateness(members: Members, all_held: Mapping[tuple[int, int], Held], observed_us: float) -> tuple[Lateness, ...]:
    """Of each step the rank that held the others up the most; none where that is less than can be measured."""
    found = []
    for step in members.steps:
        ranks = {rank: one for (number, rank), one in all_held.items() if number == step}
        if not ranks:
            continue
        rank, most = max(ranks.items(), key=lambda item: item[1].late_ns)
        if most.late_ns / 1e3 >= REPEATABILITY * observed_us:
            found.append(_told(members, step, rank, most))
    return tuple(found)


def _told(members: Members, step: int, rank: int, of: Held) -> Lateness:
    by_cause: defaultdict[Cause, float] = defaultdict(float)
    for (cause, _), length in of.parts.items():
        by_cause[cause] += length / 1e3
    parts = sorted(by_cause.items(), key=lambda part: -part[1])
    cause = parts[0][0]
    syncs = {number: length for (what, number), length in of.parts.items() if what is Cause.SYNC and number >= 0}
    finding = max(syncs, key=syncs.__getitem__) if cause is Cause.SYNC and syncs else None
    member = members.ranks[rank]
    known = finding is not None and finding < len(member.of.findings)
    return Lateness(
        step=step,
        rank=member.number,
        late_us=of.late_ns / 1e3,
        cause=cause,
        finding=member.of.findings[finding].id if known and finding is not None else "",
        parts=tuple(parts),
    )


def critical_path(members: Members, all_met: Sequence[Met], clocks: Clocks) -> tuple[PathSegment, ...]:
    """What the job waited for, from the last meeting back to the first step's begin: always the last to come.

    Segments of one rank behind one another are one.
    """
    if not all_met:
        return ()
    of_rank = _by_rank(all_met)
    begin = min(_first_begin(members, rank, clocks) for rank in range(len(members.ranks)))
    found: list[PathSegment] = []
    at: Met | None = all_met[-1]
    while at is not None:
        last = at.last
        earlier = _before(*of_rank[last.rank], last.begin)
        since = max(a.end for a in earlier.arrivals) if earlier else begin
        found.append(
            PathSegment(
                at.meeting.step,
                members.ranks[last.rank].number,
                (since - begin) / 1e3,
                (last.begin - begin) / 1e3,
                at.meeting.kind,
            )
        )
        at = earlier
    return tuple(_merged(found[::-1]))


def _first_begin(members: Members, rank: int, clocks: Clocks) -> int:
    steps = members.ranks[rank].of.steps
    return (steps[0].begin if steps else 0) + clocks.added[rank]


def _by_rank(all_met: Sequence[Met]) -> Mapping[int, tuple[list[Met], list[int]]]:
    """Rank's place → its meetings in the order in which they ended, and when that was."""
    found: defaultdict[int, tuple[list[Met], list[int]]] = defaultdict(lambda: ([], []))
    for one in all_met:
        end = max(arrival.end for arrival in one.arrivals)
        for arrival in one.arrivals:
            meetings, ends = found[arrival.rank]
            meetings.append(one)
            ends.append(end)
    return found


def _before(meetings: Sequence[Met], ends: Sequence[int], begin: int) -> Met | None:
    """The last of a rank's meetings that was over when it came to another."""
    ended = bisect_left(ends, begin)
    return meetings[ended - 1] if ended else None


def _merged(segments: Sequence[PathSegment]) -> list[PathSegment]:
    found: list[PathSegment] = []
    for segment in segments:
        if found and (found[-1].rank, found[-1].step) == (segment.rank, segment.step):
            segment = PathSegment(segment.step, segment.rank, found.pop().begin_us, segment.end_us, segment.collective)
        found.append(segment)
    return found
