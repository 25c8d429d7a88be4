"""From a folder to the traces in it, in the order of their ranks."""

from __future__ import annotations

import os
import re
from pathlib import Path

from syncscan.errors import SyncscanError, TraceNotFound
from syncscan.load.byte_stream import open_bytes
from syncscan.load.metadata import metadata_before
from syncscan.load.saved import named_as_saved
from syncscan.load.split import Splitter
from syncscan.load.values import id_of
from syncscan.model.trace import NONE

_NAMES = re.compile(r".+\.json(\.tmp)?(\.gz|\.zst)?", re.IGNORECASE)
_RANK = re.compile(r"rank[-_. ]?(\d{1,9})", re.IGNORECASE)
_PEEK = 1 << 16
"""Bytes that are read at first to tell a trace from another JSON file: a head of kineto's has some kilobytes."""


def find(path: str | os.PathLike[str]) -> list[str]:
    """The traces that a path names: itself, or those in the folder that it is, by rank and then by name.

    In a folder these are the files named `*.json`, `*.json.gz`, `*.json.zst` (or `*.json.tmp`, left by a crash) that
    begin like a trace; in its subfolders if there are none in itself. A rank is what the trace says of itself, or else
    the number after `rank` in its name. A folder without traces may hold saved analyses, `*.syncscan.json`.

    Raises:
        TraceNotFound: the folder holds no trace.
    """
    if not os.path.isdir(path):  # noqa: PTH112  Path.is_dir raises for long names
        return [os.fspath(path)]
    folder = Path(path)
    for pattern in ("*", "**/*"):
        files = [p for p in folder.glob(pattern) if _NAMES.fullmatch(p.name) and p.is_file()]
        ranked = sorted((rank, _natural(str(p)), str(p)) for p in files if (rank := _rank(p)) is not None)
        if ranked:
            return [name for _, _, name in ranked]
        if saved := sorted((str(p) for p in files if named_as_saved(p.name)), key=_natural):
            return saved
    raise TraceNotFound(f"{folder} holds no trace.", "Name a trace, or a folder with *.json or *.json.gz in it.")


def _rank(path: Path) -> int | None:
    """The rank of a trace, -1 where nothing tells it; None for a file that is no trace."""
    try:
        with open_bytes(path) as stream:
            splitter = Splitter(stream, _PEEK)
            head = splitter.head()
            if head is not None and head.whole and not head.text and not _begins_with_object(splitter):
                return None
    except SyncscanError:
        return None
    if head is None:
        return None
    info = metadata_before(head).get("distributedInfo")
    rank = id_of(info.get("rank")) if isinstance(info, dict) else NONE
    in_name = _RANK.search(path.name)
    return rank if rank != NONE or not in_name else int(in_name[1])


def _begins_with_object(splitter: Splitter) -> bool:
    """Whether a bare list holds objects: any JSON file may be a list, of numbers for one."""
    return bytes(next(splitter.pieces()).text[1:]).lstrip().startswith(b"{")


def _natural(text: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d{1,18})", text)]
