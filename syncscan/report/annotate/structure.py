"""From the bytes of a trace to where its events stand: brackets outside of strings, with depth, chunk by chunk."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from syncscan.errors import TraceUnreadable

_QUOTE, _LIST_OPENS, _LIST_CLOSES, _OBJECT_OPENS, _OBJECT_CLOSES = b'"[]{}'
_ESCAPE = re.compile(rb"\\.", re.DOTALL)
_KEY = re.compile(rb'"traceEvents"\s*:\s*\[\Z')
_MEMBERS = re.compile(rb"\s*,?(.*)\}\s*\Z", re.DOTALL)

_STEP = np.zeros(256, dtype=np.int8)
_STEP[[_LIST_OPENS, _OBJECT_OPENS]] = 1
_STEP[[_LIST_CLOSES, _OBJECT_CLOSES]] = -1
_NOTABLE = _STEP != 0
_NOTABLE[_QUOTE] = True


@dataclass(frozen=True, slots=True)
class Envelope:
    """Where a trace's events stand in its text: between `start` and `end`, offsets in bytes.

    `start` is behind the `[`, `end` behind the last whole event.
    """

    head: bytes
    """What stands before the list's `[`, itself left out."""
    start: int
    end: int
    tail: bytes
    """What stands behind the list's `]`."""
    events: int
    whole: bool
    """False for a file that breaks off inside its events."""

    @property
    def bare(self) -> bool:
        """Whether the file is a list of events without an object around it."""
        return not self.head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")

    @property
    def depth(self) -> int:
        """How many brackets are open between two events."""
        return 1 if self.bare else 2

    @property
    def late_members(self) -> bytes:
        """The text of the members of the outer object that stand behind the events, without a leading comma."""
        found = _MEMBERS.match(self.tail)
        return found[1].strip() if found and not self.bare else b""


class Brackets:
    """Finds the brackets of JSON text that arrives in chunks; strings may be cut anywhere but inside an escape."""

    def __init__(self) -> None:
        self.depth = 0
        self._inside = 0

    def of(self, chunk: bytes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The brackets of the next chunk that stand outside of strings.

        Returns:
            Their offsets in the chunk (int64), their bytes (uint8) and the depth behind each (int64).
        """
        text = np.frombuffer(_ESCAPE.sub(b"__", chunk) if b"\\" in chunk else chunk, dtype=np.uint8)
        at = np.flatnonzero(_NOTABLE[text])
        byte = text[at]
        quotes = byte == _QUOTE
        inside = np.cumsum(quotes) + self._inside
        kept = ~quotes & (inside % 2 == 0)
        self._inside = int(inside[-1]) % 2 if len(inside) else self._inside
        at, byte = at[kept], byte[kept]
        depth = self.depth + np.cumsum(_STEP[byte], dtype=np.int64)
        self.depth = int(depth[-1]) if len(depth) else self.depth
        return at, byte, depth


def uncut(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in chunks of which none ends inside an escape."""
    held = b""
    for chunk in chunks:
        text = held + chunk
        slashes = len(text) - len(text.rstrip(b"\\"))
        cut = len(text) - slashes % 2
        held = text[cut:]
        yield text[:cut]
    if held:
        yield held


def envelope(chunks: Iterable[bytes], path: str = "the trace") -> Envelope:
    """Find the events of a trace; reads it once and keeps nothing but what stands around them.

    Args:
        chunks: the uncompressed text of the trace.
        path: named in the error.

    Raises:
        TraceUnreadable: there is no list of events.
    """
    search = _Search()
    for chunk in uncut(chunks):
        search.read(chunk)
    found = search.result()
    if found is None:
        raise TraceUnreadable(f"{path} holds no list of events.", "Give a Chrome trace written by torch.profiler.")
    return found


class _Search:
    """Before the list, inside it or behind it: what is known of an envelope so far."""

    def __init__(self) -> None:
        self.brackets = Brackets()
        self.before = bytearray()
        self.after = bytearray()
        self.offset = 0
        self.start = self.closed = self.last = -1
        self.level = self.events = 0

    def read(self, chunk: bytes) -> None:
        at, byte, depth = self.brackets.of(chunk)
        begun = 0
        if self.start < 0:
            begun = self._open(chunk, at, byte, depth)
        if self.start >= 0:
            inside = at >= begun
            self._inside(chunk, at[inside], byte[inside], depth[inside])
        self.offset += len(chunk)

    def _open(self, chunk: bytes, at: np.ndarray, byte: np.ndarray, depth: np.ndarray) -> int:
        """Look for the list's `[`; returns the offset in the chunk behind it."""
        for k in np.flatnonzero((byte == _LIST_OPENS) & (depth <= 2)):
            here = bytes(self.before) + chunk[: at[k] + 1]
            if depth[k] == 1 or _KEY.search(here):
                self.before = bytearray(here[:-1])
                self.start, self.level = len(here), int(depth[k])
                return int(at[k]) + 1
        self.before += chunk
        return 0

    def _inside(self, chunk: bytes, at: np.ndarray, byte: np.ndarray, depth: np.ndarray) -> None:
        if self.closed >= 0:
            self.after += chunk
            return
        ends = at[depth == self.level - 1]
        stop = int(ends[0]) if len(ends) else len(chunk)
        events = at[(depth == self.level) & (byte == _OBJECT_CLOSES) & (at < stop)]
        self.events += len(events)
        if len(events):
            self.last = self.offset + int(events[-1]) + 1
        if len(ends):
            self.closed = self.offset + stop
            self.after += chunk[stop + 1 :]

    def result(self) -> Envelope | None:
        if self.start < 0:
            return None
        end = max(self.last, self.start)
        return Envelope(bytes(self.before), self.start, end, bytes(self.after), self.events, self.closed >= 0)
