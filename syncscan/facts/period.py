"""From a trace's steps and device work to the time of one step: the throughput of many such steps, as observed."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from syncscan.facts.closing_sync import profiler_syncs
from syncscan.facts.paths import Paths
from syncscan.facts.profiler_overhead import profilers_own_within
from syncscan.model.arrays import Int64, distinct, median
from syncscan.model.interval import Interval, union
from syncscan.model.names import is_loader
from syncscan.model.runtime_calls import is_synchronize, waits_by_nature
from syncscan.model.trace import CALLS, HOST, NONE, Trace, once

BEHIND = 0.05
"""The device sets the pace when it falls behind the host by more than this part of a step with every step."""
FULL = 0.95
"""It sets the pace too when it works more than this part of the time from one step's end to the next one's."""
HELD_NS = 500_000
"""Work that begins later than this behind its launch was held by work that isn't recorded: on an idle device the
slowest launch of any of our recordings began its work after 247 µs (A100 under the profiler; H200: 16, MI300: 84)."""
_NEVER = np.iinfo(np.int64).min
"""Earlier than any time."""


@once
def step_intervals(trace: Trace) -> tuple[Interval, ...]:
    """Each step from its begin to the begin of the next, in ns.

    The last, whose next isn't known, gets the usual pause behind it; so do steps whose next wasn't recorded. Where
    several threads have steps, those of the thread with the most count. A trace without steps is one interval, see
    `window`; one without slices has none.
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
    """What stands for the step of a trace without any, ns: the host's part of it, as a mark around it would have been.

    It begins with the first launch of recorded work, or the loader before that, and ends when the last op is over that
    launches or waits. What the profiler does before and behind is none of it, and its own synchronise is nobody's; the
    device may be done later, see `later_work`. Where no launch has its work, it is from first slice to last.
    """
    s, calls = trace.slices, trace.device_calls
    calls = calls[calls != NONE]
    if not len(calls):
        return Interval(int(s.ts.min()), int(s.end.max()))
    first = int(calls[np.argmin(s.ts[calls])])
    begin = min(int(s.ts[first]), _loader_before(trace, first))
    waits = trace.where(is_synchronize, *CALLS)
    waits = waits[np.isin(s.track[waits], distinct(s.track[calls])) & ~np.isin(waits, profiler_syncs(trace))]
    meeting = np.concatenate([calls, waits[s.ts[waits] >= begin]])
    last = meeting[s.end[meeting] == s.end[meeting].max()]
    ops = [op for op in map(trace.kept(Paths).outermost_op, last.tolist()) if op != NONE]
    return Interval(begin, int(s.end[np.append(last, ops).astype(np.int64)].max()))


def _loader_before(trace: Trace, launch: int) -> int:
    """When the last loader before this first launch began on its thread; never without."""
    s, rows = trace.slices, trace.where(is_loader, *HOST)
    rows = rows[(s.track[rows] == s.track[launch]) & (s.ts[rows] <= s.ts[launch])]
    return int(s.ts[rows].max()) if len(rows) else np.iinfo(np.int64).max


@once
def earlier_work(trace: Trace) -> Interval | None:
    """From the first step's begin to when the device was done with what was launched before it, in ns; None without.

    That work is neither the step's nor is the device idle meanwhile. It may not be recorded: then the step's own first
    work tells, by beginning long after it was launched.
    """
    steps = step_intervals(trace)
    if not steps or not len(trace.device_rows):
        return None
    s, begin = trace.slices, steps[0].begin
    own = trace.device_rows[trace.launched_within(begin, steps[-1].end)]
    earlier = s.end[_before_on_its_stream(trace, trace.device_rows[trace.launched_at < begin], own)]
    if (earlier > begin).any():
        return Interval(begin, int(earlier.max()))
    call = int(trace.calls_of(own[:1])[0]) if len(own) else NONE
    held = call != NONE and int(s.ts[own[0]] - s.end[call]) > HELD_NS
    return Interval(begin, int(s.ts[own[0]])) if held else None


def _before_on_its_stream(trace: Trace, rows: Int64, own: Int64) -> Int64:
    """Those of these rows of device work that begin before any of the steps' own does on their stream.

    A stream works in order: what comes behind work of the steps and has no launch has lost it. On a stream without any
    of theirs, what begins before all of theirs.
    """
    s = trace.slices
    if not len(own):
        return rows[:0]
    streams, first = np.unique(_streams(trace, own), return_index=True)  # own work comes in order of its start
    at = np.minimum(np.searchsorted(streams, _streams(trace, rows)), len(streams) - 1)
    until = np.where(streams[at] == _streams(trace, rows), s.ts[own[first[at]]], s.ts[own[0]])
    before: Int64 = rows[s.ts[rows] < until]
    return before


def _streams(trace: Trace, rows: Int64) -> Int64:
    """A number for device and stream of each of these rows."""
    return trace.slices.device[rows].astype(np.int64) << 32 | trace.slices.stream[rows].astype(np.int64) & 0xFFFFFFFF


