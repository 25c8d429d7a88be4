"""Find the traces in a folder, in the order of their ranks."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path, PurePath

from syncscan.errors import SyncscanError, TraceNotFound, TraceUnreadable
from syncscan.load.byte_stream import ByteStream, in_memory, is_litter, open_bytes, opened_archive
from syncscan.load.databases import begins_like_an_export, is_database
from syncscan.load.fields import id_of
from syncscan.load.metadata import metadata_before
from syncscan.load.saved import named_as_saved
from syncscan.load.split import Splitter
from syncscan.model.trace import NONE

_NAMES = re.compile(r".+\.(json(\.tmp)?|sqlite)(\.(gz|zst|xz|bz2))?", re.IGNORECASE)
_A_TRACES_NAME = re.compile(r".+\.pt\.trace\.json(\.tmp)?(\.(gz|zst|xz|bz2))?", re.IGNORECASE)
"""Name that torch's handlers give to traces; such a file counts as a trace even if it can't be read, and is
reported."""
_RANK = re.compile(r"rank[-_. ]?(\d{1,9})", re.IGNORECASE)
PEEK = 1 << 16
"""Bytes read to tell a trace from another JSON file; a head of kineto's has a few kilobytes."""


def find(path: str | os.PathLike[str]) -> list[str]:
    """Return the traces that a path names: itself, or those in the folder, tar or zip, by rank and then by name.

    In a folder these are the files named `*.json`, `*.json.gz` and so on (or `*.json.tmp`, left by a crash) that
    begin like a trace, those named `*.sqlite` that begin like an export of Nsight Systems, and all named
    `*.pt.trace.json…`; those of its subfolders if it has none itself. A rank is what the trace states, or else the
    number after `rank` in its name. A folder without traces may have saved analyses, `*.syncscan.json`.
    """
    if not os.path.isdir(path):  # noqa: PTH112  Path.is_dir raises for long names
        return _in_archive(os.fspath(path)) or [os.fspath(path)]
    folder = Path(path)
    for pattern in ("*", "**/*"):
        files = [str(p) for p in folder.glob(pattern) if named_as_trace(p.name) and p.is_file()]
        if traces := traces_among((name, partial(open_bytes, name)) for name in files):
            return traces
        if saved := sorted(filter(named_as_saved, files), key=natural):
            return saved
    raise TraceNotFound(f"{folder} contains no traces.", "Give a trace, or a folder with *.json or *.json.gz files.")


def ranks_in(folder: str) -> set[int]:
    """Return the ranks whose traces are in a folder; those that no trace states are left out."""
    try:
        return {_rank(name, partial(open_bytes, name)) or 0 for name in find(folder)} - {NONE}
    except TraceNotFound:
        return set()


def _in_archive(path: str) -> list[str]:
    """Return the traces in a tar or zip as `ARCHIVE/NAME`; none if it isn't one."""
    if not os.path.isfile(path):  # noqa: PTH113  as above
        return []
    try:
        archive = opened_archive(path)
    except OSError:  # who opens it says why
        return []
    if archive is None:
        return []
    heads: dict[str, bytes] = {}
    damage: TraceUnreadable | None = None
    try:
        for name, stream in archive.files():
            if named_as_trace(PurePath(name).name) and not is_litter(name):
                heads[f"{path}/{name}"] = stream.read(PEEK)
    except TraceUnreadable as error:  # what came before it may be all that is wanted
        damage = error
    traces = traces_among((name, partial(in_memory, head, name)) for name, head in heads.items())
    if found := traces or sorted(filter(named_as_saved, heads), key=natural):
        return found
    raise damage or TraceNotFound(f"{path} contains no traces.", "Give a tar or zip with *.json or *.json.gz files.")


def named_as_trace(name: str) -> bool:
    """Return whether a file of this name may be a trace; its content decides."""
    return _NAMES.fullmatch(name) is not None


def traces_among(files: Iterable[tuple[str, Callable[[], ByteStream]]]) -> list[str]:
    """Return the names of the files that begin like a trace, by rank and then by name.

    A file that can't be opened isn't a trace.
    """
    ranked = [(rank, natural(name), name) for name, opened in files if (rank := _rank(name, opened)) is not None]
    return [name for _, _, name in sorted(ranked)]


def _rank(name: str, opened: Callable[[], ByteStream]) -> int | None:
    """Return the rank of a trace, -1 if unknown; None for a file that isn't a trace."""
    try:
        with opened() as stream:
            if is_database(begin := stream.peek(PEEK)):
                return _rank_in(name) if begins_like_an_export(begin) else None
            splitter = Splitter(stream, PEEK)
            head = splitter.head()
            if head is not None and head.whole and not head.text and not _begins_with_object(splitter):
                return None
    except SyncscanError:
        head = None
    if head is None:
        return _rank_in(name) if _A_TRACES_NAME.fullmatch(PurePath(name).name) else None
    info = metadata_before(head).get("distributedInfo")
    rank = id_of(info.get("rank")) if isinstance(info, dict) else NONE
    return rank if rank != NONE else _rank_in(name)


def _rank_in(name: str) -> int:
    found = _RANK.search(PurePath(name).name)
    return int(found[1]) if found else NONE


def _begins_with_object(splitter: Splitter) -> bool:
    """Return whether a bare list contains objects, since any JSON file may be a list, for example of numbers."""
    return bytes(next(splitter.pieces()).text[1:]).lstrip().startswith(b"{")


def natural(text: str) -> list[tuple[int, str]]:
    """Return a sort key that orders texts as people do: 2 before 10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d{1,18})", text)]
