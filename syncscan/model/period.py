"""From a trace's steps and device work to the time of one step: the throughput of many such steps, as observed."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from syncscan.model.arrays import Int64
from syncscan.model.interval import Interval, union
from syncscan.model.trace import NONE, Trace

BEHIND = 0.05
"""The device sets the pace when it falls behind the host by more than this part of a step with every step."""
FULL = 0.95
"""It sets the pace too when it works more than this part of the time from one step's end to the next one's."""


def step_intervals(trace: Trace) -> list[Interval]:
    """Each step from its begin to the begin of the next, in ns.

    The last, whose next isn't known, gets the usual pause behind it; so do steps whose next wasn't recorded. Where
    several threads have steps, those of the thread with the most count. A trace without steps is one interval; one
    without slices has none.
    """
    s = trace.slices
    if not trace.steps:
        return [Interval(int(s.ts.min()), int(s.end.max()))] if len(s) else []
    steps = trace.main_steps
    follows = [b.number == a.number + 1 for a, b in itertools.pairwise(steps)]
    pauses = [b.ts - a.end for (a, b), next_ in zip(itertools.pairwise(steps), follows, strict=True) if next_]
    pause = max(int(np.median(pauses)), 0) if pauses else 0
    ends = [b.ts if next_ else a.end + pause for (a, b), next_ in zip(itertools.pairwise(steps), follows, strict=True)]
    return [Interval(step.ts, end) for step, end in zip(steps, [*ends, steps[-1].end + pause], strict=True)]


def step_period(trace: Trace) -> float:
    """The observed time of a step in ns: the host's mean one, or the device's pace where the device falls behind.

    A host that doesn't wait for the device runs ahead of it, so that its own steps look short (the launch queue takes
    the rest); then the time from one step's last device work to the next one's tells.
    """
    steps = step_intervals(trace)
    if not steps:
        return 0.0
    host = float(np.mean([b - a for a, b in steps]))
    done = _done(trace, steps)
    if len(done) < 2:
        alone = done[0] - steps[0][0] if done and len(steps) == 1 and trace.steps else 0.0
        return max(host, alone)
    count = len(done) - 1
    device = (done[-1] - done[0]) / count
    lag = [end - b for end, (_, b) in zip(done, steps, strict=True)]
    falls_behind = lag[-1] - lag[0] > BEHIND * host * count
    if falls_behind or _busy(trace, done[0], done[-1]) > FULL:
        host = max(host, device)
    return max(host, busy_time(trace, steps) / len(steps))


def busy_time(trace: Trace, steps: Sequence[Interval]) -> float:
    """How long any stream works on what these intervals launched, in ns; time that streams share counts once."""
    rows = work_of_steps(trace, steps)
    starts, ends = union(trace.slices.ts[rows], trace.slices.end[rows])
    return float((ends - starts).sum())


def work_of_steps(trace: Trace, steps: Sequence[Interval]) -> Int64:
    """Rows of the device work that these intervals launched, in order of its start."""
    mine = np.zeros(len(trace.device_rows), np.bool_)
    for begin, end in steps:
        mine[trace.launched_within(begin, end)] = True
    return trace.device_rows[mine]


def _done(trace: Trace, steps: list[Interval]) -> list[int]:
    """When the device work launched in each interval was done; empty if one launched none."""
    done = []
    for a, b in steps:
        mine = trace.device_rows[trace.launched_within(a, b)]
        mine = mine[trace.slices.correlation[mine] != NONE]
        if not len(mine):
            return []
        done.append(int(trace.slices.end[mine].max()))
    return done


def _busy(trace: Trace, begin: int, end: int) -> float:
    """The part of this time in which the device works."""
    rows = trace.device_rows
    starts, ends = union(trace.slices.ts[rows], trace.slices.end[rows])
    overlap = np.minimum(ends, end) - np.maximum(starts, begin)
    return float(overlap[overlap > 0].sum()) / max(1, end - begin)
