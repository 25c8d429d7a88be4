"""Encode a trace's facts on a collective's process group as one text, and decode it.

A trace holds the name of each group (`Process Group Name`), its ranks (`Process Group Ranks`, for many only the first
and last), and for a send or receive the other rank (`Dst Rank`, `Src Rank`). Source: torch/csrc/profiler/util.cpp,
`saveNcclMeta`.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import msgspec


class ProcessGroup(msgspec.Struct, frozen=True):
    """Ranks that communicate."""

    name: str
    """Name as torch numbers it; groups of other ranks may share it."""
    ranks: tuple[int, ...]
    """Ranks in the whole job; empty where the trace doesn't list them all."""
    peer: int | None = None
    """The other rank of a send or receive."""


def group_text(name: str, ranks: str, peer: int | None) -> str:
    """Return a text that represents a group among a trace's strings; empty without a name.

    `ranks` is the list as the trace has it, `peer` the other rank of a send or receive.
    """
    return json.dumps([name, ranks, peer]) if name or ranks else ""


@lru_cache(1 << 10)
def group_of(text: str) -> ProcessGroup:
    """Return the group that a text of `group_text` represents."""
    parts = json.loads(text)
    if not (isinstance(parts, list) and [type(part) for part in parts[:2]] == [str, str] and len(parts) == 3):
        raise ValueError("a process group is none")
    name, ranks, peer = parts
    return ProcessGroup(name, _complete_list(ranks), peer if type(peer) is int else None)


def _complete_list(ranks: str) -> tuple[int, ...]:
    """Return the ranks of a complete list; empty for one that is cut or damaged."""
    try:
        listed: Any = json.loads(ranks)
    except (ValueError, RecursionError):
        return ()
    if not isinstance(listed, list) or not all(type(rank) is int and 0 <= rank < 1 << 31 for rank in listed):
        return ()
    return tuple(listed)
