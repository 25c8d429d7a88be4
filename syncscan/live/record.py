"""Define the lines of a watch's file, one JSON object each: `syncscan.watch/1`."""

from __future__ import annotations

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

__all__ = [
    "DECODER",
    "ENCODER",
    "SCHEMA",
    "Alarm",
    "Begin",
    "Captured",
    "End",
    "Record",
    "WatchedLine",
    "WatchedThread",
    "Window",
    "WindowSteps",
]
