"""Number a job's ranks, match their collectives with one another, and align the ranks' clocks by them.

Traces of different steps or captures are rejected: together they would be no job.

Each process group runs its collectives in the same order on all its ranks (NCCL requires it), so that group, kind and
position in the step identify a collective, and its number in the group where traces have it.

A collective ends at about the same time on all its ranks, whatever their clocks show; its begin says nothing, as that
is when each rank arrived. Ranks that share no collective with the first are aligned through ranks that share some with
both.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import PurePath
from statistics import median, median_low
from typing import TypeAlias

import msgspec

from syncscan.errors import UsageError
from syncscan.model.fleet import JobRank, RankFrom
from syncscan.model.process_group import ProcessGroup, group_of
from syncscan.model.rank import RankAnalysis, RankCollective
from syncscan.model.trace import NONE

_NAMED = re.compile(r"(?<![a-z])(?:rank|worker|gpu)[-_.=]?(\d{1,6})(?!\d)", re.IGNORECASE)
APART_NS = 60 * 10**9
"""Largest difference in begin time of a step among ranks of one capture: NTP keeps hosts' clocks within some ms."""


class Members(msgspec.Struct, frozen=True):
    """The ranks by number, the numbers of their common steps, and the job's size, None where unknown.

    Neither clocks nor times of the ranks are known yet.
    """

    ranks: tuple[JobRank, ...]
    steps: tuple[int, ...]
    world_size: int | None

    @property
    def missing(self) -> tuple[int, ...]:
        there = {member.number for member in self.ranks}
        return tuple(sorted(set(range(self.world_size or 0)) - there))


def members_of(ranks: Sequence[RankAnalysis]) -> Members:
    """Assign the ranks their numbers, and find their common steps.

    A UsageError if there are none, or if two traces are of one rank, of jobs of different sizes, of other steps, or
    were recorded at other times.
    """
    if not ranks:
        raise UsageError("No rank's trace could be read.", "Give the folder that contains one trace per rank.")
    members = tuple(sorted(_number_ranks(ranks), key=lambda member: member.number))
    _refuse_duplicates(members)
    sizes = Counter(member.of.world_size for member in members if member.of.world_size)
    if len(sizes) > 1:
        raise UsageError(
            f"These traces are from jobs with {' and '.join(map(str, sorted(sizes)))} ranks.",
            "Give the traces of one job.",
        )
    steps = _common_steps(members)
    _refuse_other_captures(members, steps)
    return Members(members, steps, next(iter(sizes), None))


def _number_ranks(ranks: Sequence[RankAnalysis]) -> list[JobRank]:
    """Assign ranks their numbers by their traces; if one has no number, all by file names; otherwise all by order."""
    if all(rank.rank is not None for rank in ranks):
        return [_member(rank.rank or 0, rank, RankFrom.TRACE) for rank in ranks]
    named = [_NAMED.findall(PurePath(rank.path).name) for rank in ranks]
    if all(named):
        return [_member(int(n[-1]), rank, RankFrom.NAME) for n, rank in zip(named, ranks, strict=True)]
    return [_member(k, rank, RankFrom.ORDER) for k, rank in enumerate(ranks)]


def _member(number: int, rank: RankAnalysis, numbered_from: RankFrom) -> JobRank:
    return JobRank(number, rank, numbered_from, clock_ns=0, holds_us=0.0, waits_us=0.0)


def _refuse_duplicates(members: Sequence[JobRank]) -> None:
    seen: dict[int, JobRank] = {}
    for member in members:
        other = seen.setdefault(member.number, member)
        if other is not member:
            raise UsageError(
                f"{other.of.path} and {member.of.path} are both from rank {member.number}.",
                "Give one capture of one job: one trace per rank.",
            )


def _common_steps(members: Sequence[JobRank]) -> tuple[int, ...]:
    """Return the numbers of the steps that all ranks have; unnumbered steps are counted."""
    if not all(member.of.numbered for member in members):
        counts = {len(member.of.steps): member.of.path for member in members}
        if len(counts) > 1:
            (some, one), (more, other) = sorted(counts.items())[:2]
            raise UsageError(
                f"{one} holds {some} steps and {other} {more}, and the steps aren't numbered.",
                "Record them with a schedule and prof.step().",
            )
        return tuple(range(next(iter(counts))))
    held = [frozenset(step.number for step in member.of.steps) for member in members]
    common = frozenset.intersection(*held)
    if not common:
        usual = Counter(held).most_common(1)[0][0]
        odd = next(k for k, steps in enumerate(held) if steps != usual)
        raise UsageError(
            f"{members[odd].of.path} holds steps {_listed(held[odd])}, the others {_listed(usual)}: none in common.",
            "Give traces of the same steps.",
        )
    return tuple(sorted(common))


def _listed(steps: frozenset[int]) -> str:
    return f"{min(steps)} to {max(steps)}" if len(steps) > 1 else str(min(steps, default=0))


def _refuse_other_captures(members: Sequence[JobRank], steps: Sequence[int]) -> None:
    """Reject a rank that recorded the first common step at a different time than most."""
    with_base = [member for member in members if member.of.base_ns]
    begins = {member.number: _begin(member.of, steps[0]) for member in with_base}
    usual = median_low(begins.values()) if begins else 0
    for member in with_base:
        apart = abs(begins[member.number] - usual)
        if apart > APART_NS:
            raise UsageError(
                f"{member.of.path} was recorded {apart / 1e9:.0f} s away from the other ranks' traces.",
                "Give the traces of one capture.",
            )


