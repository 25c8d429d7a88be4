"""Match the collectives of a job's ranks with one another, and align the ranks' clocks by them.

Each process group runs its collectives in the same order on all its ranks (NCCL requires it), so that group, kind and
position in the step identify a collective, and its number in the group where traces have it.

A collective ends at about the same time on all its ranks, whatever their clocks show; its begin says nothing, as that
is when each rank arrived. Ranks that share no collective with the first are aligned through ranks that share some with
both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from statistics import median
from typing import TypeAlias

import msgspec

from syncscan.fleet.members import Member, Members
from syncscan.model.process_group import ProcessGroup, group_of
from syncscan.model.rank import RankCollective
from syncscan.model.trace import NONE

Key: TypeAlias = "tuple[object, ...]"


class JobCollective(msgspec.Struct, frozen=True):
    """One collective of one step: the ranks that take part, and its index on each of them."""

    step: int
    kind: str
    ranks: tuple[int, ...]
    """Indices into `Members.ranks`, ascending."""
    places: tuple[int, ...]
    """Index of the collective on each rank."""


class MatchedCollectives(msgspec.Struct, frozen=True):
    """Collectives that all their ranks' traces have, in no order, and the number of those missing in some trace."""

    matched: tuple[JobCollective, ...]
    unmatched: int


def match_collectives(members: Members) -> MatchedCollectives:
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
    return MatchedCollectives(tuple(matched), unmatched)


def _keys(
    member: Member, steps: Sequence[int], all_ranks: frozenset[int]
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


class RankClocks(msgspec.Struct, frozen=True):
    """Offsets from each rank's trace time to the job's, ns since the first rank's `base_ns`."""

    added: tuple[int, ...]
    corrected: tuple[int, ...]
    """The part of the offsets that the ranks' own epoch times don't explain."""
    unaligned: tuple[int, ...]
    """Indices of ranks that share no collective with the others: their epoch times are used unaligned."""


def clocks_of(members: Members, collectives: Sequence[JobCollective]) -> RankClocks:
    base = members.ranks[0].of.base_ns
    epoch = [member.of.base_ns - base if member.of.base_ns and base else 0 for member in members.ranks]
    corrected: dict[int, int] = {0: 0}
    while newly_aligned := _next(members, collectives, epoch, corrected):
        corrected |= newly_aligned
    unaligned = tuple(sorted(set(range(len(epoch))) - set(corrected)))
    corrections = tuple(corrected.get(place, 0) for place in range(len(epoch)))
    return RankClocks(tuple(e + c for e, c in zip(epoch, corrections, strict=True)), corrections, unaligned)


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
        settled = [end for rank, end in ends.items() if rank in corrected]
        if settled and len(settled) < len(ends):
            at = median(settled)
            for rank, end in ends.items():
                if rank not in corrected:
                    apart[rank].append(at - end)
    return {rank: round(median(differences)) for rank, differences in apart.items()}
