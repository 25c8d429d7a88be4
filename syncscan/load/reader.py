"""From the uncompressed bytes of a trace to a linked Trace, in one pass and with a few megabytes of text in memory.

A piece of text is decoded into typed events, these go into columns, and the next piece takes its place. Two processes
may share the pieces: both cut the text up in the same way, and each decodes those whose turn it gets.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from syncscan.errors import TraceTooLarge
from syncscan.load.columns import Columns, Export
from syncscan.load.damage import Damage
from syncscan.load.event import DECODER, event_of
from syncscan.load.event_list import EventList, Lost, head_of, no_event
from syncscan.load.info import trace_info
from syncscan.load.link import linked_trace
from syncscan.load.memory import require
from syncscan.load.metadata import Ending, metadata_before
from syncscan.load.salvage import Salvaged, has_not_numbers, plain_numbers
from syncscan.load.second_process import SecondProcess, Turns
from syncscan.load.split import PIECE, Readable, Splitter
from syncscan.load.typed_events import Grouped, by_category, typed_events
from syncscan.model.file_state import FileState
from syncscan.model.trace import NONE, Trace

_REFUSED = (msgspec.MsgspecError, ValueError, RecursionError)

Progress = Callable[[int], None]
_MOST_REFUSALS = 8
"""After so many in a row 254 pieces, 130 MB, are read before the next may be."""
IsMine = Callable[[int], bool]
"""Whether a process reads the piece of this number."""


class NeedsOneProcess(Exception):
    """One process has to read all: a broken place reaches over pieces of both, or they saw different texts."""


def read(
    stream: Readable,
    path: str,
    piece: int = PIECE,
    progress: Progress | None = None,
    lost: Lost = lambda: "",
    second: tuple[SecondProcess, Turns] | None = None,
    max_memory: int | None = None,
    state: FileState | None = None,
) -> Trace:
    """Read one trace.

    Args:
        stream: gives its uncompressed text.
        path: named in messages and in the result's `info`.
        piece: bytes of text in memory at once; one event more if that is longer.
        progress: called after each piece with the bytes of text read.
        lost: asked at the end for a sentence on what unpacking lost; empty if nothing.
        second: a process that makes `read_share` of the same text with the same `piece`, and the turns that both ask.
        max_memory: bytes that reading and analysing may take; None for no limit.
        state: of the file that the text is in; ends up in the result's `info` if no piece of it needs a repair.

    Raises:
        NeedsOneProcess: the two processes can't share this trace.
        TraceEmpty: no bytes.
        TraceUnreadable: no list of events in it, or a bare list without any.
        TraceTooLarge: it doesn't fit into memory.
    """
    reading = _Reading(stream, path, piece, lost, max_memory)
    if second is None:
        reading.read(lambda _: True, True, progress)
    else:
        process, turns = second
        mine = _share(turns)
        # It has to see the last piece's tail; and where there are more pieces than turns, it takes what is left.
        reading.read(lambda number: number >= turns.count or mine(number), True, progress)
        share: Share | None = process.result()
        if share is None or share.cuts != reading.cuts:
            raise NeedsOneProcess
        reading.columns.absorb(share.columns)
        reading.sound = reading.sound and share.sound
        require(reading.columns, path, max_memory)
    return reading.trace(path, lost(), state)


class Share(msgspec.Struct, frozen=True):
    """What a second process read."""

    columns: Export
    cuts: list[int]
    """Where all pieces begin, and where the text ends: other bytes than the first process's are hardly cut alike."""
    sound: bool
    """Whether none of its pieces needed a repair."""


def read_share(stream: Readable, path: str, piece: int, turns: Turns, max_memory: int | None = None) -> Share | None:
    """The columns of pieces whose turn it gets, for the process that reads the rest; None if that has to read all."""
    reading = _Reading(stream, path, piece, lambda: "", max_memory)
    try:
        reading.read(_share(turns), False, None)
    except (NeedsOneProcess, TraceTooLarge):
        return None
    return Share(reading.columns.export(), reading.cuts, reading.sound)


