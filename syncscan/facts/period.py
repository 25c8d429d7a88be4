"""Measure the time of one step from steps and device work: the observed throughput of many such steps."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence

import msgspec
import numpy as np

from syncscan.facts.paths import Paths
from syncscan.facts.profiler_work import profiler_syncs, profilers_own_within
from syncscan.model.arrays import Int64, distinct, median
from syncscan.model.interval import Cover, Interval, ThreadInterval, cover_of, union
from syncscan.model.runtime_calls import is_copy, is_memcpy, is_synchronize, waits_by_nature
from syncscan.model.slice_names import is_loader
from syncscan.model.step_marks import ServingPhase
from syncscan.model.trace import CALLS, HOST, NONE, Trace, once

BEHIND = 0.05
"""The device sets the pace if it falls behind the host by more than this part of a step in every step."""
FULL = 0.95
"""The device also sets the pace if it is busy for more than this part of the time between the ends of two steps."""
HELD_NS = 500_000
"""Work that begins longer than this after its launch was blocked by work that isn't recorded. On an idle device, the
slowest launch in our recordings began its work after 247 µs (A100 under the profiler; H200: 16, MI300: 84)."""
STAGED = 10
"""Times its own length after which a copy begins at the latest once its call does: pageable memory is staged first."""
_NEVER = np.iinfo(np.int64).min
"""A time before any other."""


@once
def step_intervals(trace: Trace) -> tuple[Interval, ...]:
    """Return the interval of each step, from its begin to the next step's, in ns.

    The last step is followed by the usual pause, as are steps whose next one wasn't recorded. If several threads have
    steps, those of the thread with most steps count. A trace without steps is one interval (see `window`), one without
    slices has none.
    """
    if not trace.steps:
        return (window(trace),) if len(trace.slices) else ()
    steps = trace.main_steps
    follows = [b.number == a.number + 1 for a, b in itertools.pairwise(steps)]
    pauses = [b.ts - a.end for (a, b), next_ in zip(itertools.pairwise(steps), follows, strict=True) if next_]
    pause = max(int(median(pauses)), 0) if pauses else 0
    ends = [b.ts if next_ else a.end + pause for (a, b), next_ in zip(itertools.pairwise(steps), follows, strict=True)]
    return tuple(Interval(step.ts, end) for step, end in zip(steps, [*ends, steps[-1].end + pause], strict=True))


@once
def window(trace: Trace) -> Interval:
    """Return the interval that stands for the step of a trace without steps, ns: its host part, as if marked.

    It begins with the first launch of recorded work, or the loader before that, and ends with the last op that launches
    or waits. What the profiler does before and after doesn't count, including its own synchronize. The device may be
    done later, see `later_work`. If no launch has its work, the interval spans first to last slice.
    """
    s, calls = trace.slices, trace.device_calls
    calls = calls[calls != NONE]
    if not len(calls):
        return Interval(int(s.ts.min()), int(s.end.max()))
    first = int(calls[np.argmin(s.ts[calls])])
    begin = min(int(s.ts[first]), _loader_before(trace, first))
    waits = trace.where(is_synchronize, *CALLS)
    waits = waits[np.isin(s.track[waits], distinct(s.track[calls])) & ~np.isin(waits, profiler_syncs(trace))]
    together = np.concatenate([calls, waits[s.ts[waits] >= begin]])
    last = together[s.end[together] == s.end[together].max()]
    ops = [op for op in map(trace.cached(Paths).outermost_op, last.tolist()) if op != NONE]
    return Interval(begin, int(s.end[np.append(last, ops).astype(np.int64)].max()))


def _loader_before(trace: Trace, launch: int) -> int:
    """Return when the last loader before this first launch began on its thread; the largest time without one."""
    s, rows = trace.slices, trace.where(is_loader, *HOST)
    rows = rows[(s.track[rows] == s.track[launch]) & (s.ts[rows] <= s.ts[launch])]
    return int(s.ts[rows].max()) if len(rows) else np.iinfo(np.int64).max


@once
def earlier_work(trace: Trace) -> Interval | None:
    """Return the interval in which the device works off launches from before the first step, in ns; None without one.

    That work isn't the step's, and the device isn't idle meanwhile. If it isn't recorded, the step's own first work
    shows it by beginning long after its launch, or a call before that work by waiting.
    """
    steps = step_intervals(trace)
    if not steps or not len(trace.device_rows):
        return None
    s, begin = trace.slices, steps[0].begin
    step_work = trace.device_rows[trace.launched_within(begin, steps[-1].end)]
    earlier = s.end[_before_on_its_stream(trace, trace.device_rows[trace.launched_at < begin], step_work)]
    if (earlier > begin).any():
        return Interval(begin, int(earlier.max()))
    firsts = np.sort(np.unique(_streams(trace, step_work), return_index=True)[1]) if len(step_work) else step_work
    until = max((_held_until(trace, begin, row) for row in step_work[firsts].tolist()), default=NONE)
    return Interval(begin, until) if until != NONE else None


def _held_until(trace: Trace, begin: int, first: int) -> int:
    """Return until when work that isn't recorded kept a stream's first work of the steps from beginning, ns; else NONE.

    A blocked copy's call returns with its copy, so that its begin counts, unlike another launch's. Recorded work of any
    stream may have held it, by an event.
    """
    s, call = trace.slices, trace.calls_of(np.array([first])).item()
    if call == NONE:
        return NONE
    start = s.ts.item(first)
    copies = is_memcpy(trace.name(call))
    ready = s.ts.item(call) + STAGED * s.dur.item(first) if copies else s.end.item(call)
    if start - ready > HELD_NS:
        return start if _busy(trace, ready, start) < 1 - FULL else NONE
    waits = trace.where(lambda name: is_synchronize(name) or is_copy(name), *CALLS)
    waits = waits[(s.track[waits] == s.track[call]) & (s.ts[waits] >= begin) & (s.end[waits] <= s.ts[call])]
    waits = waits[s.dur[waits] > HELD_NS]
    explained = s.end[trace.device_rows].max(initial=begin, where=s.ts[trace.device_rows] < start)
    waits = waits[s.ts[waits] >= explained]
    return int(s.end[waits].max()) if len(waits) else NONE


def _before_on_its_stream(trace: Trace, rows: Int64, step_work: Int64) -> Int64:
    """Return those of these rows of device work that begin before any work of the steps on their stream.

    A stream works in order, so work without a launch after the steps' work has lost its launch. On a stream without
    work of the steps, rows count that begin before all work of the steps.
    """
    s = trace.slices
    if not len(step_work):
        return rows[:0]
    streams, first = np.unique(_streams(trace, step_work), return_index=True)  # own work is ordered by start
    at = np.minimum(np.searchsorted(streams, _streams(trace, rows)), len(streams) - 1)
    until = np.where(streams[at] == _streams(trace, rows), s.ts[step_work[first[at]]], s.ts[step_work[0]])
    before: Int64 = rows[s.ts[rows] < until]
    return before


def _streams(trace: Trace, rows: Int64) -> Int64:
    """Return one number for device and stream of each of these rows."""
    return trace.slices.device[rows].astype(np.int64) << 32 | trace.slices.stream[rows].astype(np.int64) & 0xFFFFFFFF


@once
def later_work(trace: Trace) -> Interval | None:
    """Return the interval from the last step's end until the device is done with the steps' launches, in ns, or None.

    That is the steps' own work, which their host had run ahead of.
    """
    steps = step_intervals(trace)
    rows = work_of_steps(trace, steps)
    done = int(trace.slices.end[rows].max()) if len(rows) else 0
    return Interval(steps[-1].end, done) if steps and done > steps[-1].end else None


@once
def step_period(trace: Trace) -> float:
    """Return the observed time of a step in ns: the host's mean, or the device's pace if the device falls behind.

    A host that doesn't wait runs ahead of the device, so its own steps look short (the launch queue absorbs the rest).
    Then the time between the last device work of two steps counts. The profiler's own host time, as it states it, isn't
    part of the step.
    """
    steps = step_intervals(trace)
    if not steps:
        return 0.0
    done = _done(trace, steps)
    earlier = earlier_work(trace)
    if done and earlier is not None:
        period = _period_behind(trace, steps, done, earlier)
    elif len(done) < 2:
        alone = done[0] - steps[0].begin - _profilers(trace, steps[:1]) if done else 0.0
        period = max(_mean_length(trace, steps), alone)
    else:
        period = _period_of_several(trace, steps, done)
    return max(period, busy_time(trace, steps) / len(steps))


@once
def waits_before(trace: Trace) -> tuple[ThreadInterval, ...]:
    """Return where the thread of the steps waits for launches from before the first step: that is time of no step."""
    steps = step_intervals(trace)
    earlier = earlier_work(trace) if steps else None
    if earlier is None:
        return ()
    s, track = trace.slices, _steps_track(trace, steps)
    calls = trace.where(waits_by_nature, *CALLS)
    calls = calls[(s.track[calls] == track) & (s.ts[calls] < earlier.end) & (s.end[calls] > earlier.begin)]
    starts, ends = union(np.maximum(s.ts[calls], earlier.begin), np.minimum(s.end[calls], earlier.end))
    return tuple(ThreadInterval(track, *times) for times in zip(starts.tolist(), ends.tolist(), strict=True))


@once
def left_out_before(trace: Trace) -> tuple[ThreadInterval, ...]:
    """Return the part of `waits_before` that `step_period` leaves out, the earliest first; empty if negligible.

    A device that sets the pace makes each step wait for the work of the one before it: that is the steps' own time.
    """
    steps, waits = step_intervals(trace), waits_before(trace)
    if not waits:
        return ()
    took = len(steps) * step_period(trace)
    left = int(sum(step.length for step in steps) - took)
    if left <= BEHIND * took:
        return ()
    parts = []
    for track, begin, end in waits:
        parts.append(ThreadInterval(track, begin, min(end, begin + left)))
        left -= parts[-1].end - begin
    return tuple(part for part in parts if part.end > part.begin)


def _steps_track(trace: Trace, steps: Sequence[Interval]) -> int:
    launched = trace.device_rows[trace.launched_within(steps[0].begin, steps[-1].end)[:1]]
    call = trace.calls_of(launched)
    return trace.slices.track.item(call.item()) if len(call) and call.item() != NONE else NONE


def _before_within(trace: Trace, interval: Interval) -> int:
    """Return how long the host waits for launches from before the first step in this interval, ns."""
    return cover_of([(begin, end) for _, begin, end in waits_before(trace)]).between(*interval)


def step_times(trace: Trace) -> list[int]:
    """Return the times of single steps in ns, as they vary around `step_period`.

    They are the host's, or the times between the last work of two steps if the device sets the pace.
    """
    steps = step_intervals(trace)
    own = profilers_own_within(trace, steps)
    host = [step.length - profilers - _before_within(trace, step) for step, profilers in zip(steps, own, strict=True)]
    device = [b - a for a, b in itertools.pairwise(_done(trace, steps))]
    period = step_period(trace)
    return min((times for times in (host, device) if times), key=lambda t: abs(float(np.mean(t)) - period), default=[])


def _period_of_several(trace: Trace, steps: Sequence[Interval], done: list[int]) -> float:
    host = _mean_length(trace, steps)
    count = len(done) - 1
    device = (done[-1] - done[0]) / count
    lag = [end - b for end, (_, b) in zip(done, steps, strict=True)]
    falls_behind = lag[-1] - lag[0] > BEHIND * host * count
    return max(host, device) if falls_behind or _busy(trace, done[0], done[-1]) > FULL else host


def _period_behind(trace: Trace, steps: Sequence[Interval], done: list[int], earlier: Interval) -> float:
    """Return the period of several steps behind earlier launches, whose end counts like that of a step before.

    The host's wait for that isn't time of these steps; the wait that these leave to it is in the device's pace.
    """
    host = _mean_length(trace, steps)
    device = (done[-1] - earlier.end) / len(steps)
    tells = waits_before(trace) or device > (1 + BEHIND) * host or _busy(trace, earlier.end, done[-1]) > FULL
    return max(host, device) if tells else host


def _mean_length(trace: Trace, steps: Sequence[Interval]) -> float:
    left_out = _profilers(trace, steps) + sum(_before_within(trace, step) for step in steps)
    return float(np.mean([step.length for step in steps])) - left_out / len(steps)


def _profilers(trace: Trace, steps: Sequence[Interval]) -> int:
    """Return how long the profiler itself blocked the host in these steps."""
    return sum(profilers_own_within(trace, steps))


def busy_time(trace: Trace, steps: Sequence[Interval]) -> float:
    """Return how long any stream works on the launches of these intervals, in ns; overlap counts once."""
    rows = work_of_steps(trace, steps)
    return float(Cover(*union(trace.slices.ts[rows], trace.slices.end[rows])).length)


def work_of_steps(trace: Trace, steps: Sequence[Interval]) -> Int64:
    """Return the rows of device work launched in these intervals, in order of start."""
    return _own_work(trace) if tuple(steps) == step_intervals(trace) else trace.device_rows[trace.launched_in(steps)]


@once
def _own_work(trace: Trace) -> Int64:
    """Return the rows of device work launched in the trace's own steps; several stages use them."""
    return trace.device_rows[trace.launched_in(step_intervals(trace))]


