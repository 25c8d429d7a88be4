"""From the uncompressed bytes of a trace to a linked Trace, in one pass and with a few megabytes of text in memory.

A piece of text is decoded into typed events, these go into columns, and the next piece takes its place. A piece that
the decoder refuses is cut up, so that only what is broken goes the slow way through `salvage`.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from syncscan.errors import TraceEmpty, TraceUnreadable
from syncscan.load.columns import Columns, Export
from syncscan.load.damage import DAMAGED_HEAD, UNFINISHED, Damage
from syncscan.load.event import DECODER, event_of
from syncscan.load.info import trace_info
from syncscan.load.link import linked_trace
from syncscan.load.salvage import Salvage, has_not_numbers, members, plain_numbers
from syncscan.load.second_process import SecondProcess
from syncscan.load.split import Head, Readable, Splitter
from syncscan.model.trace import Trace

PIECE = 1 << 20
"""Bytes of text that are decoded at once: what the processor's cache holds, measured in benchmarks/README.md."""
_SMALL = 1 << 15
_REFUSED = (msgspec.MsgspecError, ValueError, RecursionError)

Progress = Callable[[int], None]
Lost = Callable[[], str]


class NeedsOneProcess(Exception):
    """A broken place reaches over pieces that two processes read: one has to read them all."""


def read(
    stream: Readable,
    path: str,
    piece: int = PIECE,
    progress: Progress | None = None,
    lost: Lost = lambda: "",
    second: SecondProcess | None = None,
) -> Trace:
    """Read one trace.

    Args:
        stream: gives its uncompressed text.
        path: named in messages and in the result's `info`.
        piece: bytes of text in memory at once; one event more if that is longer.
        progress: called after each piece with the bytes of text read.
        lost: asked at the end for a sentence on what unpacking lost; empty if nothing.
        second: a process that makes `read_odd_pieces` of the same text with the same `piece`.

    Raises:
        NeedsOneProcess: the two processes can't share this trace.
        TraceEmpty: no bytes.
        TraceUnreadable: no list of events in it.
    """
    return _Reader(stream, path, piece, progress, lost).read(second)


def read_odd_pieces(stream: Readable, path: str, piece: int) -> Export | None:
    """The columns of every other piece, for the process that reads the others; None if it has to read them all."""
    return _Reader(stream, path, piece, None, lambda: "").read_odd_pieces()


class _Reader:
    def __init__(self, stream: Readable, path: str, piece: int, progress: Progress | None, lost: Lost) -> None:
        self.path, self.progress, self.lost = path, progress, lost
        self.damage = Damage()
        self.columns = Columns(self.damage)
        self.salvage = Salvage(self.damage)
        self.splitter = Splitter(stream, piece)

    def read(self, second: SecondProcess | None) -> Trace:
        head = self._head()
        for number, (text, last) in enumerate(self.splitter.pieces()):
            if second is not None and number % 2 and not last:
                self._disentangle()
                continue
            self._piece(text, self.splitter.offset, last)
            if self.progress:
                self.progress(self.splitter.bytes_read)
        if second is not None:
            exported = second.result()
            if exported is None:
                raise NeedsOneProcess
            self.columns.absorb(exported)
        return self._trace(head)

    def read_odd_pieces(self) -> Export | None:
        """The odd pieces, but for the last of all."""
        self._head()
        for number, (text, last) in enumerate(self.splitter.pieces()):
            if number % 2 and not last:
                self._piece(text, self.splitter.offset, last)
                if self.salvage.waiting:
                    return None
        return self.columns.export()

    def _disentangle(self) -> None:
        if self.salvage.waiting:
            raise NeedsOneProcess

    def _trace(self, head: Head) -> Trace:
        if not head.whole:
            self.damage.notes.append(DAMAGED_HEAD)
        metadata = {**metadata_of(head), **self._tail(head)}
        if lost := self.lost():
            self.damage.notes.insert(0, lost)
        raw = self.columns.finish()
        info = trace_info(metadata, self.path, self.splitter.bytes_read, raw)
        return linked_trace(info, raw, self.damage)

    def _head(self) -> Head:
        head = self.splitter.head()
        if head is not None:
            return head
        if not self.splitter.bytes_read:
            raise TraceEmpty(f"{self.path} is empty.", "Record it again.")
        raise TraceUnreadable(
            f"{self.path} is no trace: there is no list of events in it.",
            "Give a Chrome trace as torch.profiler's export_chrome_trace or tensorboard_trace_handler write it.",
        )

    def _piece(self, text: memoryview, offset: int, last: bool) -> None:
        if last or self.salvage.waiting:
            self._carefully(bytes(text[1:] if last else text[1:-1]), offset + 1, last)
            return
        text[0], text[-1] = ord("["), ord("]")
        try:
            self.columns.add(DECODER.decode(text))
        except _REFUSED:
            self._carefully(bytes(text[1:-1]), offset + 1, last)

    def _carefully(self, text: bytes, offset: int, last: bool) -> None:
        """Read a refused piece in small ones, so that few events share the fate of a broken one."""
        if has_not_numbers(text) and self._quickly(text, last):
            return
        small = Splitter(io.BytesIO(b"[" + text), _SMALL)
        small.head()
        for part, end in small.pieces():
            inner = bytes(part[1:] if end else part[1:-1])
            if not self._quickly(inner, last and end):
                objects = self.salvage.objects(inner, offset + small.offset, last and end)
                self.columns.add([event_of(o) for o in objects])

    def _quickly(self, text: bytes, last: bool) -> bool:
        if last or self.salvage.waiting:
            return False
        try:
            events = DECODER.decode(f"[{plain_numbers(text.decode())}]")
        except _REFUSED:
            return False
        self.columns.add(events)
        return True

    def _tail(self, head: Head) -> Mapping[str, Any]:
        """What stands behind the list of events."""
        tail = self.salvage.tail
        if tail is None:
            self.damage.notes.append(UNFINISHED)
            return {}
        whole = _object(b'{"traceEvents": []' + tail.encode("utf-8", "replace")) if head.text else {}
        if whole or not tail.strip():
            return whole
        return members(tail)


def metadata_of(head: Head) -> Mapping[str, Any]:
    """The top-level keys before the list of events, as far as they can be read."""
    if head.whole:
        return _object(head.text + b"[]}") if head.text else {}
    return members(head.text.decode("utf-8", "replace"))


def _object(text: bytes) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return {k: v for k, v in value.items() if k != "traceEvents"} if isinstance(value, dict) else {}
