"""From the bytes of a trace to its events as valid JSON text: as they stand where they are valid, else repaired."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from syncscan.load.damage import Damage
from syncscan.load.event import Listed
from syncscan.load.event_list import EventList, Lost, head_of, no_event
from syncscan.load.metadata import Ending, Members, metadata_before
from syncscan.load.salvage import MOST_DIGITS, Salvaged
from syncscan.load.split import PIECE, Head, Readable, Splitter
from syncscan.model.json_text import strict_text

WRITTEN_ANEW = "What the trace says about itself isn't JSON to every reader, or stands there twice: it is written anew."
_DIGIT = re.compile(rb"[0-9]")
_DIGITS = re.compile(rb"[0-9]{%d}" % MOST_DIGITS)
_LONG = 64
"""Digits in a row that no number in a trace has: the longest of Python's floats have 17."""


class _Checked(Listed):
    """An event of which nothing is kept: msgspec checks what it skips, but for its being UTF-8."""


_EVENTS = msgspec.json.Decoder(list[_Checked])


class ValidText:
    """The text of a trace in pieces, with what is broken in it repaired as `load` repairs it.

    Args:
        stream: gives the uncompressed text.
        path: named in the error.
        piece: bytes of text in memory at once.
        lost: asked, where there is no list of events, for a sentence on what unpacking lost; empty if nothing.
        sound: the events were decoded before as they stand here, in the same pieces: only what that left unchecked is.

    Raises:
        TraceEmpty: no bytes.
        TraceUnreadable: there is no list of events; or, when the text was read to its end, a bare one without any.
    """

    def __init__(
        self,
        stream: Readable,
        path: str = "the trace",
        piece: int = PIECE,
        lost: Lost = lambda: "",
        sound: bool = False,
    ) -> None:
        self.damage = Damage()
        """What was repaired or left out, as far as the text was read."""
        splitter = Splitter(stream, piece)
        head = head_of(splitter, path, lost)
        self._events = EventList(splitter, head, self.damage, _if_text if sound else _as_it_stands, _joined)
        self._ending = Ending(Members({}), (), "", "")
        self._path, self._lost = path, lost
        self.head = _valid_head(head)
        """Text of the outer object up to the list of events; empty where there is none."""
        if head.whole and head.text.strip() and self.head != head.text:
            self.damage.notes.append(WRITTEN_ANEW)

    def document(self) -> Iterator[bytes]:
        """The whole trace as valid JSON: what stands before the list, the list, what stands behind it."""
        yield self.head + b"["
        comma = b""
        for piece in self.pieces():
            yield comma + piece
            comma = b","
        yield self._end()

    def _end(self) -> bytes:
        """The end of the list and what stands behind it."""
        if not self.head:
            return b"\n]\n"
        if _is_object(b'{"traceEvents": []' + self._ending.text.encode("utf-8", "surrogatepass")):
            return f"\n]{self._ending.text}".encode()
        if self._ending.text:
            self.damage.notes.append(WRITTEN_ANEW)
        return f"\n]{''.join(f',{member}' for member in _texts(self._ending.members))}\n}}\n".encode()

    def pieces(self) -> Iterator[bytes]:
        """Text of some events each, with commas between them; with commas between the pieces they are the list."""
        found = False
        for piece in itertools.chain(self._pieces_of_list(), self._pieces_behind()):
            if piece:
                found = True
                yield piece
        if not self.head and not found:
            raise no_event(self._path, self._lost)

    def _pieces_of_list(self) -> Iterator[bytes]:
        for piece in self._events.pieces():
            yield from self._events.read(piece)

    def _pieces_behind(self) -> Iterator[bytes]:
        self._ending = yield from self._events.read_behind()

    def events(self) -> Iterator[bytes]:
        """Text of one event each."""
        decoder = msgspec.json.Decoder(list[msgspec.Raw])
        for piece in self.pieces():
            yield from map(bytes, decoder.decode(b"[" + piece + b"]"))


def _as_it_stands(text: bytes | memoryview) -> bytes | None:
    """The text of a list without its brackets if any reader takes it; None if it is empty or refused."""
    inner = bytes(text[1:-1])
    return inner if _is_valid(inner, text) else None


def _if_text(text: bytes | memoryview) -> bytes | None:
    """The same of a list that is known to be JSON: a decoder leaves what it skips unlooked at, but for its brackets."""
    inner = bytes(text[1:-1])
    return inner if _is_text(inner) else None


def _joined(salvaged: list[Salvaged]) -> bytes:
    """Events that were read one by one: as they stand where any reader takes them, else written anew."""
    texts = ((one.text.encode(), one.event) for one in salvaged)
    return b",".join(
        text if text and _is_valid(text, b"[" + text + b"]") else b"\n" + strict_text(event).encode()
        for text, event in texts
    )


def _is_valid(events: bytes, listed: bytes | memoryview) -> bool:
    """Whether strict readers take these events: UTF-8, objects all of them, and no half of a character escaped.

    Args:
        events: their text.
        listed: the same in brackets.
    """
    try:
        return bool(_EVENTS.decode(listed)) and _is_text(events)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False


def _is_text(events: bytes) -> bool:
    """Whether it is UTF-8, and no number in it has more digits than readers take."""
    try:
        if not events.isascii():
            events.decode()
    except UnicodeDecodeError:
        return False
    return not _has_endless_number(events)


def _valid_head(head: Head) -> bytes:
    """The text before the list as it stands, or written anew where it is damaged or has the list's key twice."""
    if head.whole and not head.text.strip():
        return b""
    if head.whole and head.text.count(b'"traceEvents"') == 1 and _is_object(head.text + b"[]}"):
        return head.text
    return f'{{{"".join(f"{member}," for member in _texts(metadata_before(head)))}\n"traceEvents": '.encode()


def _has_endless_number(text: bytes) -> bool:
    """Whether this many digits stand in a row; looked for only around every so manieth byte, as one of them is one."""
    looked_at = (MOST_DIGITS * digit.start() for digit in _DIGIT.finditer(text[::MOST_DIGITS]))
    suspects = (at for at in looked_at if _goes_on(text, at))
    return any(_DIGITS.search(text, max(0, at - MOST_DIGITS), at + MOST_DIGITS) for at in suspects)


def _goes_on(text: bytes, at: int) -> bool:
    """Whether digits go on for long at this one, to either side: a long row that it is in does, and hardly another."""
    return text[at : at + _LONG].isdigit() or text[max(0, at - _LONG) : at + 1].isdigit()


def _is_object(text: bytes) -> bool:
    try:
        return isinstance(msgspec.json.decode(text), dict) and not _has_endless_number(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False


def _texts(found: Mapping[str, Any]) -> Iterator[str]:
    """A line of JSON a member of an object."""
    return (f"\n{strict_text(key)}: {strict_text(value)}" for key, value in found.items())
