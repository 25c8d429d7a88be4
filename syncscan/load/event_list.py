"""From the text of a trace to its events, a batch at a time: decoded where it is valid JSON, else salvaged one by one.

Both that read text stand on it: `reader`, which needs the events' fields, and `valid_json`, which needs their text.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from syncscan.load.damage import Damage
from syncscan.load.salvage import Place, Salvage, Salvaged
from syncscan.load.split import Piece, Splitter

_PART = 1 << 15
"""Bytes of a refused piece that are read at once: about 100 events, few enough to be salvaged one by one."""

Batch = TypeVar("Batch")


class EventList(Generic[Batch]):
    """Reads the list of events in a trace's text.

    Args:
        damage: counts what was repaired or left out.
        decode: makes a batch of a JSON list of events, given as text with its brackets; None if it isn't valid.
        collect: makes a batch of events that were read one by one.
    """

    def __init__(
        self,
        damage: Damage,
        decode: Callable[[bytes | memoryview], Batch | None],
        collect: Callable[[list[Salvaged]], Batch],
    ) -> None:
        self._salvage = Salvage(damage)
        self._decode, self._collect = decode, collect

    @property
    def between_events(self) -> bool:
        """Whether what was read ends between two events: the next piece can then be read without it."""
        return self._salvage.place is Place.BETWEEN_EVENTS

    @property
    def tail(self) -> str | None:
        """The text behind the list; None where its end wasn't seen."""
        return self._salvage.tail

    def read(self, piece: Piece) -> Iterator[Batch]:
        """The events of a piece; they are read in order, and none may be left out that begins in an event."""
        if not piece.last and self.between_events:
            piece.text[0], piece.text[-1] = ord("["), ord("]")
            batch = self._decode(piece.text)
            if batch is not None:
                yield batch
                return
        yield from self._in_parts(piece.inner, piece.offset + 1, piece.last)

    def _in_parts(self, text: bytes, offset: int, last: bool) -> Iterator[Batch]:
        """The events of a refused piece, in small parts, so that few events share the fate of a broken one."""
        splitter = Splitter(io.BytesIO(b"[" + text), _PART)
        splitter.head()
        for part in splitter.pieces():
            ends = last and part.last
            decodable = not ends and self.between_events
            batch = self._decode(b"[" + part.inner + b"]") if decodable else None
            if batch is None:
                batch = self._collect(list(self._salvage.events(part.inner, offset + part.offset, ends)))
            yield batch
