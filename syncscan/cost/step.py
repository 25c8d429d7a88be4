"""Measure the step's time and its parts; what bounds the step is decided by the replay."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
from msgspec.structs import replace

from syncscan.facts.autograd import program_track
from syncscan.facts.device_work import device_times, run_ahead
from syncscan.facts.period import left_out_before, step_intervals, step_period
from syncscan.model.arrays import distinct
from syncscan.model.finding import SyncPoint
from syncscan.model.interval import cover_of, union
from syncscan.model.slice_names import is_loader
from syncscan.model.step import NOT_MEASURED, Bound, DeviceTime, Integrity, StepSummary
from syncscan.model.trace import HOST, NONE, Step, Trace


def times_held(groups: Sequence[Sequence[SyncPoint]]) -> list[int]:
    """Return for each group of sync points how long they blocked at least one thread, in ns.

    Threads of a server wait side by side: the sum of their waits could be longer than the step.
    """
    group = np.repeat(np.arange(len(groups)), list(map(len, groups)))
    points = list(chain.from_iterable(groups))
    begins = np.array([o.ts for o in points], np.int64)
    waits = np.maximum(np.array([o.wait_ns for o in points], np.int64), 0)
    held = np.zeros(len(groups), np.int64)
    np.add.at(held, group, waits)
    order = np.lexsort((begins, group))
    group, begins, ends = group[order], begins[order], (begins + waits)[order]
    at_once = (group[1:] == group[:-1]) & (begins[1:] < ends[:-1])
    for number in distinct(group[1:][at_once]).tolist():  # few: most waits are of one thread
        own = slice(*np.searchsorted(group, [number, number + 1]).tolist())
        starts, stops = union(begins[own], ends[own])
        held[number] = (stops - starts).sum()
    times: list[int] = held.tolist()
    return times


def steps_of(trace: Trace) -> tuple[Step, ...]:
    """Return the steps to average over: those of the thread that marks most, or the whole trace as one step."""
    if trace.steps:
        return trace.main_steps
    return tuple(Step(0, NONE, *interval) for interval in step_intervals(trace))


def step_summary(
    trace: Trace, occurrences: Sequence[SyncPoint], integrity: Integrity, processes: tuple[str, ...] = ()
) -> StepSummary:
    """Measure the step, as means over the analyzed steps.

    A step's time is throughput, with host and device done: the longer of the host's period (from one step's begin to
    the next) and the device's (from one step's first or last work to the next step's). It is never less than the
    device's busy time, since pipelined steps overlap on the device.
    """
    steps = steps_of(trace)
    if trace.info.capture.pretended:
        return replace(NOT_MEASURED, count=len(trace.main_steps), reason=integrity.reason(), waits_withheld=True)
    unintended = [o for o in occurrences if not o.diagnosis.intended]
    inside = [(step.ts, step.end) for step in steps]
    devices = device_times(trace, inside)
    busy, communication = (devices[0].busy_us, devices[0].communication_us) if devices else (0.0, 0.0)
    observed = max(step_period(trace) / 1e3, busy + communication)
    idle = max(0.0, observed - busy - communication)
    count = max(1, len(steps))
    before = sum(end - begin for _, begin, end in left_out_before(trace)) / count / 1e3
    return StepSummary(
        count=len(steps),
        observed_us=observed,
        host_us=max(0.0, float(np.mean([s.end - s.ts for s in steps])) / 1e3 - before) if steps else 0.0,
        wait_us=max(0.0, times_held([unintended])[0] / count / 1e3 - before),
        device_busy_us=busy,
        device_idle_us=idle,
        bubble_us=min(_bubbles(unintended, devices) / count / 1e3, idle),
        input_us=_input(trace, steps) / count / 1e3,
        bound=Bound.UNKNOWN,
        reason=integrity.reason(),
        waits_withheld=not integrity.waits,
        communication_us=communication,
        unprofiled_us=trace.info.capture.unprofiled_step_us,
        run_ahead=run_ahead(trace, inside, devices[0].device) if devices and integrity.waits else None,
        devices=devices,
        processes=processes,
    )


def _bubbles(occurrences: Sequence[SyncPoint], devices: Sequence[DeviceTime]) -> int:
    """Return the idle time of the busiest device behind these sync points, in ns; the step's parts are its own."""
    busiest = devices[0].device if devices else NONE
    return sum([o.bubble_ns for o in occurrences if o.device == busiest])


def _input(trace: Trace, steps: Sequence[Step]) -> int:
    """Return the time in the DataLoader's `__next__` on the steps' threads (without steps, on the program's), in ns."""
    s, rows = trace.slices, trace.where(is_loader, *HOST)
    if not len(rows):
        return 0
    calls = trace.device_calls[trace.device_calls != NONE]
    unmarked = program_track(trace, s.track[calls].astype(np.int64))
    tracks = {unmarked if step.track == NONE else step.track for step in steps}
    rows = rows[np.isin(s.track[rows], list(tracks))]
    inside = cover_of([(step.ts, step.end) for step in steps]).holds(s.ts[rows])
    return int(s.dur[rows[inside]].sum())