def _begin(rank: RankAnalysis, number: int) -> int:
    """Return when a step began, epoch ns."""
    steps = rank.steps
    return rank.base_ns + next((step.begin for step in steps if step.number == number), steps[0].begin if steps else 0)


Key: TypeAlias = "tuple[object, ...]"


class JobCollective(msgspec.Struct, frozen=True):
    """One collective of one step: the ranks that take part, and its index on each of them."""

    step: int
    kind: str
    ranks: tuple[int, ...]
    """Indices into `Members.ranks`, ascending."""
    places: tuple[int, ...]
    """Index of the collective on each rank."""


def match_collectives(members: Members) -> tuple[list[JobCollective], int]:
    """Return collectives that all their ranks' traces have, in no order, and how many some trace is missing."""
    at = {member.number: place for place, member in enumerate(members.ranks)}
    all_ranks = frozenset(range(members.world_size) if members.world_size else at)
    held: defaultdict[Key, dict[int, list[int]]] = defaultdict(dict)
    wanted: dict[Key, frozenset[int] | None] = {}
    for place, member in enumerate(members.ranks):
        for key, group, collective in _keys(member, members.steps, all_ranks):
            held[key].setdefault(place, []).append(collective)
            wanted[key] = group
    matched, unmatched = list[JobCollective](), 0
    for key, by_rank in held.items():
        expected = wanted[key]
        counts = {len(places) for places in by_rank.values()}
        complete = len(counts) == 1 and len(by_rank) > 1
        if expected is not None:
            complete = complete and {members.ranks[place].number for place in by_rank} == expected
        if not complete:
            unmatched += max(counts)
            continue
        ranks = tuple(sorted(by_rank))
        step, kind = int(str(key[0])), str(key[1])
        matched += [
            JobCollective(step, kind, ranks, places) for places in zip(*(by_rank[r] for r in ranks), strict=True)
        ]
    return matched, unmatched


def _keys(
    member: JobRank, steps: Sequence[int], all_ranks: frozenset[int]
) -> Iterator[tuple[Key, frozenset[int] | None, int]]:
    """Yield, for each collective of a rank, a key shared by all ranks, their set (None: unknown), and its index."""
    numbers = [step.number for step in member.of.steps] if member.of.numbered else list(range(len(member.of.steps)))
    wanted = frozenset(steps)
    groups = [group_of(text) for text in member.of.groups]
    for place, collective in enumerate(member.of.collectives):
        step = numbers[collective.step]
        if step not in wanted:
            continue
        group = groups[collective.group] if collective.group != NONE else None
        ranks = _ranks(group, member.number, all_ranks)
        name = (group.name, group.peer is not None) if group else ("", False)
        yield (step, collective.kind, name, ranks, collective.number), ranks, place


def _ranks(group: ProcessGroup | None, rank: int, all_ranks: frozenset[int]) -> frozenset[int] | None:
    """Return the ranks of a collective; all if a trace names no group."""
    if group is None:
        return all_ranks
    if group.peer is not None:
        return frozenset((rank, group.peer))
    return _rank_set(group)


@lru_cache(1 << 10)
def _rank_set(group: ProcessGroup) -> frozenset[int] | None:
    """Return a group's ranks as a set, cached: for thousands of ranks, building one per collective is too slow."""
    return frozenset(group.ranks) if group.ranks else None


def collective_of(members: Members, rank: int, place: int) -> RankCollective:
    return members.ranks[rank].of.collectives[place]


def clocks_of(members: Members, collectives: Sequence[JobCollective]) -> tuple[list[int], dict[int, int]]:
    """Return the offset from each rank's trace time to the job's, ns since the first rank's `base_ns`.

    The second value has the part of each that the rank's own epoch time doesn't explain, by its index; it has no entry
    for a rank that shares no collective with the others, whose epoch time is used unaligned.
    """
    base = members.ranks[0].of.base_ns
    epoch = [member.of.base_ns - base if member.of.base_ns and base else 0 for member in members.ranks]
    corrected: dict[int, int] = {0: 0}
    while newly_aligned := _next(members, collectives, epoch, corrected):
        corrected |= newly_aligned
    return [own + corrected.get(place, 0) for place, own in enumerate(epoch)], corrected


def _next(
    members: Members, collectives: Sequence[JobCollective], epoch: Sequence[int], corrected: dict[int, int]
) -> dict[int, int]:
    """Return the corrections of ranks that share a collective with an aligned one."""
    apart: defaultdict[int, list[float]] = defaultdict(list)
    for collective in collectives:
        ends = {
            rank: collective_of(members, rank, place).end + epoch[rank] + corrected.get(rank, 0)
            for rank, place in zip(collective.ranks, collective.places, strict=True)
        }
        corrected_ends = [end for rank, end in ends.items() if rank in corrected]
        if corrected_ends and len(corrected_ends) < len(ends):
            at = median(corrected_ends)
            for rank, end in ends.items():
                if rank not in corrected:
                    apart[rank].append(at - end)
    return {rank: round(median(differences)) for rank, differences in apart.items()}
