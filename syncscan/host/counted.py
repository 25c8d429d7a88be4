"""Count what the threads of the steps spend host time on: ops, kinds of calls, waits, and Python between them.

`host_rows` defines which slices count, and when a moment counts on which thread. A slice counts only for the time in
no slice inside it. A call that waited counts as waiting for its sync point's wait, a launch for as long as a full
queue blocked it; the rest of the call counts as a call.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import chain
from typing import Any

import msgspec
import numpy as np

from syncscan.facts.period import left_out_before, step_intervals
from syncscan.facts.profiler_work import Overlaps, profilers_own, profilers_own_within
from syncscan.facts.slow_launches import held_by_queue
from syncscan.host.rows import HostRows, host_rows
from syncscan.host.scope_paths import ScopePaths
from syncscan.model.arrays import Bool, Int8, Int16, Int32, Int64, grouped, looked_up, numbered_pairs, summed
from syncscan.model.finding import Finding
from syncscan.model.host import CountedHost, DearOp
from syncscan.model.interval import ThreadInterval, cover_of
from syncscan.model.runtime_calls import asks, is_graph_launch, is_launch, is_memcpy, is_query, manages_memory
from syncscan.model.step import StepSummary
from syncscan.model.trace import CALLS, NONE, Category, Trace

DEAREST = 20
"""Number of ops listed; a report shows the first of them."""


class _Kind(enum.IntEnum):
    LAUNCH = 0
    ALLOCATION = 1
    QUERY = 2
    OTHER = 3


def counted_host(trace: Trace, step: StepSummary, findings: Iterable[Finding]) -> CountedHost | None:
    """Return what the threads of the steps do, in mean µs per step.

    With a known scale (`step.host_scale`), all times but waits are the recorded ones on that scale, and waits are the
    rest of the undisturbed step. Without one, times are as recorded and add up to the host's recorded step.

    None without steps, ops and calls, or device work (ops then work themselves), and if waits can't be measured.
    """
    if not trace.main_steps or step.waits_withheld or not len(trace.device_rows):
        return None
    counted = _HostSlices(trace, host_rows(trace), findings)
    return counted.summary(step) if len(counted.ops) or len(counted.calls) else None


class _Scale(msgspec.Struct, frozen=True):
    """Turns ns summed over all steps into µs per step, on the scale of the undisturbed step."""

    steps: int
    factor: float

    def us(self, ns: float) -> float:
        return float(ns) * self.factor / self.steps / 1e3


class _HostSlices:
    def __init__(self, trace: Trace, host: HostRows, findings: Iterable[Finding]) -> None:
        self.trace, self.host = trace, host
        self.ops = _counted_rows(trace, host, Category.CPU_OP)
        self.calls = np.concatenate([_counted_rows(trace, host, category) for category in CALLS])
        self.os_calls = _counted_rows(trace, host, Category.OS_CALL)
        self.kinds = _kinds(trace, self.calls)
        waiting, waited = _waits(trace, host, findings, self.calls[self.kinds == _Kind.LAUNCH])
        self.itself = host.itself.copy()
        """Host time of each slice itself, without slices inside it and without waits, ns."""
        self.itself[waiting] -= waited
        self.waits = int(waited.sum()) + _between_queries(trace, host, findings)
        self._overlaps = {
            track: Overlaps(trace, self.calls[at]) for track, at in grouped(trace.slices.track[self.calls])
        }
        self.steps_ns = host.steps_ns - self._subtract_profilers()
        """Length of all steps together, without the profiler's own work in them and waits for earlier launches, ns."""
        for interval in left_out_before(trace):
            self.waits = max(0, self.waits - self._subtract(interval))
            self.steps_ns -= interval.end - interval.begin

    def _subtract_profilers(self) -> int:
        """Subtract the profiler's work from the calls around it; return its time on the thread of the steps, ns."""
        inside = cover_of(step_intervals(self.trace))
        for interval in profilers_own(self.trace):
            if inside.holds(np.array([interval.begin])).item():
                self._subtract(interval)
        return sum(profilers_own_within(self.trace, step_intervals(self.trace)))

    def _subtract(self, interval: ThreadInterval) -> int:
        """Subtract an interval from the own time of the call it mostly lies in; return what that has too little, ns.

        So much of the call counts as a wait already.
        """
        track, begin, end = interval
        row, covered = self._overlaps[track].longest(begin, end) if track in self._overlaps else (NONE, 0)
        if not covered:
            return 0
        own: int = self.itself.item(row)
        self.itself[row] = max(0, own - covered)
        return max(0, covered - own)

    def summary(self, step: StepSummary) -> CountedHost:
        host_scale, launches = step.host_scale, self.launches
        scale = _Scale(len(self.trace.main_steps), 1.0 if host_scale is None else host_scale)
        in_ops, in_os = (int(self.itself.take(rows).sum()) for rows in (self.ops, self.os_calls))
        in_calls = summed(self.itself.take(self.calls), self.kinds, len(_Kind)).tolist()
        own_ns = self.steps_ns - self.waits
        times = {
            "dispatch_us": scale.us(in_ops),
            "launches_us": scale.us(in_calls[_Kind.LAUNCH]),
            "allocations_us": scale.us(in_calls[_Kind.ALLOCATION]),
            "queries_us": scale.us(in_calls[_Kind.QUERY]),
            "other_calls_us": scale.us(in_calls[_Kind.OTHER]),
            "os_calls_us": scale.us(in_os),
            "waits_us": self._waits_us(step, scale, own_ns),
            "input_us": scale.us(self.host.input_ns),
            "python_us": scale.us(max(0.0, own_ns - self.host.input_ns - in_ops - in_os - sum(in_calls))),
        }
        return CountedHost(
            **times,
            step_us=sum(times.values()),
            ops_per_step=len(self.ops_in_steps) / scale.steps,
            launches_per_step=len(launches) / scale.steps,
            kernels_per_launch=_work_of(self.trace, launches) / len(launches) if len(launches) else 0.0,
            scaled=host_scale is not None,
            dearest=self.dearest(scale),
        )

    def _waits_us(self, step: StepSummary, scale: _Scale, own_ns: int) -> float:
        """Return the recorded waits, or what the host's own time leaves of the undisturbed step."""
        if step.host_scale is None or step.unprofiled_us is None:
            return scale.us(self.waits)
        return max(0.0, step.unprofiled_us - scale.us(own_ns))

    @property
    def launches(self) -> Int64:
        """Rows of the calls in the steps that launched device work, or would have."""
        launches: Int64 = self.calls[(self.kinds == _Kind.LAUNCH) & self.host.in_steps.take(self.calls)]
        return launches

    @cached_property
    def ops_in_steps(self) -> Int64:
        """Rows of the ops in the steps, ascending."""
        in_steps: Int64 = self.ops[self.host.in_steps.take(self.ops)]
        return in_steps

    def dearest(self, scale: _Scale) -> tuple[DearOp, ...]:
        paths, os_calls = ScopePaths(self.trace), self.os_calls[self.host.in_steps.take(self.os_calls)]
        rows = np.sort(np.concatenate([self.ops_in_steps, os_calls]), kind="stable")
        path = paths.of(rows, self.host.tops)
        pairs, which = numbered_pairs(self.trace.slices.name.take(rows), path)
        itself = summed(self.itself.take(rows), which, len(pairs))
        names = {k: self.trace.strings[pairs[k, 0]] for k in _largest(itself)}
        largest = sorted(names, key=lambda k: (-itself[k], names[k]))[:DEAREST]
        count, totals = self._times_of(rows, which, largest, len(pairs))
        return tuple(
            DearOp(
                op=names[k],
                scope=paths.names(int(pairs[k, 1])),
                per_step=count[n] / scale.steps,
                us=scale.us(totals[n]),
                self_us=scale.us(itself[k]),
            )
            for n, k in enumerate(largest)
        )

    def _times_of(self, rows: Int64, which: Int32, listed: Sequence[int], groups: int) -> tuple[list[int], list[float]]:
        """Return the number of ops of these groups, and their time including slices inside them, ns.

        An op inside an op of its own group isn't counted twice.
        """
        number = np.full(groups, NONE, np.int16)
        number[listed] = np.arange(len(listed))
        group: Int16 = looked_up(number, which)
        own_rows = np.flatnonzero(group != NONE)
        group, rows = group[own_rows], rows[own_rows]
        count: list[int] = np.bincount(group, minlength=len(listed)).tolist()
        own = _outermost_of_group(self.host, rows, group)
        took: list[float] = np.bincount(group[own], self.host.in_all(rows[own], self.itself), len(listed)).tolist()
        return count, took


