"""Lay one step out as lanes: what stops its host thread, and when its device works; as recorded, and as replayed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from syncscan.facts.device_work import DeviceWork
from syncscan.model.analysis import Analysis
from syncscan.model.arrays import Int64
from syncscan.model.finding import SyncPoint
from syncscan.model.habit import Change
from syncscan.model.interval import Cover, Interval, union
from syncscan.model.projection import Blocked, Schedule
from syncscan.model.slice_names import is_loader
from syncscan.model.trace import HOST, NONE, Trace
from syncscan.report.timeline_habits import pauses
from syncscan.report.units import duration

BINS = 480
"""Number of parts of the ruler in which the device's work is distinguished."""
LEVELS = 4
"""Shades of a part by how much of it the device works: work shorter than a part doesn't fill it."""
NOTABLE = 0.01
"""Least part of the step that a wait, an idle time or a move takes to be pointed at."""
MAX_ARROWS = 6


class Piece(msgspec.Struct, frozen=True):
    """A time on a lane, ns since the step's begin."""

    begin: float
    end: float
    look: str
    """`sync`, `call` (the rest of a waiting call), `input`, `pause`, `queue` or `bubble`."""
    label: str = ""


class Shade(msgspec.Struct, frozen=True):
    """Neighboring parts of the ruler in which the device works equally much: `level` of `LEVELS`."""

    begin: float
    end: float
    level: int


class Lanes(msgspec.Struct, frozen=True):
    """One step: what stops its host thread, when its device works, and when it ends; ns since the step's begin."""

    end: float
    host_end: float
    """When the host is done; before `end` where it runs ahead of the device."""
    host: tuple[Piece, ...]
    device: tuple[Shade, ...]
    idle: tuple[Piece, ...] = ()
    """The device's idle time behind syncs, of a recorded step."""


NO_LANES = Lanes(0.0, 0.0, (), ())
"""A step that isn't drawn."""


class Arrow(msgspec.Struct, frozen=True):
    """A line from a wait to the idle time it causes (`idle`), or to where it turns up without its sync (`moved`)."""

    look: str
    begin: float
    end: float
    label: str


def recorded(analysis: Analysis, now: Schedule, length: float) -> Lanes:
    """Return a step's lanes as recorded, on a ruler of `length` ns."""
    device, begin, window = _device(analysis), now.begin, Interval(now.begin, now.end)
    waits = [piece for o in _waits(analysis, now) for piece in _wait_of(o, begin)]
    work = analysis.trace.cached(DeviceWork).of(device)
    return Lanes(
        end=float(now.end - begin),
        host_end=float(now.end - begin),
        host=(*_inputs(analysis.trace, now), *_pauses(analysis, now), *waits),
        device=_shades(work.busy_from, work.busy_to, window, length),
        idle=tuple(_bubbles(analysis, now, device)),
    )


def _device(analysis: Analysis) -> int:
    devices = analysis.step.devices
    work = analysis.trace.cached(DeviceWork).devices
    return devices[0].device if devices else (work[0] if work else 0)


def _waits(analysis: Analysis, now: Schedule) -> list[SyncPoint]:
    """Return the step's sync points on its own threads, in time order."""
    points = [o for f in analysis.findings for o in f.occurrences if o.track in now.tracks]
    return sorted((o for o in points if now.begin <= o.ts < now.end), key=lambda o: o.ts)


def _wait_of(o: SyncPoint, begin: int) -> Iterator[Piece]:
    since, woken = o.ts - begin, o.ts + o.wait_ns - begin
    label = f"{o.diagnosis.title}: waits {duration(o.wait_ns / 1e3)}"
    if o.end - begin > woken:
        yield Piece(woken, o.end - begin, "call", label)
    if woken > since:
        yield Piece(since, woken, "sync", label)


def _inputs(trace: Trace, now: Schedule) -> Iterator[Piece]:
    s = trace.slices
    rows = np.flatnonzero(trace.named(is_loader) & trace.is_category(*HOST) & np.isin(s.track, now.tracks))
    rows = rows[(s.ts[rows] < now.end) & (s.end[rows] > now.begin)]
    for begin, end in zip(*(c.tolist() for c in union(s.ts[rows], s.end[rows])), strict=True):
        yield _within(Piece(begin - now.begin, end - now.begin, "input", "the host is in its loader"), now)


def _pauses(analysis: Analysis, now: Schedule, without: Sequence[Change] = ()) -> Iterator[Piece]:
    """Yield the times of the step's threads that dropping a habit would take out, but those already taken out."""
    taken = {interval for change in without for interval in change.host}
    for habit, intervals in pauses(analysis):
        own = [i for i in intervals if i not in taken and i.track in now.tracks]
        for _, begin, end in own:
            if begin < now.end and end > now.begin and end - begin >= NOTABLE * (now.end - now.begin):
                label = f"{habit.advice.title}: {duration((end - begin) / 1e3)}"
                yield _within(Piece(begin - now.begin, end - now.begin, "pause", label), now)


def _within(piece: Piece, now: Schedule) -> Piece:
    return Piece(max(0.0, piece.begin), min(piece.end, now.end - now.begin), piece.look, piece.label)


