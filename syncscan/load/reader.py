"""Read the uncompressed bytes of a trace into a linked Trace, in one pass with a few megabytes of text in memory.

A piece of text is decoded into typed events, which go into columns, and the next piece replaces it. Two processes
may share the pieces: both split the text in the same way, and each decodes every other one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from syncscan.errors import TraceTooLarge
from syncscan.load.columns import Columns
from syncscan.load.damage import Damage
from syncscan.load.event import DECODER, Grouped, by_category, event_of, typed_events
from syncscan.load.event_list import EventList, Lost, head_of, no_event
from syncscan.load.link import linked_trace
from syncscan.load.memory_check import require
from syncscan.load.metadata import TextAfterEvents, metadata_before, trace_info
from syncscan.load.salvage import Salvaged, has_not_numbers, plain_numbers
from syncscan.load.split import PIECE, EventsText, Readable, Splitter
from syncscan.model.trace import Trace

_REFUSED = (msgspec.MsgspecError, ValueError, RecursionError)

Progress = Callable[[int], None]
_MOST_REFUSALS = 8
"""After this many refusals in a row, 254 pieces (130 MB) are read before the next attempt."""


class NeedsOneProcess(Exception):
    """One process must read everything: damage spans pieces of both, or they saw different texts."""


def read(
    stream: Readable,
    path: str,
    piece: int = PIECE,
    progress: Progress | None = None,
    lost: Lost = lambda: "",
    second_share: Callable[[], Share | None] | None = None,
    max_memory: int | None = None,
) -> Trace:
    """Read one trace.

    `progress` is called after each piece with the bytes of text read, `lost` at the end for a sentence on what
    unpacking lost (empty if nothing). `second_share` waits for the result of `read_share` on the same text with the
    same `piece`, the bytes in memory at once.
    """
    reading = _Reading(stream, path, piece, lost, max_memory)
    for events in reading.pieces():
        # the last piece's tail must be seen here
        if second_share is None or events.last or events.number % 2 == 0:
            reading.add(events)
            if progress:
                progress(reading.splitter.bytes_read)
        else:
            reading.leave_out()
    if second_share is not None:
        share = second_share()
        if share is None or share[1] != reading.cuts:
            raise NeedsOneProcess
        reading.columns.absorb(share[0])
        require(reading.columns, path, max_memory)
    return reading.trace(path, lost())


Share = tuple[Columns, list[int]]
"""Every other piece, which a second process read, and where all pieces begin and the text ends.

Other bytes than the first process's are unlikely to be split alike.
"""


def read_share(stream: Readable, path: str, piece: int, max_memory: int | None = None) -> Share | None:
    """Return the columns of every other piece, for the process that reads the rest; None if that must read all."""
    reading = _Reading(stream, path, piece, lambda: "", max_memory)
    try:
        for events in reading.pieces():
            if not events.last and events.number % 2:
                reading.add(events)
            else:
                reading.leave_out()
    except (NeedsOneProcess, TraceTooLarge):
        return None
    return reading.columns, reading.cuts


class _Reading:
    def __init__(self, stream: Readable, path: str, piece: int, lost: Lost, max_memory: int | None) -> None:
        self.path, self.max_memory = path, max_memory
        self.damage = Damage()
        self.columns = Columns(self.damage)
        self.splitter = Splitter(stream, piece)
        self.head = head_of(self.splitter, path, lost)
        self.events = EventList(self.splitter, self.head, self.damage, self._decode, _collect)
        self.cuts: list[int] = []
        self._refused = self._spared = 0
        """Number of consecutive pieces with unknown events, and of next pieces for which typed decoding isn't tried."""

    def pieces(self) -> Iterator[EventsText]:
        """Yield the list of events in pieces, each to be added or left out."""
        for piece in self.splitter.pieces():
            self.cuts.append(piece.offset)
            yield piece
        self.cuts.append(self.splitter.bytes_read)

    def add(self, piece: EventsText) -> None:
        for batch in self.events.read(piece):
            self._add(batch)
            del batch  # or the next would be built beside it, outside of the processor's cache

    def leave_out(self) -> None:
        """Leave a piece to the other process, unless it continues an event of the previous one."""
        if not self.events.between_events:
            raise NeedsOneProcess

    def _add(self, batch: Grouped) -> None:
        self.columns.add(batch)
        require(self.columns, self.path, self.max_memory)

    def _decode(self, text: bytes | memoryview) -> Grouped | None:
        """Return the events of a JSON list, also with `NaN` and the like; None for other types or worse."""
        try:
            return self._decode_typed(text) or by_category(DECODER.decode(text))
        except _REFUSED:
            return _with_plain_numbers(text)

    def _decode_typed(self, text: bytes | memoryview) -> Grouped | None:
        """Return the events of a list without unknown ones; None otherwise, or after repeated refusals."""
        if self._spared:
            self._spared -= 1
            return None
        try:
            typed = typed_events(text)
        except _REFUSED:
            self._refused = min(self._refused + 1, _MOST_REFUSALS)
            self._spared = 2**self._refused - 2  # one alone says little: some pieces have labels of threads
            return None
        self._refused = 0
        return typed

    def trace(self, path: str, lost: str) -> Trace:
        """Return the trace of everything that was read; `lost` is a sentence on what unpacking lost, or empty."""
        ending = self._read_behind()
        is_bare_list = self.head.whole and not self.head.text
        if is_bare_list and not self.columns.events:
            raise no_event(path, lambda: lost)
        if lost:
            self.damage.notes.insert(0, lost)
        # the last value of a JSON key counts, and what follows the events comes last
        metadata = metadata_before(self.head) | ending.members
        unlinked = self.columns.finish()
        info = trace_info(metadata, path, self.splitter.bytes_read, unlinked)
        return linked_trace(info, unlinked, self.damage)

    def _read_behind(self) -> TextAfterEvents:
        batches = self.events.read_behind()
        while True:
            try:
                self._add(next(batches))
            except StopIteration as end:
                ending: TextAfterEvents = end.value
                return ending


def _with_plain_numbers(text: bytes | memoryview) -> Grouped | None:
    """Return the events of a list with `NaN` and the like; None if it has other defects."""
    if not has_not_numbers(text):
        return None
    try:
        return by_category(DECODER.decode(plain_numbers(bytes(text).decode())))
    except _REFUSED:
        return None


def _collect(salvaged: list[Salvaged]) -> Grouped:
    return by_category([event_of(event) for event, _ in salvaged])
