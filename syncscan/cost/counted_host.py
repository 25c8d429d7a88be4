"""From a trace to what its steps' threads spend the host's time on: ops, kinds of calls, waits, Python between them.

What is counted, and when a moment counts on which thread, stands in `host_rows`. Of a slice only the time counts that
is in no slice inside it. A call that waited counts as waiting for as long as its sync point's wait, a launch for as
long as a full queue held it; what is left of them is a call like any other.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from syncscan.cost.host_rows import HostRows, host_rows
from syncscan.cost.scope_paths import ScopePaths
from syncscan.model.arrays import Bool, Int64, numbered_pairs
from syncscan.model.finding import Finding
from syncscan.model.full_queue import held_by_queue
from syncscan.model.host import CountedHost, DearOp
from syncscan.model.interval import Cover, union_of
from syncscan.model.period import step_intervals
from syncscan.model.runtime_calls import asks, is_graph_launch, is_launch, is_memcpy, manages_memory
from syncscan.model.step import StepSummary
from syncscan.model.trace import CALLS, Category, Trace

_TOO_LATE = 2**62
"""ns: sums of times below it can't overflow."""
DEAREST = 20
"""Ops that are told; a report shows the first of them."""


class _Kind(enum.IntEnum):
    """What a host slice is in by itself."""

    PYTHON = 0
    OP = 1
    LAUNCH = 2
    ALLOCATION = 3
    QUERY = 4
    OTHER = 5


def counted_host(trace: Trace, step: StepSummary, findings: Iterable[Finding]) -> CountedHost | None:
    """What the steps' threads do, mean µs a step.

    With a known scale (`step.host_scale`) all times but waits are the recorded ones on that scale, and waits are what
    they leave of the undisturbed step. Without, all are as recorded and add up to the recorded step of the host.

    Args:
        trace: any trace.
        step: measured, with its verdict.
        findings: the syncs, which say which calls waited and for how long.

    Returns:
        None without steps, ops and calls, or device work (ops then work themselves), and where waits can't be measured.
    """
    if not trace.main_steps or step.waits_withheld or not len(trace.device_rows):
        return None
    counted = _Counted(trace, host_rows(trace), findings)
    return counted.summary(step) if (counted.kinds != _Kind.PYTHON).any() else None


@dataclass(frozen=True, slots=True)
class _Scale:
    """Turns summed ns of all steps into µs of one, on the scale of the undisturbed step."""

    steps: int
    factor: float

    def us(self, ns: float) -> float:
        return float(ns) * self.factor / self.steps / 1e3


class _Counted:
    """The columns of one trace's host slices."""

    def __init__(self, trace: Trace, host: HostRows, findings: Iterable[Finding]) -> None:
        self.trace, self.host = trace, host
        category = trace.slices.category[host.rows]
        self.ops: Bool = (category == Category.CPU_OP) & _in_steps(trace, host.rows)
        self.kinds = _kinds(trace, host.rows)
        held = _waited(trace, findings) + _queued(trace, host.rows[self.kinds == _Kind.LAUNCH])
        self.waits = np.minimum(host.itself, held[host.rows])
        self.work = host.itself - self.waits

    def summary(self, step: StepSummary) -> CountedHost:
        """All of it, put on the scale that the step has."""
        known, launches = step.host_scale, self.launches
        scale = _Scale(len(self.trace.main_steps), 1.0 if known is None else known)
        in_slices = np.bincount(self.kinds, self.work, minlength=len(_Kind))[_Kind.OP :]
        own_ns = self.host.steps_ns - int(self.waits.sum())
        ops, launching, allocating, asking, other = (scale.us(ns) for ns in in_slices)
        return CountedHost(
            dispatch_us=ops,
            launches_us=launching,
            allocations_us=allocating,
            queries_us=asking,
            other_calls_us=other,
            waits_us=self._waits_us(step, scale, own_ns),
            input_us=scale.us(self.host.input_ns),
            python_us=scale.us(max(0.0, own_ns - self.host.input_ns - in_slices.sum())),
            ops_per_step=float(self.ops.sum()) / scale.steps,
            launches_per_step=len(launches) / scale.steps,
            kernels_per_launch=_work_of(self.trace, launches) / len(launches) if len(launches) else 0.0,
            scaled=known is not None,
            dearest=self.dearest(scale),
        )

    def _waits_us(self, step: StepSummary, scale: _Scale, own_ns: int) -> float:
        """As recorded, or what the host's own time leaves of the undisturbed step: a faster host waits longer."""
        if step.host_scale is None or step.unprofiled_us is None:
            return scale.us(self.waits.sum())
        return max(0.0, step.unprofiled_us - scale.us(own_ns))

    @property
    def launches(self) -> Int64:
        """Rows of the calls in the steps that gave the device work, or would have."""
        rows = self.host.rows[self.kinds == _Kind.LAUNCH]
        launches: Int64 = rows[_in_steps(self.trace, rows)]
        return launches

    def dearest(self, scale: _Scale) -> tuple[DearOp, ...]:
        """The ops by name and scope, those that take most themselves first."""
        host, paths = self.host, ScopePaths(self.trace)
        places = np.flatnonzero(self.ops)
        rows = host.rows[places]
        path = paths.of(rows, host.outermost[places])
        known, which = numbered_pairs(self.trace.slices.name[rows], path)
        itself = np.bincount(which, self.work[places], minlength=len(known))
        own = _outermost_of_group(self.trace, rows, which)
        in_all = np.bincount(which[own], host.in_all(self.work)[places[own]], minlength=len(known))
        count = np.bincount(which, minlength=len(known))
        names = [self.trace.strings[name] for name in known[:, 0].tolist()]
        order = sorted(range(len(known)), key=lambda k: (-itself[k], names[k]))
        return tuple(
            DearOp(
                op=names[k],
                scope=paths.names(int(known[k, 1])),
                per_step=float(count[k]) / scale.steps,
                us=scale.us(in_all[k]),
                self_us=scale.us(itself[k]),
            )
            for k in order[:DEAREST]
        )


