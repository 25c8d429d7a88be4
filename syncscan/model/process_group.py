"""From what a trace says about a collective's process group to one text, and from that text to the group again.

A trace holds the name of each group (`Process Group Name`), its ranks (`Process Group Ranks`, of many only the first
and last), and of a send or receive the other rank (`Dst Rank`, `Src Rank`). Source: torch/csrc/profiler/util.cpp,
`saveNcclMeta`.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import msgspec


class ProcessGroup(msgspec.Struct, frozen=True):
    """Some ranks that communicate."""

    name: str
    """As torch numbers it; groups of other ranks may have the same."""
    ranks: tuple[int, ...]
    """Its ranks in the whole job; empty where the trace doesn't list them all."""
    peer: int | None = None
    """The other rank of a send or receive."""


def group_text(name: str, ranks: str, peer: int | None) -> str:
    """One text for a group, to be kept among a trace's strings; empty without a name.

    Args:
        name: of the group.
        ranks: its list of ranks, as the trace has it.
        peer: the other rank of a send or receive.
    """
    return json.dumps([name, ranks, peer]) if name or ranks else ""


@lru_cache(1 << 10)
def group_of(text: str) -> ProcessGroup:
    """The group of such a text.

    Raises:
        ValueError: it is none.
    """
    told = json.loads(text)
    if not (isinstance(told, list) and [type(part) for part in told[:2]] == [str, str] and len(told) == 3):
        raise ValueError("a process group is none")
    name, ranks, peer = told
    return ProcessGroup(name, _listed(ranks), peer if type(peer) is int else None)


def _listed(ranks: str) -> tuple[int, ...]:
    """The ranks of a list that is written out; none of one that is cut, or damaged."""
    try:
        listed: Any = json.loads(ranks)
    except (ValueError, RecursionError):
        return ()
    if not isinstance(listed, list) or not all(type(rank) is int and 0 <= rank < 1 << 31 for rank in listed):
        return ()
    return tuple(listed)
