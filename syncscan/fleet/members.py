"""Number the ranks of a job, and find their common steps.

Traces of different steps or captures are rejected: together they would be no job.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath
from statistics import median_low

import msgspec

from syncscan.errors import UsageError
from syncscan.model.fleet import RankFrom
from syncscan.model.rank import RankAnalysis

_NAMED = re.compile(r"(?<![a-z])(?:rank|worker|gpu)[-_.=]?(\d{1,6})(?!\d)", re.IGNORECASE)
APART_NS = 60 * 10**9
"""Largest difference in begin time of a step among ranks of one capture: NTP keeps hosts' clocks within some ms."""


class Member(msgspec.Struct, frozen=True):
    """One rank of the job."""

    number: int
    of: RankAnalysis
    numbered_from: RankFrom


class Members(msgspec.Struct, frozen=True):
    """The ranks by number, the numbers of their common steps, and the job's size, None where unknown."""

    ranks: tuple[Member, ...]
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


def _number_ranks(ranks: Sequence[RankAnalysis]) -> list[Member]:
    """Assign ranks their numbers by their traces; if one has no number, all by file names; otherwise all by order."""
    if all(rank.rank is not None for rank in ranks):
        return [Member(rank.rank or 0, rank, RankFrom.TRACE) for rank in ranks]
    named = [_NAMED.findall(PurePath(rank.path).name) for rank in ranks]
    if all(named):
        return [Member(int(n[-1]), rank, RankFrom.NAME) for n, rank in zip(named, ranks, strict=True)]
    return [Member(k, rank, RankFrom.ORDER) for k, rank in enumerate(ranks)]


def _refuse_duplicates(members: Sequence[Member]) -> None:
    seen: dict[int, Member] = {}
    for member in members:
        other = seen.setdefault(member.number, member)
        if other is not member:
            raise UsageError(
                f"{other.of.path} and {member.of.path} are both from rank {member.number}.",
                "Give one capture of one job: one trace per rank.",
            )


def _common_steps(members: Sequence[Member]) -> tuple[int, ...]:
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


def _refuse_other_captures(members: Sequence[Member], steps: Sequence[int]) -> None:
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
