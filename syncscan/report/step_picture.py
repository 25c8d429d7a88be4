"""Lay out one step without the profiler: its host, its device, and how long it takes after each change.

Plain values: `svg` draws them, for the report's page, for other pages and as a file of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from syncscan.facts.device_work import DeviceWork
from syncscan.model.analysis import Analysis
from syncscan.model.arrays import Int64
from syncscan.model.finding import Phase
from syncscan.model.interval import union
from syncscan.model.projection import Projection, Schedule
from syncscan.model.slice_names import is_loader
from syncscan.model.step import Bound
from syncscan.model.trace import HOST, NONE
from syncscan.report.front import Front
from syncscan.report.phrases import replayed
from syncscan.report.timeline_extract import recorded_step
from syncscan.report.units import duration, part_of, within

NOTABLE = 0.01
"""Least part of the step that a time takes to be named."""
_BY_PHASE = (Bound.HOST, Bound.INPUT, Bound.UNKNOWN)
"""Limits at which the host is drawn by phase, if that was sampled; else with its waits."""
_PHASES = (
    (Phase.DATA, "input", ("input", "in")),
    (Phase.FORWARD, "host", ("forward", "fwd")),
    (Phase.BACKWARD, "host", ("backward", "bwd")),
    (Phase.OPTIMIZER, "host", ("optimizer", "opt")),
    (Phase.OTHER, "host", ("in between", "other")),
)
"""Phases in the order in which they are drawn, with their look and what they are called, the longest name first."""


class Part(msgspec.Struct, frozen=True):
    """A time on a lane, µs since the step's begin."""

    look: str
    begin: float
    end: float
    texts: tuple[str, ...] = ()
    """Texts that can stand in it, the longest first; the first is also its name on hover."""


class Lane(msgspec.Struct, frozen=True):
    """A step on the host or the device: parts in time order over ground that lasts until `end`."""

    name: str
    ground: str
    end: float
    parts: tuple[Part, ...]
    work: tuple[tuple[float, float], ...] = ()
    """When the device works."""
    texts: tuple[str, ...] = ()
    """A note on the lane, where it has room."""


class After(msgspec.Struct, frozen=True):
    """The step after a change and those above it, projected, µs."""

    name: str
    us: float
    range_us: tuple[float, float]
    takes: str
    """The time in words, with the digits that are said of it elsewhere."""


class StepPicture(msgspec.Struct, frozen=True):
    """One step, or one of each of two recordings, on one ruler."""

    title: str
    now_us: float
    lanes: tuple[Lane, ...]
    after: tuple[After, ...] = ()

    @property
    def longest_us(self) -> float:
        return max(self.now_us, *(lane.end for lane in self.lanes), *(row.range_us[1] for row in self.after))

    @property
    def spoken(self) -> str:
        """The picture in words."""
        rows = (f"{lane.name}: {', '.join(p.texts[0] for p in lane.parts if p.texts)}" for lane in self.lanes)
        after = (f"{row.name}: {row.takes}" for row in self.after)
        return "; ".join([f"A step of {duration(self.now_us)}", *(row.removesuffix(": ") for row in rows), *after])

    def total(self, look: str) -> float:
        """Return how long the parts of a look last together, µs."""
        return sum(part.end - part.begin for lane in self.lanes for part in lane.parts if part.look == look)


def of(analysis: Analysis, first: Front) -> StepPicture | None:
    """Return the step of the costliest wait, and after each change; None where no step can be replayed."""
    names = ("after 1", *(f"and {number}" for number in range(2, len(first.changes) + 1)))
    projected = [change for change in first.changes if change.gain is not None]
    rows = zip(names, projected, strict=False)
    return _step(
        analysis, tuple(After(name, c.after_us, (c.after_low_us, c.after_high_us), c.takes) for name, c in rows)
    )


def projected(analysis: Analysis, projection: Projection) -> StepPicture | None:
    """Return the step, and how long it takes without the projection's syncs."""
    us, limits = projection.predicted_us, projection.range_us
    after = After("after", us, limits, within(us, limits))
    return _step(analysis, (after,)) if projection.removed else None


def measured(before: Analysis, after: Analysis) -> StepPicture | None:
    """Return a step of each of two recordings on one ruler; None where one of them has no step that can be replayed."""
    sides = [("before", _lanes(before)), ("after", _lanes(after))]
    named = [
        msgspec.structs.replace(lane, name=f"{lane.name} {side}") for side, lanes in sides if lanes for lane in lanes
    ]
    return StepPicture("A step of each", replayed(before.step), tuple(named)) if len(named) == 4 else None


def _step(analysis: Analysis, after: tuple[After, ...]) -> StepPicture | None:
    lanes = _lanes(analysis)
    if lanes is None:
        return None
    how = "with the profiler" if analysis.step.unprofiled_us is None else "without the profiler"
    return StepPicture(f"One step, {how}", replayed(analysis.step), lanes, after)


def _lanes(analysis: Analysis) -> tuple[Lane, Lane] | None:
    now, base = recorded_step(analysis), replayed(analysis.step)
    plan = now.schedule if now else None
    if plan is None or plan.replayed_end <= plan.begin or not base:
        return None
    return _host(analysis, plan, base), _device(analysis, plan, base)


