"""Move slices that overlap others on their row to rows of their own.

Slices on a row of a trace must nest. With stacks recorded they don't: every `record_function` scope and every
`ProfilerStep` begins inside the Python call that enters it and outlives it, and kernels may overlap on a stream.
Trace View shows such slices anyway; Perfetto drops them (its count is `slice_drop_overlapping_complete_event`).
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush
from typing import Any

import msgspec

from syncscan.model.json_text import strict_text
from syncscan.viewers.annotate.around import RecordedEvent, decode

_FIRST_TID = 4_300_000
"""First row id: above what Linux gives a thread, and above the rows that syncscan adds."""


_slices = msgspec.json.Decoder(list[RecordedEvent]).decode
_texts = msgspec.json.Decoder(list[msgspec.Raw]).decode

Row = tuple[Any, Any]
SliceTimes = tuple[int, int, int]
"""Start and end of a slice in ns, and its index among the events."""


def untangled(pieces: Callable[[], Iterable[bytes]]) -> Iterator[bytes]:
    """Yield the events, each slice that overlaps another on its row moved to a row beside it; calls `pieces` twice."""
    tids = _tids(_rows(pieces()))
    place = 0
    for piece in pieces():
        count = len(_texts(b"[" + piece + b"]"))
        moving = [tids.get(k) for k in range(place, place + count)]
        place += count
        yield piece if not any(moving) else _moved(piece, moving)
    named = {(row, tid) for row, tid in tids.values()}
    if named:
        yield b",\n".join(_name(row, tid) for row, tid in sorted(named, key=lambda n: n[1]))


def _rows(pieces: Iterable[bytes]) -> dict[Row, list[SliceTimes]]:
    rows: dict[Row, list[SliceTimes]] = defaultdict(list)
    place = 0
    for piece in pieces:
        for s in _decode(piece):
            if s.ph == "X" and _has_row(s) and (times := _times(s, place)):
                rows[s.pid, s.tid].append(times)
            place += 1
    return rows


def _decode(piece: bytes) -> list[RecordedEvent]:
    """Decode the events of a piece; those with numbers that msgspec rejects have no times and stay where they are."""
    try:
        return _slices(b"[" + piece + b"]")
    except msgspec.MsgspecError:
        return [_decode_alone(text) for text in _texts(b"[" + piece + b"]")]


def _decode_alone(text: msgspec.Raw) -> RecordedEvent:
    try:
        return decode(text)
    except msgspec.MsgspecError:
        return RecordedEvent()


def _has_row(s: RecordedEvent) -> bool:
    return isinstance(s.pid, int | str | None) and isinstance(s.tid, int | str | None)


def _times(s: RecordedEvent, place: int) -> SliceTimes | None:
    try:
        start, length = round(float(s.ts) * 1000), round(float(s.dur) * 1000)
    except (TypeError, ValueError, OverflowError):
        return None
    return start, start + length, place


def _tids(rows: dict[Row, list[SliceTimes]]) -> dict[int, tuple[Row, int]]:
    """Return, by event index, the row that each moved slice leaves and its new tid."""
    taken = {tid for _, tid in rows}
    free = (tid for tid in range(_FIRST_TID, 1 << 31) if tid not in taken)
    tids = {}
    for row, slices in rows.items():
        crossing = _crossing(sorted(slices, key=lambda s: (s[0], -s[1])))
        beside: list[int] = []
        rows_beside = _RowsBeside()
        for start, end, place in crossing:
            k = rows_beside.first_for(start, end)
            if k == len(beside):
                beside.append(next(free))
            tids[place] = (row, beside[k])
    return tids


def _crossing(slices: list[SliceTimes]) -> list[SliceTimes]:
    """Return those slices, of a list sorted by start, that begin inside an earlier slice and end after it."""
    open_until: list[int] = []
    crossing = []
    for times in slices:
        start, end, _ = times
        while open_until and open_until[-1] <= start:
            open_until.pop()
        if open_until and end > open_until[-1]:
            crossing.append(times)
        else:
            open_until.append(end)
    return crossing


class _RowsBeside:
    """Assigns slices, ordered by start and longest first, to the first row on which each nests.

    A tree holds the innermost open end of each row, and at each node the latest end below it, so that a row is found in
    logarithmic time: a linear search would be quadratic if there were as many rows as slices.
    """

    def __init__(self) -> None:
        self._open_until: list[list[int]] = []
        self._ending: list[tuple[int, int]] = []
        self._leaves = 1
        self._latest: list[float] = [math.inf, math.inf]

    def first_for(self, start: int, end: int) -> int:
        """Return the number of the row for this slice; the current number of rows means a new one."""
        self._close(start)
        node = 1
        while node < self._leaves:
            node = 2 * node if self._latest[2 * node] >= end else 2 * node + 1
        row = node - self._leaves
        if row == len(self._open_until):
            self._open_until.append([])
        self._open_until[row].append(end)
        heappush(self._ending, (end, row))
        self._note(row)
        if row == self._leaves - 1:
            self._grow()
        return row

    def _close(self, start: int) -> None:
        while self._ending and self._ending[0][0] <= start:
            _, row = heappop(self._ending)
            self._open_until[row].pop()
            self._note(row)

    def _note(self, row: int) -> None:
        """Store a row's innermost open end; a row without an open slice accepts any slice."""
        node = self._leaves + row
        self._latest[node] = self._open_until[row][-1] if self._open_until[row] else math.inf
        while node > 1:
            node //= 2
            self._latest[node] = max(self._latest[2 * node], self._latest[2 * node + 1])

    def _grow(self) -> None:
        """Double the rows, so that one without a slice always exists."""
        self._leaves *= 2
        self._latest = [math.inf] * (2 * self._leaves)
        for row in range(len(self._open_until)):
            self._note(row)


def _moved(piece: bytes, moving: list[tuple[Row, int] | None]) -> bytes:
    out = []
    for text, move in zip(_texts(b"[" + piece + b"]"), moving, strict=True):
        if move is None:
            out.append(b"\n" + bytes(text))
        else:
            out.append(b"\n" + _with_tid(bytes(text), move[1]))
    return b",".join(out)


def _with_tid(text: bytes, tid: int) -> bytes:
    try:
        return msgspec.json.encode({**msgspec.json.decode(text), "tid": tid})
    except (msgspec.MsgspecError, ValueError, RecursionError):  # its args hold what only Python's reader takes
        return strict_text({**json.loads(text), "tid": tid}).encode()


def _name(row: Row, tid: int) -> bytes:
    name = f"overlapping on {row[1]}"
    event = {"ph": "M", "name": "thread_name", "pid": row[0], "tid": tid, "ts": 0, "args": {"name": name}}
    return b"\n" + msgspec.json.encode(event)