def _share(turns: Turns) -> IsMine:
    """Whether it is this process' turn to read the piece of a number; to be asked of each, in order."""
    turn: int | None = NONE

    def mine(number: int) -> bool:
        nonlocal turn
        if turn is not None and turn < number:
            turn = turns.next()
        return turn == number

    return mine


class _Reading:
    """One trace on its way from text to columns."""

    def __init__(self, stream: Readable, path: str, piece: int, lost: Lost, max_memory: int | None) -> None:
        self.path, self.max_memory = path, max_memory
        self.damage = Damage()
        self.columns = Columns(self.damage)
        self.splitter = Splitter(stream, piece)
        self.head = head_of(self.splitter, path, lost)
        self.events = EventList(self.splitter, self.head, self.damage, self._decoded, _collected)
        self.cuts: list[int] = []
        self.sound = True
        """Whether all that was decoded so far is valid JSON as it stands."""
        self._refused = self._spared = 0
        """Pieces in a row that held unknown events, and the next ones of which that isn't tried again."""

    def read(self, is_mine: IsMine, with_last: bool, progress: Progress | None) -> None:
        """Take over the events of the pieces that are mine.

        Args:
            is_mine: asked of each piece but the last, in order, maybe twice.
            with_last: whether that is.
            progress: called after each of them with the bytes of text read.

        Raises:
            NeedsOneProcess: one of them goes on in a piece that isn't.
        """
        for piece in self.events.pieces(is_mine):
            self.cuts.append(piece.offset)
            if with_last if piece.last else is_mine(piece.number):
                for batch in self.events.read(piece):
                    self._add(batch)
                    del batch  # or the next would be made beside it, where the processor's cache has nothing of it
                if progress:
                    progress(self.splitter.bytes_read)
            elif not self.events.between_events:
                raise NeedsOneProcess
        self.cuts.append(self.splitter.bytes_read)

    def _add(self, batch: Grouped) -> None:
        self.columns.add(batch)
        require(self.columns, self.path, self.max_memory)

    def _decoded(self, text: bytes | memoryview) -> Grouped | None:
        """The events of a list, as JSON or with `NaN` and the like; None where a field has another type or worse."""
        try:
            return self._typed(text) or by_category(DECODER.decode(text))
        except _REFUSED:
            self.sound = False
        return _with_plain_numbers(text)

    def _typed(self, text: bytes | memoryview) -> Grouped | None:
        """The same if nothing unknown is among them; not tried where that was refused time after time."""
        if self._spared:
            self._spared -= 1
            return None
        try:
            found = typed_events(text)
        except _REFUSED:
            self._refused = min(self._refused + 1, _MOST_REFUSALS)
            self._spared = 2**self._refused - 2  # one alone says little: labels of threads stand in some pieces
            return None
        self._refused = 0
        return found

    def trace(self, path: str, lost: str, state: FileState | None) -> Trace:
        """The trace of all that was read; `lost` is a sentence on what unpacking lost, or empty."""
        ending = self._read_behind()
        is_bare_list = self.head.whole and not self.head.text
        if is_bare_list and not self.columns.events:
            raise no_event(path, lambda: lost)
        if lost:
            self.damage.notes.insert(0, lost)
        # JSON's last value of a key counts, and what stands behind the events comes last.
        metadata = metadata_before(self.head) | ending.members
        unlinked = self.columns.finish()
        info = trace_info(metadata, path, self.splitter.bytes_read, unlinked)
        return linked_trace(replace(info, sound=state if self.sound else None), unlinked, self.damage)

    def _read_behind(self) -> Ending:
        batches = self.events.read_behind()
        while True:
            try:
                self._add(next(batches))
            except StopIteration as end:
                ending: Ending = end.value
                return ending


def _with_plain_numbers(text: bytes | memoryview) -> Grouped | None:
    """The events of a list in which `NaN` and the like stand; None where that isn't all that is wrong with it."""
    if not has_not_numbers(text):
        return None
    try:
        return by_category(DECODER.decode(plain_numbers(bytes(text).decode())))
    except _REFUSED:
        return None


def _collected(salvaged: list[Salvaged]) -> Grouped:
    return by_category([event_of(one.event) for one in salvaged])
