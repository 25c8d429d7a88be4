"""Split a stream of JSON text into its head, its events in pieces, and its tail, without parsing the rest.

A piece is cut between two events. That position is inferred from the text (`}, {"ph":` and the like) and proven by the
decoder: a piece that was cut elsewhere isn't a valid list, and `salvage` then reads across the cut.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from typing import Protocol

import msgspec

EVENT_KEYS = b"ph|name|cat|pid|tid|ts|dur|args|id|s|bp|tts"
"""Possible first keys of an event: kineto begins with `ph`, other writers sort their keys (the Trace Event Format)."""
_BETWEEN = re.compile(rb"\}\s*(,)\s*\{\s*\"(?:" + EVENT_KEYS + rb")\"\s*:")
_ANY_BETWEEN = re.compile(rb"\}\s*(,)\s*\{")
_LIST = re.compile(rb"\"traceEvents\"\s*:\s*(\[)")
_FIRST_EVENT = re.compile(rb"\{\s*\"(?:ph|cat)\"\s*:\s*\"")
# Windows tools begin UTF-8 with a byte order mark.
_BOM = b"\xef\xbb\xbf"
PIECE = 1 << 19
"""Bytes of text decoded at once, as many as the processor's cache holds; measured in benchmarks/README.md."""
LONGEST = 64 << 20
"""Longest head, event or tail, in bytes, which bounds the memory for a damaged text. Capture's own table, the largest
known head, has a few megabytes."""
_SEAM = 1 << 12
"""Bytes at the end of a piece to search first for its cut."""
LOOKED_AT = 4 << 20
"""Bytes of text to search for signs of another tool: its events are alike, and labels come first."""
_PATIENCE = 1 << 20
"""How far after an apparent event a list of events may still begin; otherwise the head is damaged. Capture's own table
contains apparent events and comes before the list."""


class Readable(Protocol):
    def readinto(self, buffer: memoryview, /) -> int | None:
        """Fill the buffer with as much as is available at once; return 0 at the end."""


class Head(msgspec.Struct, frozen=True):
    """Text before the first event.

    `text` ends before the list's opening bracket and is empty for a bare list. `whole` is false if no list was found,
    so that the events begin anywhere.
    """

    text: bytes
    whole: bool


class EventsText(msgspec.Struct, frozen=True):
    """Some events of the list, as text.

    `text` has a byte before its first event and, unless the piece is the last, one after its last event, as room for
    brackets. It may be overwritten, and is valid until the next piece is requested. The last piece has everything after
    the last place between two events: an event, the list's end, and the tail.
    """

    number: int
    """Counted from 0."""
    text: memoryview
    offset: int
    """Position of `text` in the whole text, in bytes."""
    last: bool

    @property
    def inner(self) -> bytes:
        """A copy of the text without the bytes for brackets."""
        return bytes(self.text[1:] if self.last else self.text[1:-1])


