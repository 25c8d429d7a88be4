"""From the bytes of a trace to its events as valid JSON text: as they stand where they are valid, else repaired."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn

import msgspec

from syncscan.errors import TraceUnreadable
from syncscan.load.damage import DAMAGED_HEAD, UNFINISHED, Damage
from syncscan.load.salvage import LIST_END, Salvage, members, plain_numbers
from syncscan.load.split import Head, Readable, Splitter

_PIECE, _SMALL = 1 << 20, 1 << 15
_COMMA = re.compile(r"[ \t\r\n]*,[ \t\r\n]*")
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
"""The escape of half a character; without its other half it is no text, and strict readers refuse it."""


class _Checked(msgspec.Struct):
    """An event of which nothing is kept: reading it checks it."""


_EVENTS = msgspec.json.Decoder(list[_Checked])


class ValidText:
    """The text of a trace in pieces, with what is broken in it repaired as `load` repairs it.

    Args:
        stream: gives the uncompressed text.
        path: named in the error.
        piece: bytes of text in memory at once.

    Raises:
        TraceUnreadable: there is no list of events.
    """

    def __init__(self, stream: Readable, path: str = "the trace", piece: int = _PIECE) -> None:
        self.damage = Damage()
        """What was repaired or left out, as far as the text was read."""
        self._splitter = Splitter(stream, piece)
        self._salvage = Salvage(self.damage)
        self._over = False
        self._behind = b""
        head = self._splitter.head()
        if head is None:
            raise TraceUnreadable(f"{path} holds no list of events.", "Give a Chrome trace written by torch.profiler.")
        text = plain_numbers(head.text.decode("utf-8", "replace"))
        self.head = text.encode() if head.whole and _is_object(text) else b""
        """Text of the outer object up to the list of events; empty where there is none, or none that is whole."""
        self._damaged_head = None if self.head or not head.text.strip() else head
        if self._damaged_head:
            self.damage.notes.append(DAMAGED_HEAD)

    def document(self) -> Iterator[bytes]:
        """The whole trace as valid JSON: what stands before the list, the list, what stands behind it."""
        yield (_members_head(self._damaged_head) if self._damaged_head else self.head) + b"["
        comma = b""
        for piece in self.pieces():
            yield comma + piece
            comma = b","
        yield self._tail()

    def _tail(self) -> bytes:
        """The end of the list and what stands behind it; noted where the trace ends before."""
        tail = self._behind
        if not self._over:
            self.damage.notes.append(UNFINISHED)
        if not self.head and not self._damaged_head:
            return b"\n]\n"
        if _is_object_end(tail):
            return b"\n]" + tail
        rest = "".join(
            f",\n{json.dumps(k)}: {_as_text(v)}" for k, v in members(tail.decode("utf-8", "replace")).items()
        )
        return f"\n]{rest}\n}}\n".encode()

    def pieces(self) -> Iterator[bytes]:
        """Text of some events each, with commas between them; with commas between the pieces they are the list."""
        for text, last in self._splitter.pieces():
            inner = bytes(text[1:] if last else text[1:-1])
            if self._over:
                self._behind += b"," + inner
            else:
                yield from self._piece(inner, last)

    def events(self) -> Iterator[bytes]:
        """Text of one event each."""
        decoder = msgspec.json.Decoder(list[msgspec.Raw])
        for piece in self.pieces():
            yield from map(bytes, decoder.decode(b"[" + piece + b"]"))

    def _piece(self, text: bytes, last: bool) -> Iterator[bytes]:
        if not last and not self._salvage.waiting and _is_valid(text):
            yield text
            return
        small = Splitter(io.BytesIO(b"[" + text), _SMALL)
        small.head()
        for part, end in small.pieces():
            inner = bytes(part[1:] if end else part[1:-1])
            if self._over:
                self._behind += b"," + inner
            else:
                yield from self._part(inner, last and end)

    def _part(self, text: bytes, last: bool) -> Iterator[bytes]:
        """The events of a small part: its valid beginning as it stands, the rest repaired."""
        begin = b""
        if not self._salvage.waiting:
            begin, text, self._over = _valid_beginning(text)
        if begin.strip():
            yield begin
        if self._over:
            self._behind = text.lstrip()[1:]
        if not self._over and (text.strip(b", \t\r\n") or last):
            repaired = [_as_json(event) for event in self._salvage.objects(text, 0, last)]
            if self._salvage.tail is not None:
                self._over, self._behind = True, self._salvage.tail.encode()
            if repaired:
                yield b",\n".join(repaired)


def _is_valid(text: bytes) -> bool:
    try:
        if not text.isascii():
            text.decode()
        return bool(_EVENTS.decode(b"[" + text + b"]"))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False


def _valid_beginning(text: bytes) -> tuple[bytes, bytes, bool]:
    """The events that a part begins with and that are valid, what follows them, and whether the list ends there."""
    try:
        decoded = text.decode()
    except UnicodeDecodeError:
        return b"", text, False
    at = end = len(decoded) - len(decoded.lstrip(" \t\r\n"))
    while decoded.startswith("{", at):
        try:
            _, after = _STRICT.raw_decode(decoded, at)
        except (ValueError, RecursionError):
            break
        if _HALF.search(decoded, at, after) and not _is_valid(decoded[at:after].encode()):
            break
        end = after
        comma = _COMMA.match(decoded, end)
        if comma is None:
            break
        at = comma.end()
    rest = decoded[end:].lstrip(" \t\r\n")
    return decoded[:end].encode(), decoded[end:].encode(), LIST_END.match(rest) is not None


def _refused(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")


_STRICT = json.JSONDecoder(parse_constant=_refused)


def _is_object(text: str) -> bool:
    try:
        return not text.strip() or isinstance(msgspec.json.decode(text + "[]}"), dict)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False


def _is_object_end(tail: bytes) -> bool:
    try:
        return isinstance(msgspec.json.decode(b'{"traceEvents": []' + tail), dict) and tail.decode() != ""
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False


def _members_head(head: Head) -> bytes:
    found = {k: v for k, v in members(head.text.decode("utf-8", "replace")).items() if k != "traceEvents"}
    return f'{{{"".join(f"{json.dumps(k)}: {_as_text(v)}," for k, v in found.items())}\n"traceEvents": '.encode()


def _as_text(value: Any) -> str:
    """JSON that strict readers take: non-numbers are null, half characters a question mark."""
    return plain_numbers(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace").decode())


def _as_json(event: dict[str, Any]) -> bytes:
    return _as_text(event).encode()
