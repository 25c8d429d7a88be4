"""Write the events of a trace as valid JSON text: unchanged if they are valid, else repaired."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from syncscan.load.damage import Damage
from syncscan.load.event import Listed
from syncscan.load.event_list import EventList, Lost, head_of, no_event
from syncscan.load.metadata import TextAfterEvents, TopLevelKeys, metadata_before
from syncscan.load.salvage import MOST_DIGITS, Salvaged
from syncscan.load.split import PIECE, Head, Readable, Splitter
from syncscan.model.json_text import strict_text

WRITTEN_ANEW = "The trace's metadata was rewritten: it is invalid JSON for some readers, or occurs twice."
_DIGIT = re.compile(rb"[0-9]")
_DIGITS = re.compile(rb"[0-9]{%d}" % MOST_DIGITS)
_LONG = 64
"""Number of consecutive digits that no number in a trace has; Python's longest floats have 17."""


class _Checked(Listed):
    """An event that isn't stored; msgspec checks what it skips, except that it is UTF-8."""


_EVENTS = msgspec.json.Decoder(list[_Checked])


class ValidText:
    """The text of a trace in pieces, with damage repaired as in `load`."""

    def __init__(self, stream: Readable, path: str = "the trace", piece: int = PIECE, lost: Lost = lambda: "") -> None:
        self.damage = Damage()
        """Repairs and losses in the text read so far."""
        splitter = Splitter(stream, piece)
        head = head_of(splitter, path, lost)
        self._splitter = splitter
        self._events = EventList(splitter, head, self.damage, _as_it_stands, _join)
        self._ending = TextAfterEvents(TopLevelKeys({}), (), "", "")
        self._path, self._lost = path, lost
        self.head = _valid_head(head)
        """Text of the outer object up to the list of events; empty without an object."""
        if head.whole and head.text.strip() and self.head != head.text:
            self.damage.notes.append(WRITTEN_ANEW)

    def document(self) -> Iterator[bytes]:
        """Yield the whole trace as valid JSON: the part before the list, the list, and the part after it."""
        yield self.head + b"["
        comma = b""
        for piece in self.pieces():
            yield comma + piece
            comma = b","
        yield self._end()

    def _end(self) -> bytes:
        if not self.head:
            return b"\n]\n"
        if _is_object(b'{"traceEvents": []' + self._ending.text.encode("utf-8", "surrogatepass")):
            return f"\n]{self._ending.text}".encode()
        if self._ending.text:
            self.damage.notes.append(WRITTEN_ANEW)
        return f"\n]{''.join(f',{member}' for member in _texts(self._ending.members))}\n}}\n".encode()

    def pieces(self) -> Iterator[bytes]:
        """Yield the text of some events each, with commas between them; joined with commas, the pieces are the list."""
        any_piece = False
        for piece in itertools.chain(self._pieces_of_list(), self._pieces_behind()):
            if piece:
                any_piece = True
                yield piece
        if not self.head and not any_piece:
            raise no_event(self._path, self._lost)

    def _pieces_of_list(self) -> Iterator[bytes]:
        for piece in self._splitter.pieces():
            yield from self._events.read(piece)

    def _pieces_behind(self) -> Iterator[bytes]:
        self._ending = yield from self._events.read_behind()

    def events(self) -> Iterator[bytes]:
        decoder = msgspec.json.Decoder(list[msgspec.Raw])
        for piece in self.pieces():
            yield from map(bytes, decoder.decode(b"[" + piece + b"]"))


def _as_it_stands(text: bytes | memoryview) -> bytes | None:
    """Return the text of a list without brackets if any reader accepts it; None if it is empty or refused."""
    inner = bytes(text[1:-1])
    return inner if _is_valid(inner, text) else None


def _join(salvaged: list[Salvaged]) -> bytes:
    """Return the text of events read one by one: unchanged if any reader accepts them, else rewritten."""
    texts = ((text.encode(), event) for event, text in salvaged)
    return b",".join(
        text if text and _is_valid(text, b"[" + text + b"]") else b"\n" + strict_text(event).encode()
        for text, event in texts
    )


def _is_valid(events: bytes, listed: bytes | memoryview) -> bool:
    """Return whether strict readers accept these events: UTF-8, all of them objects, no escaped half characters."""
    try:
        return bool(_EVENTS.decode(listed)) and _is_text(events)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False


def _is_text(events: bytes) -> bool:
    """Return whether it is UTF-8 without numbers of more digits than readers accept."""
    try:
        if not events.isascii():
            events.decode()
    except UnicodeDecodeError:
        return False
    return not _has_endless_number(events)


def _valid_head(head: Head) -> bytes:
    """Return the text before the list unchanged, or rewritten if it is damaged or has the list's key twice."""
    if head.whole and not head.text.strip():
        return b""
    if head.whole and head.text.count(b'"traceEvents"') == 1 and _is_object(head.text + b"[]}"):
        return head.text
    return f'{{{"".join(f"{member}," for member in _texts(metadata_before(head)))}\n"traceEvents": '.encode()


def _has_endless_number(text: bytes) -> bool:
    """Return whether MOST_DIGITS consecutive digits occur; one of every MOST_DIGITS-th byte would be among them."""
    looked_at = (MOST_DIGITS * digit.start() for digit in _DIGIT.finditer(text[::MOST_DIGITS]))
    suspects = (at for at in looked_at if _goes_on(text, at))
    return any(_DIGITS.search(text, max(0, at - MOST_DIGITS), at + MOST_DIGITS) for at in suspects)


def _goes_on(text: bytes, at: int) -> bool:
    """Return whether digits continue for long on either side of this one, as in a long run."""
    return text[at : at + _LONG].isdigit() or text[max(0, at - _LONG) : at + 1].isdigit()


def _is_object(text: bytes) -> bool:
    try:
        return isinstance(msgspec.json.decode(text), dict) and not _has_endless_number(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False


def _texts(values: Mapping[str, Any]) -> Iterator[str]:
    """Return one line of JSON per member of an object."""
    return (f"\n{strict_text(key)}: {strict_text(value)}" for key, value in values.items())
