"""Say of a wait that it protects the use of a non-blocking copy's memory, so that nobody takes it out.

A dry run has seen who waited for a copy before its memory was used. A recording shows the copy into pinned memory that
was launched since the last wait; that the host reads it afterwards is likely, as nothing else needs the copy awaited.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath

import numpy as np
from msgspec.structs import replace

from syncscan.model.arrays import Int64
from syncscan.model.capture import ProtectedUse
from syncscan.model.finding import Attribution, Cause, SyncPoint
from syncscan.model.race import RaceKind
from syncscan.model.trace import NONE, Category, Trace

_EVENT = (
    "Instead of all work, wait for the copy alone: an event that is recorded right behind the copy, and "
    "event.synchronize() before the {use}, is enough."
)
_WITHOUT = {
    RaceKind.READ_BEFORE_COPY: "it protects the read in line {second} of what {first} copies. "
    + _EVENT.format(use="read"),
    RaceKind.WRITE_BEFORE_COPY: "it protects the refill in line {second} of what {first} copies. "
    + _EVENT.format(use="refill"),
    RaceKind.UNORDERED_STREAMS: "it orders line {second} after {first}, on another stream. stream.wait_stream or "
    "wait_event does that without the host.",
    RaceKind.FREED_IN_USE: "it keeps memory that {first} uses on another stream from being handed out again in line "
    "{second}. tensor.record_stream does that without the host.",
}
_LIKELY = (
    "Keep a wait here if the host reads what was copied before it into pinned memory: without one that is a race. "
)


def with_protected(trace: Trace, points: Sequence[SyncPoint], places: Sequence[Attribution]) -> tuple[SyncPoint, ...]:
    """Return the sync points, with what they protect in place of the advice to remove them.

    Args:
        trace: a dry run, or a recording.
    """
    capture = trace.info.capture
    if capture.pretended:
        at = {_site(use.wait): use for use in capture.protected}
        uses = [at.get(_site((p.source.file, p.source.line, p.source.function))) if p.source else None for p in places]
        return tuple(_met(point, use) if use else point for point, use in zip(points, uses, strict=True))
    likely = set(_behind_copies(trace, points))
    return tuple(_likely(point) if number in likely else point for number, point in enumerate(points))


def _met(point: SyncPoint, use: ProtectedUse) -> SyncPoint:
    first = f"line {use.first[1]}" if use.first else "an earlier line"
    return _protecting(point, "Keep a wait here: " + _WITHOUT[use.kind].format(first=first, second=use.second[1]))


def _likely(point: SyncPoint) -> SyncPoint:
    return _protecting(point, _LIKELY + _EVENT.format(use="read"))


def _protecting(point: SyncPoint, fix: str) -> SyncPoint:
    return replace(point, diagnosis=replace(point.diagnosis, fix=fix))


def _behind_copies(trace: Trace, points: Sequence[SyncPoint]) -> Iterator[int]:
    """Yield the explicit waits that are the first after the launch of a copy into pinned memory."""
    s = trace.slices
    works = trace.where(_is_pinned_copy, Category.MEMCPY)
    calls = trace.calls_of(works)
    launched: Int64 = np.sort(s.ts[calls[calls != NONE]])
    order = sorted(range(len(points)), key=lambda number: points[number].end)
    before = np.iinfo(np.int64).min
    for number in order:
        point = points[number]
        some = launched.searchsorted(before) < launched.searchsorted(point.ts)
        if some and point.diagnosis.cause is Cause.EXPLICIT and not point.ops:
            yield number
        before = point.end


def _is_pinned_copy(name: str) -> bool:
    return name.startswith("Memcpy DtoH (Device -> Pinned")


def _site(at: tuple[str, int, str]) -> tuple[str, int, str]:
    """Return a line by its file's name: a report names files from the program's folder on."""
    return PurePath(at[0]).name, at[1], at[2]