def _largest(times: Any) -> list[int]:
    """Return the indices of the DEAREST largest times, and of those equal to the smallest of them; ascending."""
    least = np.partition(times, -DEAREST)[-DEAREST] if len(times) > DEAREST else 0.0
    largest: list[int] = np.flatnonzero(times >= least).tolist()
    return largest


def _counted_rows(trace: Trace, host: HostRows, category: Category) -> Int64:
    rows, _ = trace.rows_of(category)
    counted: Int64 = rows[host.counted.take(rows)]
    return counted


def _kinds(trace: Trace, calls: Int64) -> Int8:
    of_name = np.zeros(len(trace.strings), np.int8)
    for number in {*trace.names_of(Category.RUNTIME), *trace.names_of(Category.DRIVER)}:
        of_name[number] = _kind_of(trace.strings[number])
    kinds: Int8 = of_name.take(trace.slices.name.take(calls))
    rest = np.flatnonzero(kinds != _Kind.LAUNCH)
    kinds[rest[trace.started_work(calls[rest])]] = _Kind.LAUNCH
    return kinds


def _kind_of(call: str) -> _Kind:
    """Return the kind of a call by its name, unless it launched recorded device work."""
    if is_launch(call) or is_graph_launch(call) or is_memcpy(call):
        return _Kind.LAUNCH
    if manages_memory(call):
        return _Kind.ALLOCATION
    return _Kind.QUERY if asks(call) else _Kind.OTHER


