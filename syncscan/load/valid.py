"""From the bytes of a trace to its events as valid JSON text: as they stand where they are valid, else repaired."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn

import msgspec

from syncscan.errors import TraceUnreadable
from syncscan.load.losses import Losses
from syncscan.load.salvage import Salvage, plain_numbers
from syncscan.load.split import Readable, Splitter

_PIECE, _SMALL = 1 << 20, 1 << 15
_BLANK = re.compile(r"[\s,]*")
_EVENTS = msgspec.json.Decoder(list[dict[str, msgspec.Raw]])


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
        self._splitter = Splitter(stream, piece)
        self._salvage = Salvage(Losses())
        self._over = False
        head = self._splitter.head()
        if head is None:
            raise TraceUnreadable(f"{path} holds no list of events.", "Give a Chrome trace written by torch.profiler.")
        text = plain_numbers(head.text.decode("utf-8", "replace"))
        self.head = text.encode() if head.whole and _is_object(text) else b""
        """Text of the outer object up to the list of events; empty where there is none, or none that is whole."""

    def pieces(self) -> Iterator[bytes]:
        """Text of some events each, with commas between them; with commas between the pieces they are the list."""
        for text, last in self._splitter.pieces():
            if not self._over:
                yield from self._piece(bytes(text[1:] if last else text[1:-1]), last)

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
            if not self._over:
                yield from self._part(bytes(part[1:] if end else part[1:-1]), last and end)

    def _part(self, text: bytes, last: bool) -> Iterator[bytes]:
        """The events of a small part: its valid beginning as it stands, the rest repaired."""
        begin = b""
        if not self._salvage.waiting:
            begin, text, self._over = _valid_beginning(text)
        if begin.strip():
            yield begin
        if not self._over and (text.strip(b", \t\r\n") or last):
            repaired = [_as_json(event) for event in self._salvage.objects(text, 0, last)]
            self._over = self._salvage.tail is not None
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
    at = end = _BLANK.match(decoded).end()  # type: ignore[union-attr]
    start = at if "," in decoded[:at] else 0
    while decoded.startswith("{", at):
        try:
            _, end = _STRICT.raw_decode(decoded, at)
        except (ValueError, RecursionError):
            break
        at = _BLANK.match(decoded, end).end()  # type: ignore[union-attr]
    return decoded[start:end].encode(), decoded[end:].encode(), decoded.startswith("]", at)


def _refused(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")


_STRICT = json.JSONDecoder(parse_constant=_refused)


def _is_object(text: str) -> bool:
    try:
        return not text.strip() or isinstance(msgspec.json.decode(text + "[]}"), dict)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False


def _as_json(event: dict[str, Any]) -> bytes:
    return plain_numbers(json.dumps(event)).encode()