@once
def later_work(trace: Trace) -> Interval | None:
    """From the last step's end to when the device was done with what the steps launched, in ns; None without.

    That is the steps' own work, which their host had run ahead of.
    """
    steps = step_intervals(trace)
    rows = work_of_steps(trace, steps)
    done = int(trace.slices.end[rows].max()) if len(rows) else 0
    return Interval(steps[-1].end, done) if steps and done > steps[-1].end else None


@once
def step_period(trace: Trace) -> float:
    """The observed time of a step in ns: the host's mean one, or the device's pace where the device falls behind.

    A host that doesn't wait for the device runs ahead of it, so that its own steps look short (the launch queue takes
    the rest); then the time from one step's last device work to the next one's tells. What the profiler says that it
    took of the host itself isn't the step's.
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
def waited_before(trace: Trace) -> int:
    """How long the host waits for earlier launches in time that `step_period` leaves out, ns; 0 for next to nothing."""
    steps = step_intervals(trace)
    earlier = earlier_work(trace) if steps else None
    if earlier is None:
        return 0
    took = len(steps) * step_period(trace)
    left_out = sum(step.length for step in steps) - took
    return min(int(left_out), _waiting(trace, steps, earlier)) if left_out > BEHIND * took else 0


def step_times(trace: Trace) -> list[int]:
    """The times of single steps in ns, as they spread around `step_period`: the host's, or where the device sets the
    pace from one step's last work to the next one's.
    """
    steps = step_intervals(trace)
    own = profilers_own_within(trace, steps)
    host = [step.length - profilers for step, profilers in zip(steps, own, strict=True)]
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
    """The same where the device first works off what was launched earlier: that ends as a step before these would.

    What the host waits for it is no time of these steps; what these leave it to wait for is in the device's pace.
    """
    waiting = _waiting(trace, steps, earlier)
    host = (sum(step.length for step in steps) - waiting) / len(steps)
    device = (done[-1] - earlier.end) / len(steps)
    tells = waiting or device > (1 + BEHIND) * host or _busy(trace, earlier.end, done[-1]) > FULL
    return max(host, device) if tells else host


def _mean_length(trace: Trace, steps: Sequence[Interval]) -> float:
    return float(np.mean([step.length for step in steps])) - _profilers(trace, steps) / len(steps)


def _profilers(trace: Trace, steps: Sequence[Interval]) -> int:
    """How long the profiler itself held the host in these steps."""
    return sum(profilers_own_within(trace, steps))


def _waiting(trace: Trace, steps: Sequence[Interval], earlier: Interval) -> int:
    """How long the thread of these steps is in calls that wait, while the device works off earlier launches."""
    s = trace.slices
    first = trace.device_rows[trace.launched_within(steps[0].begin, steps[-1].end)[:1]]
    if not len(first):
        return 0
    calls = trace.where(waits_by_nature, *CALLS)
    calls = calls[s.track[calls] == s.track[trace.calls_of(first)]]
    starts, ends = union(s.ts[calls], s.end[calls])
    overlap = np.minimum(ends, earlier.end) - np.maximum(starts, earlier.begin)
    return int(overlap[overlap > 0].sum())


def busy_time(trace: Trace, steps: Sequence[Interval]) -> float:
    """How long any stream works on what these intervals launched, in ns; time that streams share counts once."""
    rows = work_of_steps(trace, steps)
    starts, ends = union(trace.slices.ts[rows], trace.slices.end[rows])
    return float((ends - starts).sum())


def work_of_steps(trace: Trace, steps: Sequence[Interval]) -> Int64:
    """Rows of the device work that these intervals launched, in order of its start."""
    return _own_work(trace) if tuple(steps) == step_intervals(trace) else trace.device_rows[trace.launched_in(steps)]


@once
def _own_work(trace: Trace) -> Int64:
    """The same of the trace's own steps, of which several stages ask."""
    return trace.device_rows[trace.launched_in(step_intervals(trace))]


def _done(trace: Trace, steps: Sequence[Interval]) -> list[int]:
    """When the device work launched in each interval was done; empty if one launched none."""
    s, rows = trace.slices, trace.device_rows[trace.by_launch[1]]
    ends = np.where(s.correlation[rows] != NONE, s.end[rows], _NEVER)
    each = np.stack(trace.launches_of(steps), axis=1).ravel()
    done: list[int] = np.maximum.reduceat(np.append(ends, _NEVER), each)[::2].tolist() if len(steps) else []
    empty = each[::2] == each[1::2]
    return [] if empty.any() or _NEVER in done else done


def _busy(trace: Trace, begin: int, end: int) -> float:
    """The part of this time in which the device works."""
    rows = trace.device_rows
    starts, ends = union(trace.slices.ts[rows], trace.slices.end[rows])
    overlap = np.minimum(ends, end) - np.maximum(starts, begin)
    return float(overlap[overlap > 0].sum()) / max(1, end - begin)