def _scaled(ns: Int64 | int, plan: Schedule, base: float) -> list[float]:
    """Return times of a replay as µs since the step's begin; a replay is in proportion to the recorded step."""
    scale = base / (plan.replayed_end - plan.begin)
    return [float(t) for t in np.clip((np.atleast_1d(ns) - plan.begin) * scale, 0.0, base)]


# the host


def _host(analysis: Analysis, plan: Schedule, base: float) -> Lane:
    sampled = analysis.host_time.sampled
    if sampled and sampled.step_us and analysis.step.bound in _BY_PHASE:
        took = {share.name: share.us * base / sampled.step_us for share in sampled.by_phase()}
        return Lane("host", "idle", base, tuple(_in_a_row(took, duration(base))))
    (done,) = _scaled(plan.host_end, plan, base)
    ahead = [Part("idle", done, base, ("done: runs ahead", "ahead"))] if base - done >= NOTABLE * base else []
    parts = [*_waits(analysis, plan, base), *_inputs(analysis, plan, base), *ahead]
    works = [Part("works", a, b, ("works",)) for a, b in between([(p.begin, p.end) for p in parts], base)]
    longer = [part for part in works if part.end - part.begin >= NOTABLE * base]
    return Lane("host", "host", base, tuple(sorted([*parts, *longer], key=lambda part: part.begin)))


def between(spans: Sequence[tuple[float, float]], until: float) -> list[tuple[float, float]]:
    """Return what lies between spans that may overlap, from 0 on."""
    out, at = [], 0.0
    for begin, end in sorted(spans):
        if begin > at:
            out.append((at, begin))
        at = max(at, end)
    return [*out, (at, until)] if at < until else out


def _in_a_row(took: dict[str, float], step: str) -> Iterator[Part]:
    at = 0.0
    for phase, look, names in _PHASES:
        us = took.get(phase.value, 0.0)
        value = part_of(us, step) if us else ""
        yield Part(look, at, at + us, (*(f"{name} {value}" for name in names), value))
        at += us


def _waits(analysis: Analysis, plan: Schedule, base: float) -> Iterator[Part]:
    for blocked in plan.blocked:
        begin, end = _scaled(np.array([blocked.begin, blocked.end]), plan, base)
        if end - begin < NOTABLE * base:
            yield Part("wait", begin, end)
            continue
        value = part_of(end - begin, duration(base))
        name = "launch queue full," if blocked.recorded == NONE else ""
        if blocked.finding != NONE:
            waits = analysis.findings[blocked.finding]
            name = (waits.op or waits.call).removeprefix("aten::")
        yield Part("wait", begin, end, (f"{name} waits {value}".strip(), f"waits {value}", value))


def _inputs(analysis: Analysis, plan: Schedule, base: float) -> Iterator[Part]:
    trace = analysis.trace
    s, rows = trace.slices, trace.where(is_loader, *HOST)
    rows = rows[np.isin(s.track[rows], plan.tracks) & (s.ts[rows] < plan.end) & (s.end[rows] > plan.begin)]
    for begin, end in zip(*union(s.ts[rows], s.end[rows]), strict=True):
        a, b = _scaled(plan.host(np.array([begin, end], np.int64)), plan, base)
        value = part_of(b - a, duration(base))
        yield Part("input", a, b, (f"input {value}", value))


# the device


def _device(analysis: Analysis, plan: Schedule, base: float) -> Lane:
    begins, ends = _busy(analysis, plan)
    work = tuple((a, b) for a, b in zip(_scaled(begins, plan, base), _scaled(ends, plan, base), strict=True) if a < b)
    return Lane("device", "idle", base, tuple(_lost(plan, work, base)), work, _busy_texts(analysis))


def _busy(analysis: Analysis, plan: Schedule) -> tuple[Int64, Int64]:
    """Return when the first device works in a replayed step, ns: disjoint, in time order."""
    devices = analysis.step.devices
    known = analysis.trace.cached(DeviceWork).devices
    device = devices[0].device if devices else known[0] if known else 0
    of_device = analysis.trace.slices.device[plan.rows] == device
    start, end = plan.start[of_device], (plan.start + plan.dur)[of_device]
    late = end > plan.replayed_end
    if analysis.trace.steps and late.any():  # every step of the steady state equals the one before, whose work this is
        span = plan.replayed_end - plan.begin
        start, end = np.append(start, np.full(late.sum(), plan.begin)), np.append(end, end[late] - span)
    order = np.argsort(start, kind="stable")
    return union(start[order], end[order])


def _lost(plan: Schedule, work: Sequence[tuple[float, float]], base: float) -> Iterator[Part]:
    """Yield the device's idle times behind the host's waits."""
    released = [_scaled(blocked.end, plan, base)[0] for blocked in plan.blocked if blocked.finding != NONE]
    for begin, end in between(work, base):
        if end - begin >= NOTABLE * base and any(begin - NOTABLE * base <= at < end for at in released):
            value = part_of(end - begin, duration(base))
            yield Part("lost", begin, end, (f"idle after it {value}", f"idle {value}", value))


def _busy_texts(analysis: Analysis) -> tuple[str, ...]:
    share = analysis.step.device_share or analysis.step.recorded_device_share
    busy = f"busy {share:.0%}"
    return (f"{busy}: waits for launches", busy) if analysis.step.bound is Bound.HOST else (busy,)
