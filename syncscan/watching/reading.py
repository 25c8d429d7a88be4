"""Read a watch's file, with the older parts that were moved aside, into windows and alarms."""

from __future__ import annotations

import contextlib
import http.client
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from syncscan.errors import TraceNotFound, TraceUnreadable
from syncscan.watching.record import DECODER, SCHEMA, Alarm, Begin, Captured, End, Record, Window

SUFFIX = ".watch.jsonl"
RECORDS = "/records"
"""Path at which a watch serves its last records."""
ANSWERS_S = 5.0
MOST_ANSWER_BYTES = 32 << 20
TAIL_BYTES = 4 << 20
"""Bytes of a file's end that are read where only the last windows are wanted: some half a day."""


class WatchRecords(msgspec.Struct, frozen=True):
    """A watch's records, by kind and in the order in which they were written."""

    path: str
    begin: Begin | None
    windows: tuple[Window, ...] = ()
    alarms: tuple[Alarm, ...] = ()
    captures: tuple[Captured, ...] = ()
    end: End | None = None


def files_of(location: str) -> list[Path]:
    """Return the files of watches that a path means, newest first: itself, or those in a folder and below it.

    Raises:
        TraceNotFound: there is none.
    """
    path = Path(location)
    if path.is_dir():
        files = _newest_first(path, f"*{SUFFIX}")
        if not files:
            place = f"{location} contains" if location != "." else "This folder contains"
            raise TraceNotFound(
                f"{place} no *{SUFFIX} file, nor do its subfolders.",
                "syncscan watch SCRIPT writes one; or give its path, or the address of a watch.",
            )
        return files
    if not path.is_file():
        raise TraceNotFound(f"{location} doesn't exist.", "Give the file that a watch writes, or its folder.")
    return [path]


def opens(word: str) -> tuple[str, ...]:
    """Return the command for a word that isn't one: a process is watched, and what a watch writes or serves shown.

    A folder is a watch's where that is newer than the traces in it.
    """
    if word.isdecimal() and not Path(word).exists():
        return "attach", "--watch"
    if is_address(word) or SUFFIX in word:
        return ("watch",)
    newest = _newest_first(Path(word), f"*{SUFFIX}", "*.json", "*.json.gz")[:1]
    return ("watch",) if newest and newest[0].name.endswith(SUFFIX) else ()


def _newest_first(folder: Path, *patterns: str) -> list[Path]:
    """Return the files in a folder and its subfolders, but no deeper: it may be a whole home."""
    files = [file for pattern in patterns for below in ("", "*/") for file in folder.glob(f"{below}{pattern}")]
    return sorted(files, key=lambda file: -file.stat().st_mtime)


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


def is_address(where: str) -> bool:
    """Return whether a watch is served at an address rather than stored in a file."""
    return where.startswith(("http://", "https://"))


def fetch(address: str) -> WatchRecords:
    """Return the last records of a watch that serves them, or of a file that any server has.

    Args:
        address: `http://HOST:PORT` of a watch's `prometheus:PORT`, or of a file of JSON lines (`*.jsonl`).

    Raises:
        TraceNotFound: nobody answers there.
        TraceUnreadable: what is answered are no records.
    """
    parts = urllib.parse.urlsplit(address)
    path = parts.path if parts.path.endswith(".jsonl") else RECORDS
    url = urllib.parse.urlunsplit(parts._replace(path=path))
    try:
        with urllib.request.urlopen(url, timeout=ANSWERS_S) as answer:
            body: bytes = answer.read(MOST_ANSWER_BYTES)
    except (OSError, ValueError, http.client.HTTPException) as error:
        why = getattr(error, "reason", None) or error
        raise TraceNotFound(
            f"{url} doesn't answer: {why}.", "A watch serves it with --export prometheus:PORT."
        ) from None
    records = list(_decoded(body.splitlines()))
    if not records:
        raise TraceUnreadable(f"{url} has no line of {SCHEMA}.", "Name the address of a watch's prometheus:PORT.")
    return of_records(address, records)


def of_records(path: str, records: Sequence[Record]) -> WatchRecords:
    """Return records by kind."""
    return WatchRecords(
        path,
        next((r for r in records if isinstance(r, Begin)), None),
        tuple(r for r in records if isinstance(r, Window)),
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
        yield from _decoded(lines)


def _decoded(lines: Iterable[bytes]) -> Iterator[Record]:
    for line in lines:
        with contextlib.suppress(msgspec.DecodeError):
            yield DECODER.decode(line)