def _kinds(trace: Trace, rows: Int64) -> Int64:
    """What each of these rows is in by itself: a `_Kind`."""
    category = trace.slices.category[rows]
    calls = np.isin(category, CALLS)
    kinds = np.where(category == Category.CPU_OP, _Kind.OP, _Kind.PYTHON).astype(np.int64)
    kinds[calls] = _Kind.OTHER
    for kind, named in ((_Kind.QUERY, asks), (_Kind.ALLOCATION, manages_memory), (_Kind.LAUNCH, _launches)):
        kinds[calls & trace.named(named)[rows]] = kind
    kinds[calls & trace.started_work(rows)] = _Kind.LAUNCH
    return kinds


def _launches(name: str) -> bool:
    return is_launch(name) or is_graph_launch(name) or is_memcpy(name)


def _waited(trace: Trace, findings: Iterable[Finding]) -> Int64:
    """For each row how long it waited for the device, ns: of a sync point's calls the last ones did."""
    waited = np.zeros(len(trace.slices), np.int64)
    for point, cost in ((o.sync, o.cost) for f in findings for o in f.occurrences):
        left = cost.wait_ns
        for call in reversed(point.calls):
            length = min(left, int(trace.slices.dur[call]))
            waited[call] += length
            left -= length
    return waited


def _queued(trace: Trace, launches: Int64) -> Int64:
    """For each row how long a full queue held it, ns."""
    s, held = trace.slices, np.zeros(len(trace.slices), np.int64)
    held[launches] = held_by_queue(trace, launches, s.ts[launches], s.end[launches])
    return held


def _in_steps(trace: Trace, rows: Int64) -> Bool:
    """Which of these begin in a step, or in the pause behind it."""
    steps = union_of(step_intervals(trace))
    begins, ends = (np.array(column, np.int64) for column in zip(*steps, strict=True))
    return Cover(begins, ends).holds(trace.slices.ts[rows])


def _work_of(trace: Trace, launches: Int64) -> int:
    """How many kernels, copies and memsets these calls gave to the device."""
    return int(np.count_nonzero(np.isin(trace.calls_of(trace.device_rows), launches)))


def _outermost_of_group(trace: Trace, rows: Int64, group: Int64) -> Bool:
    """Which of these lie in no other of their group, so that a group's time in all counts once."""
    s = trace.slices
    order = np.argsort(group, kind="stable")  # rows come by time, one track behind the other
    key = group[order] * len(trace.tracks) + s.track[rows[order]]
    turn = np.cumsum(np.concatenate([[0], np.diff(key) != 0]))[: len(order)]
    begins, ends = s.ts[rows[order]], s.end[rows[order]]
    first, span = int(begins.min(initial=0)), int(ends.max(initial=0)) - int(begins.min(initial=0)) + 1
    if span * (len(rows) + 1) >= _TOO_LATE:  # ranks can't overflow, and take a sort
        ranks = np.unique(np.concatenate([begins, ends]), return_inverse=True)[1].reshape(-1)
        begins, ends, first, span = *np.split(ranks, 2), 0, 2 * len(rows)
    begins, ends = begins - first + turn * span, ends - first + turn * span
    reach = np.concatenate([[0], np.maximum.accumulate(ends)])[: len(order)]
    outermost = np.zeros(len(rows), np.bool_)
    outermost[order] = begins >= reach
    return outermost