class Splitter:
    """Splits the text of a trace at its events, into pieces of `size` bytes; a longer event makes a longer piece."""

    def __init__(self, stream: Readable, size: int = PIECE) -> None:
        self.size = size
        self._stream = stream
        # A sixteenth more than a piece, so that the seam with the next one is visible when this one is cut.
        self._buffer = bytearray(size + (size >> 4) + 64)
        # Text not yet given out is buffer[from:to]; `before` bytes were moved out of the buffer's front.
        self._from = self._to = 0
        self._before = 0

    @property
    def bytes_read(self) -> int:
        return self._before + self._to

    @property
    def begin(self) -> bytes:
        """A copy of the text read but not yet given out, enough to identify its writer."""
        return bytes(self._buffer[self._from : min(self._to, self._from + LOOKED_AT)])

    def head(self) -> Head | None:
        """Read up to the first event; None if there is none within the length of a head."""
        searched, nesting = 0, _Nesting()
        while True:
            more = self._fill()
            text = self._buffer
            start = len(_BOM) if text.startswith(_BOM) else 0
            first = re.compile(rb"\s*([^\s])").match(text, start, self._to)
            if first and first[1] == b"[":
                return self._begin_list(first.start(1), first.start(1), True)
            for key in _LIST.finditer(text, max(start, nesting.at, searched - 64), self._to):
                nesting.follow(text, key.end())
                # Deeper it is another object's key. Where what stands before the outer one's isn't JSON, no later key
                # can make it so.
                if nesting.depth == 2:
                    if _is_head(bytes(text[start : key.start(1)])):
                        return self._begin_list(start, key.start(1), True)
                    return self._damaged_head(start)
            headless = _FIRST_EVENT.search(text, start, max(start, self._to - _PATIENCE))
            if not more or headless or self._to >= LONGEST:
                return self._damaged_head(start)
            searched = self._to
            self._grow()

    def _damaged_head(self, start: int) -> Head | None:
        """Return the head of a text with a damaged one: up to the list, or else to an apparent event."""
        key = _LIST.search(self._buffer, start, self._to)
        if key:
            return self._begin_list(start, key.start(1), False)
        event = _FIRST_EVENT.search(self._buffer, start, self._to)
        if not event:
            return None
        # The byte before the first event is used for the bracket.
        return self._begin_list(start, max(start, event.start() - 1), False)

    def _begin_list(self, start: int, bracket: int, whole: bool) -> Head:
        text = bytes(self._buffer[start:bracket])
        self._from = bracket
        return Head(text, whole)

    def pieces(self) -> Iterator[EventsText]:
        """Yield the events in pieces; each one's text is overwritten by the next."""
        more = True
        for number in itertools.count():
            cut = self._last_comma()
            while cut is None and more and self._to - self._from < LONGEST:
                self._grow()
                more = self._fill()
                cut = self._last_comma()
            last = cut is None and not more
            # LONGEST bytes without a comma between events aren't an event, and are cut anywhere.
            end = self._to if last else self._to if cut is None else cut + 1
            yield EventsText(number, memoryview(self._buffer)[self._from : end], self._before + self._from, last)
            if last:
                return
            self._from = end - 1
            self._shift()
            more = self._fill()

    def _last_comma(self) -> int | None:
        """Return the place of the last comma between two events, searching ever further from the end."""
        for pattern in (_BETWEEN, _ANY_BETWEEN):
            length, low = _SEAM, self._to
            while low > self._from + 1:
                low = max(self._from + 1, self._to - length)
                length *= 16
                commas = list(pattern.finditer(self._buffer, low, self._to))
                if commas:
                    return commas[-1].start(1)
        return None

    def _fill(self) -> bool:
        """Read until the buffer is full; return False at the end of the stream."""
        view = memoryview(self._buffer)
        while self._to < len(view):
            got = self._stream.readinto(view[self._to :])
            if not got:
                return False
            self._to += got
        return True

    def _shift(self) -> None:
        """Move text not yet given out to the front of the buffer."""
        left = self._buffer[self._from : self._to]
        self._buffer[: len(left)] = left
        self._before += self._from
        self._from, self._to = 0, len(left)

    def _grow(self) -> None:
        """Double the buffer by a new one, as pieces given out prevent resizing the old one."""
        self._shift()
        self._buffer = self._buffer + bytearray(len(self._buffer))


class _Nesting:
    """Number of objects and lists around a place in a JSON text; each byte is looked at once."""

    _TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|([\[{])|[\]}]', re.DOTALL)

    def __init__(self) -> None:
        self.at = self.depth = 0

    def follow(self, text: bytearray, to: int) -> None:
        """Advance to this place, which comes after the previous one and isn't in a string."""
        for token in self._TOKEN.finditer(text, self.at, to):
            if token[1]:
                self.depth += 1
            elif token[0] in b"]}":
                self.depth -= 1
        self.at = to


def _is_head(text: bytes) -> bool:
    """Return whether this text, followed by an empty list, is an object."""
    try:
        json.loads(text + b"[]}")
    except (ValueError, RecursionError):
        return False
    return True
