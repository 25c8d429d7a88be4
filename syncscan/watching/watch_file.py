"""The file that a watch writes, with older parts that were moved aside: its lines, how they get there, reading it.

Each line is a JSON object (`syncscan.watch/1`).
"""

from __future__ import annotations

import contextlib
import http.client
import logging
import logging.handlers
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from syncscan.errors import TraceNotFound, TraceUnreadable

SCHEMA = "syncscan.watch/1"


class WatchedLine(msgspec.Struct, frozen=True):
    """A line of the program, and its share of the thread's time."""

    file: str
    line: int
    function: str
    rule: str
    """The rule for its wait; empty if it doesn't wait or no rule is known."""
    share: float
    """Part of the samples."""
    waiting: float
    """Share of the samples in which it waited for the device."""
    kind: str
    """Its most frequent state here: `host`, or waiting: `device`, `input` (a data loader), `peers` (other ranks)."""
    us_per_step: float | None
    """µs per step; null if no step ended."""


class WindowSteps(msgspec.Struct, frozen=True):
    """Times of the steps that ended, in µs."""

    count: int
    mean_us: float
    p50_us: float
    p90_us: float
    p99_us: float


class WatchedThread(msgspec.Struct, frozen=True):
    """Another thread, and the share of its samples in the program's code."""

    name: str
    share: float
    waiting: float
    file: str
    line: int


class _Record(msgspec.Struct, frozen=True, tag_field="kind", kw_only=True):
    at: float
    """When it was written, seconds since 1970."""
    schema: str = SCHEMA


class Begin(_Record, frozen=True, tag="begin", kw_only=True):
    """First line of a watch."""

    program: str
    host: str
    pid: int
    rank: int
    world: int
    python: str
    torch: str
    """Its version; empty where it isn't imported yet."""
    rate: int
    """Samples a second."""
    interval: float
    """Seconds of a window."""


class Window(_Record, frozen=True, tag="window", kw_only=True):
    """Some seconds of a run."""

    seconds: float
    total_steps: int
    """Steps since the watch started."""
    step: WindowSteps | None
    samples: int
    waiting: float
    """Share of the samples in which the thread waited for the device."""
    input: float
    peers: float
    lines: tuple[WatchedLine, ...]
    """The lines with the most samples, in descending order."""
    others: float
    """Share of the samples at lines that aren't listed."""
    threads: tuple[WatchedThread, ...] = ()


class Alarm(_Record, frozen=True, tag="alarm", kw_only=True):
    """A line that waits more than it did before."""

    file: str
    line: int
    function: str
    rule: str
    before: float
    """Part of the samples that it waited before."""
    now: float
    """And since the change began, as far as that shows."""
    total_steps: int

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}"
        return f"{where} waits for the device for {self.now:.0%} of the time, up from {self.before:.0%}."


class Captured(_Record, frozen=True, tag="captured", kw_only=True):
    """A capture that was made meanwhile."""

    paths: tuple[str, ...]
    why: str
    failed: str | None


class End(_Record, frozen=True, tag="end", kw_only=True):
    """Last line of a watch that was stopped."""

    total_steps: int
    samples: int
    lost: int
    """Lines of this file that couldn't be written."""


Record = Begin | Window | Alarm | Captured | End

ENCODER = msgspec.json.Encoder()
DECODER = msgspec.json.Decoder(Record)


MOST_BYTES = 16 << 20
"""Size at which a file is moved aside; windows of 20 s with 20 lines fill it in some two days."""
KEPT_FILES = 9
"""Files that were moved aside and stay; the oldest goes then."""


class _JournalHandler(logging.handlers.RotatingFileHandler):
    """A file that rotates, and that counts what it couldn't write."""

    lost = 0

    def handleError(self, record: logging.LogRecord) -> None:
        """Count a line that couldn't be written, without reporting it to the program's own logging."""
        self.lost += 1


class Journal:
    """A watch's file.

    Args:
        path: of the file; its older parts get `.1`, `.2` … behind the name.
        most_bytes: the size at which it is moved aside.
        files: how many older parts stay.

    Raises:
        OSError: the folder can't be made or written to.
    """

    def __init__(self, path: Path, most_bytes: int = MOST_BYTES, files: int = KEPT_FILES) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._handler = _JournalHandler(path, maxBytes=most_bytes, backupCount=files, encoding="utf-8")

    @property
    def lost(self) -> int:
        """Return the number of records that couldn't be written."""
        return self._handler.lost

    def write(self, record: Record) -> None:
        """Append a record; what goes wrong is counted in `lost`."""
        text = ENCODER.encode(record).decode()
        self._handler.emit(logging.LogRecord("syncscan", logging.INFO, "", 0, text, None, None))

    def close(self) -> None:
        """Close the file; what couldn't be written until now is lost."""
        with contextlib.suppress(OSError):
            self._handler.close()


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
