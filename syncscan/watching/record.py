"""Define the lines of a watch's file, one JSON object each (`syncscan.watch/1`), and append them to it."""

from __future__ import annotations

import contextlib
import logging
import logging.handlers
from pathlib import Path

import msgspec

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
