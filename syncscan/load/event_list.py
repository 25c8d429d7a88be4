"""Read the events in a trace's text in batches: decoded if it is valid JSON, else salvaged one by one.

Both readers of text use it: `reader`, which needs the events' fields, and `valid_json`, which needs their text.
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
from syncscan.load.metadata import TextAfterEvents, TopLevelKeys, ending, metadata_before
from syncscan.load.salvage import ListPosition, Salvage, Salvaged
from syncscan.load.split import EventsText, Head, Splitter

_PART = 1 << 15
"""Bytes of a refused piece to read at once: about 100 events, few enough to salvage one by one."""
_MOST_DAMAGED_LISTS = 8
"""Number of further lists to read from damaged text; each costs as much as all the text after it."""

Batch = TypeVar("Batch")
Lost = Callable[[], str]
"""Function that returns a sentence on what unpacking lost; empty if nothing."""


def head_of(splitter: Splitter, path: str, lost: Lost) -> Head:
    head = splitter.head()
    if head is not None:
        return head
    sentence = lost()
    if not sentence and not splitter.bytes_read:
        raise TraceEmpty(f"{path} is empty.", "Record it again.")
    raise (None if sentence else refusal(path, splitter.begin)) or no_trace(path, "it has no list of events", sentence)


def no_trace(path: str, why: str, lost: str) -> TraceUnreadable:
    """Return the error for a text that isn't a trace; if unpacking lost some of it, that is the reason."""
    if lost:
        return TraceUnreadable(f"{path} can't be read: {lost}", "Copy or record it again.")
    return TraceUnreadable(
        f"{path} isn't a trace: {why}.",
        "Give a Chrome trace written by torch.profiler's export_chrome_trace or tensorboard_trace_handler.",
    )


def no_event(path: str, lost: Lost) -> TraceUnreadable:
    """Return the error for a bare list without a readable event; an object without events is a trace."""
    return no_trace(path, "it is a list without a readable event", lost())


class EventList(Generic[Batch]):
    """Reads the list of events in a trace's text, after its head.

    `decode` turns a JSON list of events, as text with its brackets, into a batch, or None if it isn't valid; `collect`
    does so with events that were read one by one.
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
        """Whether the text read so far ends between two events, so that the next piece can be read independently."""
        return self._salvage.place is ListPosition.BETWEEN_EVENTS

    def read(self, piece: EventsText) -> Iterator[Batch]:
        """Yield the events of a piece; pieces come in order, and none that starts inside an event may be skipped."""
        if not piece.last and self.between_events:
            piece.text[0], piece.text[-1] = ord("["), ord("]")
            batch = self._decode(piece.text)
            if batch is not None:
                yield batch
                return
        yield from self._in_parts(piece.inner, piece.offset + 1, piece.last)

    def read_behind(self) -> Generator[Batch, None, TextAfterEvents]:
        """Yield the events of further lists, where `traceEvents` occurs again; return what follows them all.

        Call it once all pieces were read.
        """
        between = TopLevelKeys({})
        while True:
            tail = self._salvage.tail
            if tail is None:
                self._damage.notes.append(UNFINISHED)
                return TextAfterEvents(between, (), "", "")
            last = ending(tail, self._in_object)
            further = None if last.text or not self._in_object else self._further_list(tail)
            if further is None:
                break
            # The text after the list is damaged, as the next list may be, so it is read like the first.
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
        # Text with a second such key can't be written after a list that has the key.
        text = "" if between or '"traceEvents"' in tail else last.text
        return msgspec.structs.replace(last, members=between | last.members, text=text)

    def _objects(self, lists: Sequence[list[Any]]) -> Iterator[Salvaged]:
        self._damage.joined += len(lists)
        for event in itertools.chain.from_iterable(lists):
            if isinstance(event, dict):
                yield event, ""
            else:
                self._damage.foreign += 1

    def _further_list(self, tail: str) -> tuple[Head, Splitter, int] | None:
        """Return another list in a damaged tail: its head and text, and its position in the whole, in bytes."""
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
        """Yield the events of a refused piece in small parts, so that a broken event affects few others."""
        if self._salvage.place is ListPosition.BEHIND_LIST:
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