def _bubbles(analysis: Analysis, now: Schedule, device: int) -> Iterator[Piece]:
    work = analysis.trace.cached(DeviceWork).of(device)
    waits = [o for o in _waits(analysis, now) if o.device == device and o.bubble_ns > 0]
    begins = work.idle_from(np.array([o.released for o in waits], np.int64)).tolist()
    for begin, o in zip(begins, waits, strict=True):
        idle = duration(o.bubble_ns / 1e3)
        piece = Piece(begin - now.begin, begin + o.bubble_ns - now.begin, "bubble", f"the device is idle for {idle}")
        if piece.begin < now.end - now.begin:
            yield _within(piece, now)


def _shades(begins: Int64, ends: Int64, window: Interval, length: float) -> tuple[Shade, ...]:
    """Return how much of each part of the ruler is covered by these disjoint, ascending intervals."""
    inside = (begins < window.end) & (ends > window.begin)
    begins, ends = np.maximum(begins[inside], window.begin), np.minimum(ends[inside], window.end)
    if not len(begins):
        return ()
    edges = window.begin + np.linspace(0.0, length, BINS + 1).astype(np.int64)
    covered = Cover(begins, ends).within(edges[:-1], edges[1:]) * BINS / length
    levels = np.ceil(np.round(covered, 3) * LEVELS).astype(int)
    cuts = np.flatnonzero(np.diff(levels, prepend=-1, append=-1))
    part = length / BINS
    spans = zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True)
    return tuple(Shade(a * part, b * part, int(levels[a])) for a, b in spans if levels[a])


def replayed(analysis: Analysis, now: Schedule, plan: Schedule, changes: Sequence[Change], length: float) -> Lanes:
    """Return a step's lanes as replayed, on a ruler of `length` ns; `changes` are of the habits dropped for it."""
    trace, begin = analysis.trace, plan.begin
    own = trace.slices.device[plan.rows] == _device(analysis)
    start, end = plan.start[own], plan.start[own] + plan.dur[own]
    late = end > plan.replayed_end
    if trace.steps and late.any():  # every step of the steady state equals the one before, whose work this is
        span = plan.replayed_end - begin
        start, end = np.append(start, np.full(late.sum(), begin)), np.append(end, end[late] - span)
    order = np.argsort(start, kind="stable")
    drawn = (*_inputs(trace, now), *_pauses(analysis, now, changes))
    waits = [_blocked(b, analysis, begin) for b in plan.blocked]
    return Lanes(
        end=float(plan.replayed_end - begin),
        host_end=float(plan.host_end - begin),
        host=(*(_mapped(p, plan) for p in drawn), *waits),
        device=_shades(*union(start[order], end[order]), Interval(begin, max(plan.replayed_end, begin + 1)), length),
    )


def _mapped(piece: Piece, plan: Schedule) -> Piece:
    begin, end = (plan.host(np.array([piece.begin, piece.end], np.int64) + plan.begin) - plan.begin).tolist()
    return Piece(begin, end, piece.look, piece.label)


def _blocked(blocked: Blocked, analysis: Analysis, begin: int) -> Piece:
    took = duration((blocked.end - blocked.begin) / 1e3)
    if blocked.finding == NONE:
        look = "queue" if blocked.recorded == NONE else "sync"
        label = f"the launch queue is full: the host waits {took}" if look == "queue" else f"waits {took}"
    else:
        look, label = "sync", f"{analysis.findings[blocked.finding].title}: waits {took}"
    return Piece(blocked.begin - begin, blocked.end - begin, look, label)


# arrows


def causes(analysis: Analysis, now: Schedule) -> Iterator[Arrow]:
    """Yield from each long wait to the idle time behind it."""
    device, least = _device(analysis), NOTABLE * (now.end - now.begin)
    waits = [o for o in _waits(analysis, now) if o.bubble_ns >= least and o.device == device]
    work = analysis.trace.cached(DeviceWork).of(device)
    for o in sorted(waits, key=lambda o: -o.bubble_ns)[:MAX_ARROWS]:
        (idle,) = work.idle_from(np.array([o.released], np.int64)).tolist()
        woken = min(o.ts + o.wait_ns, now.end) - now.begin
        middle = min(idle + o.bubble_ns / 2, now.end) - now.begin
        yield Arrow("idle", woken, middle, f"idle {duration(o.bubble_ns / 1e3)}")


def moves(analysis: Analysis, now: Schedule, plan: Schedule, removed: set[str]) -> Iterator[Arrow]:
    """Yield from the longest removed wait to each wait that is longer without it."""
    numbers = {n for n, f in enumerate(analysis.findings) if f.id in removed}
    before = {(b.finding, b.recorded): b.end - b.begin for b in now.blocked}
    out = [b for b in now.blocked if b.finding in numbers]
    if not out:
        return
    longest, least = max(out, key=lambda b: b.end - b.begin), NOTABLE * (now.end - now.begin)
    source = longest.recorded - now.begin + (longest.end - longest.begin) / 2
    grown = [(b, b.end - b.begin - before.get((b.finding, b.recorded), 0)) for b in plan.blocked]
    for b, more in sorted(grown, key=lambda pair: -pair[1])[:2]:
        if more >= least:
            yield Arrow("moved", source, (b.begin + b.end) / 2 - plan.begin, f"moved {duration(more / 1e3)}")
