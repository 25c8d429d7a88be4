"""From the members of a job to their meetings: which collective of one rank is the same as which of the others.

Each process group runs its collectives in one order on all its ranks (NCCL requires it), so that group, kind and place
in the step tell them, and the collective's number in its group where the traces have it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

import msgspec

from syncscan.fleet.members import Member, Members
from syncscan.model.process_group import ProcessGroup, group_of
from syncscan.model.rank import RankCollective
from syncscan.model.trace import NONE

Key: TypeAlias = "tuple[object, ...]"


class JobMeeting(msgspec.Struct, frozen=True):
    """One collective of one step: the place of each rank that takes part, and of its collective."""

    step: int
    """The step's number."""
    kind: str
    ranks: tuple[int, ...]
    """Places in `Members.ranks`, ascending."""
    places: tuple[int, ...]
    """Of the collective among each one's."""


class Meetings(msgspec.Struct, frozen=True):
    """Those that all ranks' traces have, in no order; and how many collectives have a rank whose trace lacks them."""

    found: tuple[JobMeeting, ...]
    unmatched: int


def meetings_of(members: Members) -> Meetings:
    """Match the collectives of the common steps."""
    at = {member.number: place for place, member in enumerate(members.ranks)}
    whole = frozenset(range(members.world_size) if members.world_size else at)
    held: defaultdict[Key, dict[int, list[int]]] = defaultdict(dict)
    wanted: dict[Key, frozenset[int] | None] = {}
    for place, member in enumerate(members.ranks):
        for key, group, collective in _keys(member, members.steps, whole):
            held[key].setdefault(place, []).append(collective)
            wanted[key] = group
    found, unmatched = list[JobMeeting](), 0
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
        found += [JobMeeting(step, kind, ranks, places) for places in zip(*(by_rank[r] for r in ranks), strict=True)]
    return Meetings(tuple(found), unmatched)


def _keys(
    member: Member, steps: Sequence[int], whole: frozenset[int]
) -> Iterator[tuple[Key, frozenset[int] | None, int]]:
    """Of each collective of a rank: what all ranks say of it alike, who they are (None: not said), and its place."""
    numbers = [step.number for step in member.of.steps] if member.of.numbered else list(range(len(member.of.steps)))
    wanted = frozenset(steps)
    groups = [group_of(text) for text in member.of.groups]
    for place, collective in enumerate(member.of.collectives):
        step = numbers[collective.step]
        if step not in wanted:
            continue
        group = groups[collective.group] if collective.group != NONE else None
        ranks = _ranks(group, member.number, whole)
        name = (group.name, group.peer is not None) if group else ("", False)
        yield (step, collective.kind, name, ranks, collective.number), ranks, place


def _ranks(group: ProcessGroup | None, own: int, whole: frozenset[int]) -> frozenset[int] | None:
    """The ranks of a collective; a trace that names no group is taken to mean all."""
    if group is None:
        return whole
    if group.peer is not None:
        return frozenset((own, group.peer))
    return _listed(group)


@lru_cache(1 << 10)
def _listed(group: ProcessGroup) -> frozenset[int] | None:
    """The ranks that a group lists, the same set for all of its collectives: of thousands, each would take as long."""
    return frozenset(group.ranks) if group.ranks else None


def by_collective(meetings: Sequence[JobMeeting]) -> Mapping[tuple[int, int], JobMeeting]:
    """(Rank's place, collective's place) → its meeting."""
    return {
        (rank, place): meeting
        for meeting in meetings
        for rank, place in zip(meeting.ranks, meeting.places, strict=True)
    }


def collective_of(members: Members, rank: int, place: int) -> RankCollective:
    """A rank's collective."""
    return members.ranks[rank].of.collectives[place]
