"""Say of a wait that it protects the use of a copy's memory, and name the races of a trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import PurePath

import numpy as np
from msgspec.structs import replace

from syncscan.attribute.source_lines import path_in_program, program_root
from syncscan.model.arrays import Int64
from syncscan.model.capture import CaptureTable, Frame, ProtectedUse
from syncscan.model.finding import Cause, Confidence, SyncPoint, short_id
from syncscan.model.race import TEXTS, Race, RaceKind, RaceLine
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


def with_protected(trace: Trace, points: Sequence[SyncPoint]) -> tuple[SyncPoint, ...]:
    """Return the sync points, with what they protect in place of the advice to remove them."""
    capture = trace.info.capture
    if capture.pretended:
        at = {_site(use.wait): use for use in capture.protected}
        sources = [point.where.source for point in points]
        uses = [at.get(_site((s.file, s.line, s.function))) if s else None for s in sources]
        return tuple(_met(point, use) if use else point for point, use in zip(points, uses, strict=True))
    likely = set(_behind_copies(trace, points))
    return tuple(
        _protecting(point, _LIKELY + _EVENT.format(use="read")) if number in likely else point
        for number, point in enumerate(points)
    )


KEEP = "Keep a wait here, if only an event's: it orders the use of that memory."
"""Advice of one line on a wait that protects a use of memory."""


def _met(point: SyncPoint, use: ProtectedUse) -> SyncPoint:
    first = f"line {use.first[1]}" if use.first else "an earlier line"
    return _protecting(point, "Keep a wait here: " + _WITHOUT[use.kind].format(first=first, second=use.second[1]))


def _protecting(point: SyncPoint, fix: str) -> SyncPoint:
    return replace(point, diagnosis=replace(point.diagnosis, fix=fix, do=KEEP))


def _behind_copies(trace: Trace, points: Sequence[SyncPoint]) -> Iterator[int]:
    """Yield the explicit waits that are the first after the launch of a copy into pinned memory."""
    s = trace.slices
    works = trace.where(lambda name: name.startswith("Memcpy DtoH (Device -> Pinned"), Category.MEMCPY)
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


def _site(at: tuple[str, int, str]) -> tuple[str, int, str]:
    """Return a line by its file's name: a report names files from the program's folder on."""
    return PurePath(at[0]).name, at[1], at[2]


def races_met(capture: CaptureTable) -> tuple[Race, ...]:
    """Return the races that a dry run met, the most frequent first."""
    stacks = [tuple(capture.lines.stack(number)) for number in range(len(capture.lines.stacks))]
    root = program_root(stacks or [(Frame(*record.second),) for record in capture.races])
    counts: Counter[tuple[object, ...]] = Counter()
    races = []
    for record in capture.races:
        kind, second = record.kind, _line(record.second, root)
        first = _line(record.first, root) if record.first else None
        site = (kind.value, first and (first.file, first.function), second.file, second.function)
        counts[site] += 1  # lines move, and so a second race of a function is the second one there
        name = short_id((*site, counts[site]))
        sure = Confidence.HIGH  # a dry run sees each use of the memory
        race = Race(id=name, kind=kind, first=first, second=second, count=record.count, confidence=sure, **TEXTS[kind])
        races.append(race)
    return tuple(sorted(races, key=lambda race: -race.count))


def _line(at: tuple[str, int, str], root: str) -> RaceLine:
    file, line, function = at
    return RaceLine(path_in_program(file, root), line, function)