def _waits(trace: Trace, host: HostRows, findings: Iterable[Finding], launches: Int64) -> tuple[Int64, Int64]:
    """Return the rows of calls that waited for the device or were blocked by a full queue, and how long, ns."""
    queued = held_by_queue(trace, launches, trace.slices.ts[launches], trace.slices.end[launches])
    held = np.flatnonzero(queued)
    calls, waited = _waited(trace, findings)
    counted = np.flatnonzero(host.counted[calls])
    rows, which = np.unique(np.concatenate([launches[held], calls[counted]]), return_inverse=True)
    lengths = np.zeros(len(rows), np.int64)
    lengths[which[: len(held)]] = queued[held]
    np.add.at(lengths, which[len(held) :], waited[counted])
    return rows, np.minimum(lengths, host.itself[rows])


def _waited(trace: Trace, findings: Iterable[Finding]) -> tuple[Int64, Int64]:
    """Return the calls of sync points and how long they waited, ns; the last calls of a point wait first."""
    occurrences = [o for f in findings for o in f.occurrences]
    calls_of = [o.calls for o in occurrences]
    calls, counts = np.array(list(chain.from_iterable(calls_of)), np.int64), list(map(len, calls_of))
    lengths = trace.slices.dur.take(calls)
    until = np.append(0, np.cumsum(lengths))  # the length of all calls before each one, and of all calls at the end
    behind = np.repeat(until[np.cumsum(counts, dtype=np.int64)], counts) - until[1:]
    left = np.repeat(np.array([o.wait_ns for o in occurrences], np.int64), counts) - behind
    return calls, np.minimum(np.maximum(left, 0), lengths)


def _between_queries(trace: Trace, host: HostRows, findings: Iterable[Finding]) -> int:
    """Return how long the threads of the steps waited between the queries of polling loops, ns."""
    loops = [o for f in findings for o in f.occurrences if is_query(o.api) and host.counted[o.calls[0]]]
    between = [o.wait_ns - int(trace.slices.dur[list(o.calls)].sum()) for o in loops]
    return sum(max(0, ns) for ns in between)


def _work_of(trace: Trace, launches: Int64) -> int:
    counts = np.zeros(len(trace.slices) + 1, np.bool_)  # NONE is -1 and so indexes the last place
    counts[launches] = True
    return int(np.count_nonzero(counts.take(trace.device_calls)))


def _outermost_of_group(host: HostRows, rows: Int64, group: Int16) -> Bool:
    """Return which of these ascending rows lie in no other row of their group, so that time counts once."""
    begins, ends = host.slices.ts.take(rows), host.slices.end.take(rows)
    outermost = np.ones(len(rows), np.bool_)
    for run in host.threads:
        span = slice(*np.searchsorted(rows, [run.start, run.stop]).tolist())
        groups, begin, end = group[span], begins[span], ends[span]
        holding = groups[:-1][begin[1:] < end[:-1]]  # an op around one of its group is around the next one
        for one in np.flatnonzero(np.bincount(holding)).tolist():
            places = np.flatnonzero(groups == one)
            inner = begin[places[1:]] < np.maximum.accumulate(end[places[:-1]])
            outermost[span.start + places[1:][inner]] = False
    return outermost