def _done(trace: Trace, steps: Sequence[Interval]) -> list[int]:
    """Return when the device work launched in each interval was done; empty if an interval launched none."""
    s, rows = trace.slices, trace.device_rows[trace.by_launch[1]]
    ends = np.where(s.correlation[rows] != NONE, s.end[rows], _NEVER)
    bounds = np.stack(trace.launches_of(steps), axis=1).ravel()
    done: list[int] = np.maximum.reduceat(np.append(ends, _NEVER), bounds)[::2].tolist() if len(steps) else []
    empty = bounds[::2] == bounds[1::2]
    return [] if empty.any() or _NEVER in done else done


def _busy(trace: Trace, begin: int, end: int) -> float:
    """Return the share of this time in which the device is busy."""
    rows = trace.device_rows
    busy = Cover(*union(trace.slices.ts[rows], trace.slices.end[rows]))
    return busy.between(begin, end) / max(1, end - begin)


class PhaseSummary(msgspec.Struct, frozen=True):
    """The steps of one phase and batch size."""

    phase: ServingPhase
    batch: int | None
    """Number of requests, None if the marks don't state it."""
    count: int
    median_us: float
    """Time from the start of a step to the start of the next."""


def phases_of(trace: Trace) -> tuple[PhaseSummary, ...]:
    """Return the phases of a trace, prefill before decode, and within a phase the most time-consuming first.

    Empty if all steps are of one phase, or of no known phase.
    """
    lengths: defaultdict[tuple[ServingPhase, int | None], list[int]] = defaultdict(list)
    for step, interval in zip(trace.main_steps, step_intervals(trace), strict=False):
        if step.mark:
            lengths[step.mark.phase, step.mark.batch].append(interval.length)
    if len({phase for phase, _ in lengths}) < 2:
        return ()
    order = list(ServingPhase)
    return tuple(
        PhaseSummary(phase, batch, len(taken), median(taken) / 1e3)
        for (phase, batch), taken in sorted(lengths.items(), key=lambda item: (order.index(item[0][0]), -sum(item[1])))
    )
