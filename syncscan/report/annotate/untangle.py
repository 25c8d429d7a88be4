"""From the recorded events of a trace to the same events with overlapping slices moved to rows of their own.

Slices on a row of a trace must nest. With stacks recorded they don't: every `record_function` scope and every
`ProfilerStep` begins inside the Python call that enters it and outlives it, and kernels may overlap on a stream.
Trace View shows such slices anyway; Perfetto drops them (its count is `slice_drop_overlapping_complete_event`).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from syncscan.model.json_text import strict_text

_FIRST_TID = 4_300_000
"""Above what Linux gives a thread, and above the rows that we add."""


class _Slice(msgspec.Struct):
    ph: Any = ""
    pid: Any = None
    tid: Any = None
    ts: Any = 0
    dur: Any = 0


_slices = msgspec.json.Decoder(list[_Slice]).decode
_slice = msgspec.json.Decoder(_Slice).decode
_texts = msgspec.json.Decoder(list[msgspec.Raw]).decode

Row = tuple[Any, Any]
SliceTimes = tuple[int, int, int]
"""Start and end of a slice in ns, and its place among the events."""


def untangled(pieces: Callable[[], Iterable[bytes]]) -> Iterator[bytes]:
    """The events with every slice that overlaps another on its row moved to a row beside it.

    Args:
        pieces: gives the text of the events, separated by commas in a piece; called twice.
    """
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
        for s in _decoded(piece):
            if s.ph == "X" and _has_row(s) and (times := _times(s, place)):
                rows[s.pid, s.tid].append(times)
            place += 1
    return rows


def _decoded(piece: bytes) -> list[_Slice]:
    """The events of a piece; one with numbers that no decoder takes has no times, and stays where it is."""
    try:
        return _slices(b"[" + piece + b"]")
    except msgspec.MsgspecError:
        return [_decoded_alone(text) for text in _texts(b"[" + piece + b"]")]


def _decoded_alone(text: msgspec.Raw) -> _Slice:
    try:
        return _slice(text)
    except msgspec.MsgspecError:
        return _Slice()


def _has_row(s: _Slice) -> bool:
    return isinstance(s.pid, int | str | None) and isinstance(s.tid, int | str | None)


def _times(s: _Slice, place: int) -> SliceTimes | None:
    try:
        start, length = round(float(s.ts) * 1000), round(float(s.dur) * 1000)
    except (TypeError, ValueError, OverflowError):
        return None
    return start, start + length, place


def _tids(rows: dict[Row, list[SliceTimes]]) -> dict[int, tuple[Row, int]]:
    """For each slice that must move, by its place: the row it leaves, and its new tid."""
    taken = {tid for _, tid in rows}
    free = (tid for tid in range(_FIRST_TID, 1 << 31) if tid not in taken)
    tids = {}
    for row, slices in rows.items():
        crossing = _crossing(sorted(slices, key=lambda s: (s[0], -s[1])))
        while crossing:
            tid = next(free)
            rest = _crossing(crossing)
            left = {place for _, _, place in rest}
            tids.update({place: (row, tid) for _, _, place in crossing if place not in left})
            crossing = rest
    return tids


def _crossing(slices: list[SliceTimes]) -> list[SliceTimes]:
    """The slices, of some sorted by start, that end behind an earlier one that they begin in."""
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
