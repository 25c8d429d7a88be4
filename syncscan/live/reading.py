"""Read a watch's file, with the older parts that were moved aside, into windows, hours and alarms."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from syncscan.errors import TraceNotFound, TraceUnreadable
from syncscan.live.record import DECODER, SCHEMA, Alarm, Begin, Captured, End, Hour, Record, Window

SUFFIX = ".watch.jsonl"
TAIL_BYTES = 4 << 20
"""Bytes of a file's end that are read where only the last windows are wanted: some half a day."""


class WatchRecords(msgspec.Struct, frozen=True):
    """A watch's records, by kind and in the order in which they were written."""

    path: str
    begin: Begin | None
    windows: tuple[Window, ...] = ()
    hours: tuple[Hour, ...] = ()
    alarms: tuple[Alarm, ...] = ()
    captures: tuple[Captured, ...] = ()
    end: End | None = None


def files_of(location: str) -> list[Path]:
    """Return the files of watches that a path means, newest first: itself, or those in a folder.

    Raises:
        TraceNotFound: there is none.
    """
    path = Path(location)
    if path.is_dir():
        files = sorted(path.glob(f"*{SUFFIX}"), key=lambda file: -file.stat().st_mtime)
        if not files:
            raise TraceNotFound(f"{location} contains no *{SUFFIX} file.", "syncscan profile --watch writes one.")
        return files
    if not path.is_file():
        raise TraceNotFound(f"{location} doesn't exist.", "Give the file that a watch writes, or its folder.")
    return [path]


def read(path: Path, *, all_parts: bool = True) -> WatchRecords:
    """Return what a file has; a line that was cut off is left out.

    Args:
        path: of the newest part.
        all_parts: with the parts that were moved aside; else only the file's first line and its end.

    Raises:
        TraceUnreadable: it isn't a watch's file.
    """
    parts = [*_older(path), path] if all_parts else [path]
    records: list[Record] = []
    for part in parts:
        records += _records(part, None if all_parts else TAIL_BYTES)
    if not records:
        raise TraceUnreadable(f"{path} has no {SCHEMA} records.", "Give a file that a watch has written.")
    return of_records(str(path), records)


def of_records(path: str, records: Sequence[Record]) -> WatchRecords:
    """Return records by kind.

    Args:
        path: of their file.
        records: in order.
    """
    return WatchRecords(
        path,
        next((r for r in records if isinstance(r, Begin)), None),
        tuple(r for r in records if isinstance(r, Window)),
        tuple(r for r in records if isinstance(r, Hour)),
        tuple(r for r in records if isinstance(r, Alarm)),
        tuple(r for r in records if isinstance(r, Captured)),
        next((r for r in reversed(records) if isinstance(r, End)), None),
    )


def _older(path: Path) -> list[Path]:
    """Return the parts that were moved aside, oldest first."""
    numbered = [(int(p.suffix[1:]), p) for p in path.parent.glob(f"{path.name}.*") if p.suffix[1:].isdigit()]
    return [part for _, part in sorted(numbered, reverse=True)]


def _records(path: Path, tail: int | None) -> Iterator[Record]:
    with contextlib.suppress(FileNotFoundError), path.open("rb") as file:  # moved aside meanwhile
        lines: Iterable[bytes] = file
        if tail is not None and path.stat().st_size > tail:
            first = file.readline()
            file.seek(-tail, 2)
            file.readline()
            lines = [first, *file]
        for line in lines:
            with contextlib.suppress(msgspec.DecodeError):
                yield DECODER.decode(line)


__all__ = ["SUFFIX", "WatchRecords", "files_of", "of_records", "read"]
