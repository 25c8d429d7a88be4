"""Align the clocks of a job's ranks by their collectives.

A collective ends at about the same time on all its ranks, whatever their clocks show; its begin says nothing, as that
is when each rank arrived. Ranks that share no collective with the first are aligned through ranks that share some with
both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from statistics import median

import msgspec

from syncscan.fleet.matched_collectives import JobCollective, collective_of
from syncscan.fleet.members import Members


class RankClocks(msgspec.Struct, frozen=True):
    """Offsets from each rank's trace time to the job's, ns since the first rank's `base_ns`."""

    added: tuple[int, ...]
    corrected: tuple[int, ...]
    """The part of the offsets that the ranks' own epoch times don't explain."""
    unaligned: tuple[int, ...]
    """Indices of ranks that share no collective with the others: their epoch times are used unaligned."""


def clocks_of(members: Members, collectives: Sequence[JobCollective]) -> RankClocks:
    """Align the ranks' clocks."""
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
