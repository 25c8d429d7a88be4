"""Note which marks events record, which streams wait for them, and which of them the host has waited for.

`torch.cuda.Event` and `Stream` are Python's. `torch.Event` and `torch.Stream` are C's, whose methods nothing may set:
their table of methods is changed itself, as `setattr` would, and Python told of it.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from syncscan.capture.entry_points import Function, replaced
from syncscan.guarding.copy_order import CopyOrder, Mark, Stream

Wraps = Mapping[str, Callable[[Function], Function]]
"""Method → what makes the new one out of it."""
_MARK = "_syncscan_mark"
MOST_MARKS = 1 << 14
"""Marks of C's events that are remembered, which have no place of their own for it: the latest."""


class Exactly(threading.local):
    """Whether the thread is in a wait whose stream or event is known."""

    inside = False


class Awaiting:
    """Joins into clocks what events, streams and the host wait for.

    Args:
        clocks: where the order is kept.
        current: returns the current stream.
        waited: called after each wait of the host.
    """

    def __init__(self, clocks: CopyOrder, current: Callable[[], Stream], waited: Callable[[], None]) -> None:
        self.exactly = Exactly()
        self._clocks, self._current, self._waited = clocks, current, waited
        self._of_c: dict[int, Mark] = {}

    def watch(self) -> Callable[[], None]:
        """Begin; return a function that puts everything back."""
        event: Wraps = {
            "record": self._record,
            "wait": self._wait,
            "synchronize": self._event_synced,
            "query": self._event_queried,
        }
        stream: Wraps = {
            "synchronize": self._stream_synced,
            "query": self._stream_queried,
            "wait_event": self._wait_event,
            "wait_stream": self._wait_stream,
        }
        undo = ExitStack()
        for place in ("torch.cuda", "torch.xpu"):
            for owner, wraps in (("Event", event), ("Stream", stream)):
                undo.callback(replaced((f"{place}.{owner}", name, wrap) for name, wrap in wraps.items()))
        torch = importlib.import_module("torch")
        undo.callback(_replace_in_c(getattr(torch, "Event", None), event))
        undo.callback(_replace_in_c(getattr(torch, "Stream", None), {**stream, "record_event": self._record_event}))
        return undo.close

    # marks

    def _note(self, event: Any, stream: Any) -> None:
        mark = self._clocks.mark(self._key(stream))
        try:
            setattr(event, _MARK, mark)
        except AttributeError:
            self._of_c[id(event)] = mark
            if len(self._of_c) > MOST_MARKS:
                self._of_c.pop(next(iter(self._of_c)))

    def _mark(self, event: Any) -> Mark:
        mark: Mark | None = getattr(event, _MARK, None)
        return mark if mark is not None else self._of_c.get(id(event), {})

    def _key(self, stream: Any) -> Stream:
        if stream is None:
            return self._current()
        return stream.stream_id, stream.device_index, stream.device_type

    def _host_waits(self, mark: Mark) -> None:
        self._clocks.host_waits(mark)
        self._waited()

    # wrappers

    def _record(self, original: Function) -> Function:
        def record(event: Any, stream: Any = None) -> Any:
            result = original(event) if stream is None else original(event, stream)
            self._note(event, stream)
            return result

        return record

    def _record_event(self, original: Function) -> Function:
        def record_event(stream: Any, *events: Any, **options: Any) -> Any:
            event = original(stream, *events, **options)
            self._note(event, stream)
            return event

        return record_event

    def _wait(self, original: Function) -> Function:
        def wait(event: Any, stream: Any = None) -> Any:
            self._clocks.stream_waits(self._key(stream), self._mark(event))
            return original(event) if stream is None else original(event, stream)

        return wait

    def _wait_event(self, original: Function) -> Function:
        def wait_event(stream: Any, event: Any) -> Any:
            self._clocks.stream_waits(self._key(stream), self._mark(event))
            return original(stream, event)

        return wait_event

    def _wait_stream(self, original: Function) -> Function:
        def wait_stream(stream: Any, other: Any) -> Any:
            self._clocks.stream_waits(self._key(stream), self._clocks.mark(self._key(other)))
            return original(stream, other)

        return wait_stream

    def _event_synced(self, original: Function) -> Function:
        return self._synced(original, self._mark)

    def _stream_synced(self, original: Function) -> Function:
        return self._synced(original, lambda stream: self._clocks.mark(self._key(stream)))

    def _event_queried(self, original: Function) -> Function:
        return self._queried(original, self._mark)

    def _stream_queried(self, original: Function) -> Function:
        return self._queried(original, lambda stream: self._clocks.mark(self._key(stream)))

    def _synced(self, original: Function, mark_of: Callable[[Any], Mark]) -> Function:
        def synchronize(awaited: Any) -> Any:
            mark, before = mark_of(awaited), self.exactly.inside
            self.exactly.inside = True
            try:
                result = original(awaited)
            finally:
                self.exactly.inside = before
            self._host_waits(mark)
            return result

        return synchronize

    def _queried(self, original: Function, mark_of: Callable[[Any], Mark]) -> Function:
        def query(awaited: Any) -> Any:
            mark = mark_of(awaited)
            done = original(awaited)
            if done:
                self._host_waits(mark)
            return done

        return query


def _replace_in_c(kind: Any, wraps: Wraps) -> Callable[[], None]:
    """Replace methods of a class of C's; return a function that puts them back."""
    undo = ExitStack()
    table = _table_of(kind)
    for name, wrap in wraps.items():
        original = table.get(name) if table is not None else None
        if table is None or not callable(original):
            continue
        table[name] = wrap(original)
        undo.callback(_put_into, kind, table, name, original)
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))
    return undo.close


def _put_into(kind: Any, table: dict[str, Any], name: str, value: Any) -> None:
    table[name] = value
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))


def _table_of(kind: Any) -> dict[str, Any] | None:
    """Return the dict behind the read-only view of it that a class of C's shows; None where there is none."""
    if not isinstance(kind, type) or kind.__flags__ & _HEAP_TYPE:  # Python's own classes can be set on, and are
        return None
    behind = gc.get_referents(vars(kind))
    return behind[0] if len(behind) == 1 and type(behind[0]) is dict else None


_HEAP_TYPE = 1 << 9
"""Py_TPFLAGS_HEAPTYPE: a class made at run time, as all of Python's are."""
