"""From the text of a trace to its events, a batch at a time: decoded where it is valid JSON, else salvaged one by one.

Both that read text stand on it: `reader`, which needs the events' fields, and `valid_json`, which needs their text.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from syncscan.errors import TraceEmpty, TraceUnreadable
from syncscan.load.damage import DAMAGED_HEAD, DAMAGED_TAIL, UNFINISHED, Damage
from syncscan.load.foreign import refusal
from syncscan.load.metadata import Ending, Members, ending, metadata_before
from syncscan.load.salvage import Place, Salvage, Salvaged
from syncscan.load.split import Head, Piece, Splitter

_PART = 1 << 15
"""Bytes of a refused piece that are read at once: about 100 events, few enough to be salvaged one by one."""
_MOST_DAMAGED_LISTS = 8
"""How many further lists are read where the text is damaged: each costs as much as all the text behind it."""

Batch = TypeVar("Batch")
Lost = Callable[[], str]
"""Asked for a sentence on what unpacking lost; empty if nothing."""


def head_of(splitter: Splitter, path: str, lost: Lost) -> Head:
    """The head of a trace's text.

    Args:
        splitter: of the text, from its begin on.
        path: named in the error.
        lost: asked where there is no head.

    Raises:
        TraceEmpty: no bytes.
        TraceUnreadable: no list of events in it.
    """
    head = splitter.head()
    if head is not None:
        return head
    sentence = lost()
    if not sentence and not splitter.bytes_read:
        raise TraceEmpty(f"{path} is empty.", "Record it again.")
    raise (None if sentence else refusal(path, splitter.begin)) or no_trace(
        path, "there is no list of events in it", sentence
    )


def no_trace(path: str, why: str, lost: str) -> TraceUnreadable:
    """The error for a text that is no trace; where unpacking lost some of it, that is why."""
    if lost:
        return TraceUnreadable(f"{path} can't be read: {lost}", "Copy or record it again.")
    return TraceUnreadable(
        f"{path} is no trace: {why}.",
        "Give a Chrome trace as torch.profiler's export_chrome_trace or tensorboard_trace_handler write it.",
    )


def no_event(path: str, lost: Lost) -> TraceUnreadable:
    """The error for a bare list in which nothing can be read as an event; an object is a trace without any too."""
    return no_trace(path, "it is a list, and nothing in it can be read as an event", lost())


class EventList(Generic[Batch]):
    """Reads the list of events in a trace's text.

    Args:
        splitter: of the text, with its head read.
        head: of the text.
        damage: counts what was repaired or left out.
        decode: makes a batch of a JSON list of events, given as text with its brackets; None if it isn't valid.
        collect: makes a batch of events that were read one by one.
    """

    def __init__(
        self,
        splitter: Splitter,
        head: Head,
        damage: Damage,
        decode: Callable[[bytes | memoryview], Batch | None],
        collect: Callable[[list[Salvaged]], Batch],
    ) -> None:
        self._splitter, self._in_object, self._damage = splitter, bool(head.text) or not head.whole, damage
        if not head.whole:
            damage.notes.append(DAMAGED_HEAD)
        self._salvage = Salvage(damage)
        self._decode, self._collect = decode, collect

    @property
    def between_events(self) -> bool:
        """Whether what was read ends between two events: the next piece can then be read without it."""
        return self._salvage.place is Place.BETWEEN_EVENTS

    def pieces(self, is_wanted: Callable[[int], bool] = lambda _: True) -> Iterator[Piece]:
        """The list in pieces, to be given to `read`; see `Splitter.pieces`."""
        return self._splitter.pieces(is_wanted)

    def read(self, piece: Piece) -> Iterator[Batch]:
        """The events of a piece; they are read in order, and none may be left out that begins in an event."""
        if not piece.last and self.between_events:
            piece.text[0], piece.text[-1] = ord("["), ord("]")
            batch = self._decode(piece.text)
            if batch is not None:
                yield batch
                return
        yield from self._in_parts(piece.inner, piece.offset + 1, piece.last)

    def read_behind(self) -> Generator[Batch, None, Ending]:
        """The events of further lists, where `traceEvents` is there again, and at last what stands behind them all.

        To be called once all pieces were read.
        """
        between = Members({})
        while True:
            tail = self._salvage.tail
            if tail is None:
                self._damage.notes.append(UNFINISHED)
                return Ending(between, (), "", "")
            last = ending(tail, self._in_object)
            further = None if last.text or not self._in_object else self._further_list(tail)
            if further is None:
                break
            # What stands behind the list is damaged, and so may the next one be: it is read as the first was.
            head, splitter, offset = further
            self._damage.joined += 1
            between |= metadata_before(head)
            self._salvage = Salvage(self._damage)
            for piece in splitter.pieces():
                yield from self.read(msgspec.structs.replace(piece, offset=piece.offset + offset))
        if last.damaged:
            self._damage.notes.append(DAMAGED_TAIL)
        yield self._collect(list(self._objects(last.lists)))
        self._damage.behind += len(last.left_out.encode())
        # Text in which the key stands again can't be written behind a list that has it.
        text = "" if between or '"traceEvents"' in tail else last.text
        return msgspec.structs.replace(last, members=between | last.members, text=text)

    def _objects(self, lists: Sequence[list[Any]]) -> Iterator[Salvaged]:
        self._damage.joined += len(lists)
        for event in itertools.chain.from_iterable(lists):
            if isinstance(event, dict):
                yield Salvaged(event, "")
            else:
                self._damage.foreign += 1

    def _further_list(self, tail: str) -> tuple[Head, Splitter, int] | None:
        """Another list in a damaged tail: its head and text, and where that begins in the whole, in bytes."""
        if '"traceEvents"' not in tail:
            return None
        before, text = b'{"traceEvents": 0', tail.encode("utf-8", "replace")
        if self._damage.joined >= _MOST_DAMAGED_LISTS:
            self._damage.behind += len(text)
            return None
        splitter = Splitter(io.BytesIO(before + text), self._splitter.size)
        head = splitter.head()
        if head is None or not head.whole or not head.text:
            return None
        return head, splitter, self._splitter.bytes_read - len(text) - len(before)

    def _in_parts(self, text: bytes, offset: int, last: bool) -> Iterator[Batch]:
        """The events of a refused piece, in small parts, so that few events share the fate of a broken one."""
        if self._salvage.place is Place.BEHIND_LIST:
            yield self._collect(list(self._salvage.events(text, offset, last)))
            return
        splitter = Splitter(io.BytesIO(b"[" + text), _PART)
        splitter.head()
        for part in splitter.pieces():
            ends = last and part.last
            decodable = not ends and self.between_events
            batch = self._decode(b"[" + part.inner + b"]") if decodable else None
            if batch is None:
                batch = self._collect(list(self._salvage.events(part.inner, offset + part.offset, ends)))
            yield batch
