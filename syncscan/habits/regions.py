"""What the timing rules ask: which stretches of a step were timed with events, and read back behind a synchronise."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from syncscan.habits.look import Look
from syncscan.model.trace import NONE, Category

_RECORD = re.compile(r"(cuda|hip)EventRecord(WithFlags)?(_ptsz)?")
_SYNC = re.compile(r"(cuda|hip)(Device|Event|Stream)Synchronize(_ptsz)?")
_QUERY = re.compile(r"(cuda|hip)EventQuery(_ptsz)?")
_ALL = re.compile(f"{_RECORD.pattern}|{_SYNC.pattern}|{_QUERY.pattern}")
_SOON_NS = 300_000


@dataclass(frozen=True, slots=True)
class Region:
    """A timed stretch of a host thread: from the first event's record to the second's, and the synchronise behind it.

    `explicit` says that the synchronise is no op's own.
    """

    track: int
    begin: int
    end: int
    sync: int


def timed_regions(look: Look) -> list[Region]:
    """Two records with device work between, a synchronise of the program's own, then two queries: `elapsed_time`.

    `elapsed_time` asks both events whether they are done; nothing else asks two in a row right behind a synchronise.
    """
    trace = look.trace
    rows = look.rows(Category.RUNTIME, _ALL.fullmatch)
    names = [trace.name(r) for r in rows]
    found, records = [], list[int]()
    for k, row in enumerate(rows):
        if _RECORD.fullmatch(names[k]):
            records = [*records[-1:], row]
        if not _SYNC.fullmatch(names[k]) or not _asked_twice(look, rows, names, k) or not own(look, row):
            continue
        region = _region(look, records, row)
        if region is not None:
            found.append(region)
    return found


def own(look: Look, sync: int) -> bool:
    """Whether a synchronise is the program's own, not an op's."""
    s = look.trace.slices
    return not any(s.category[r] == Category.CPU_OP for r in look.trace.ancestors(sync))


def _asked_twice(look: Look, rows: list[int], names: list[str], k: int) -> bool:
    s = look.trace.slices
    after = [(r, n) for r, n in zip(rows[k + 1 : k + 3], names[k + 1 : k + 3], strict=True)]
    return (
        len(after) == 2
        and all(_QUERY.fullmatch(n) for _, n in after)
        and all(int(s.ts[r]) - int(s.end[rows[k]]) < _SOON_NS for r, _ in after)
    )


def _region(look: Look, records: list[int], sync: int) -> Region | None:
    s = look.trace.slices
    if len(records) < 2 or s.track[records[0]] != s.track[records[1]]:
        return None
    track, begin, end = int(s.track[sync]), int(s.ts[records[0]]), int(s.ts[records[1]])
    step = next((span for span in look.spans if span[0] <= int(s.ts[sync]) < span[1]), None)
    if step is None or begin < step[0] or not len(look.launched((track, begin, end), any_thread=True)):
        return None
    return Region(track, begin, end, sync)


def trains(look: Look) -> bool:
    """Whether the steps hold a backward pass."""
    s = look.trace.slices
    return bool(np.any((s.category == Category.CPU_OP) & (s.fwd_thread > 0) & (s.sequence != NONE)))


def closing_syncs(look: Look) -> list[int]:
    """In an inference loop without events: each step's device synchronise behind its last launch, as a clock needs."""
    if trains(look):
        return []
    trace, s = look.trace, look.trace.slices
    syncs = look.rows(Category.RUNTIME, lambda n: re.fullmatch(r"(cuda|hip)DeviceSynchronize", n))
    found = []
    for begin, end in look.spans:
        mine = [r for r in syncs if begin <= int(s.ts[r]) < end and own(look, r)]
        if not mine:
            return []
        work = look.launched((NONE, int(s.ts[mine[-1]]), end), any_thread=True)
        if len(work) or not len(look.launched((NONE, begin, int(s.ts[mine[-1]])), any_thread=True)):
            return []
        found.append(mine[-1])
    return found if found and trace.steps else []
