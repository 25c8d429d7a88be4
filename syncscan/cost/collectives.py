"""List a trace's collectives with when the rank arrived at each and what it had done by then."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from syncscan.facts.device_work import DeviceWork, communicating
from syncscan.model.arrays import Int64
from syncscan.model.finding import Finding
from syncscan.model.interval import Interval
from syncscan.model.rank import RankCollective
from syncscan.model.slice_names import is_loader
from syncscan.model.trace import NONE, Trace

_KIND = re.compile(r"(?:nccl|rccl)\w*?Kernel_([A-Za-z]+)|^\W*(\w+)")
"""`ncclDevKernel_AllReduce_Sum_f32_RING_LL(…)` → AllReduce; of other libraries, the whole kernel name."""


def collectives_of(
    trace: Trace, findings: Sequence[Finding], steps: Sequence[Interval]
) -> tuple[tuple[RankCollective, ...], tuple[str, ...], list[int]]:
    """Return the collectives launched in these steps, in that order, the process groups, and the kernels' rows.

    Collectives refer to the rank's findings by index.
    """
    s, rows = trace.slices, trace.device_rows
    rows = rows[communicating(trace)]
    rows = rows[trace.calls_of(rows) != NONE]  # without a call, it was launched before recording began, so in no step
    launched = s.ts[trace.calls_of(rows)]
    step = np.searchsorted([begin for begin, _ in steps], launched, side="right") - 1
    inside = np.flatnonzero((step >= 0) & (launched < np.array([end for _, end in steps], np.int64)[step]))
    inside = inside[np.lexsort((s.ts[rows[inside]], launched[inside]))]
    numbers, group_of = np.unique(s.group[rows[inside]], return_inverse=True)
    named = [int(number) for number in numbers if number != NONE]
    place = {number: k for k, number in enumerate(named)} | {NONE: NONE}
    past = _Past(trace, findings, steps[0].begin if steps else 0)
    arrivals = tuple(
        RankCollective(
            int(step[at]), place[int(numbers[group])], int(s.sequence[row]), kind_of(trace.name(row)),
            int(s.stream[row]), int(launched[at]), int(s.ts[row]), int(s.end[row]), *past.until(row, int(launched[at])),
        )
        for at, row, group in zip(inside.tolist(), rows[inside].tolist(), group_of.reshape(-1).tolist(), strict=True)
    )  # fmt: skip
    return arrivals, tuple(trace.strings[number] for number in named), rows[inside].tolist()


def kind_of(kernel: str) -> str:
    match = _KIND.search(kernel)
    return (match[1] or match[2]) if match else kernel


class _Past:
    """Measures what a rank's device and the thread of its steps had done since the first step began."""

    def __init__(self, trace: Trace, findings: Sequence[Finding], begin: int) -> None:
        self.trace, self.begin = trace, begin
        self.work = DeviceWork(trace, ~communicating(trace))
        s, tracks = trace.slices, {step.track for step in trace.main_steps}
        loads = np.flatnonzero(trace.named(is_loader))
        loads = loads[np.isin(s.track[loads], list(tracks))] if tracks else loads
        self.loads: tuple[Int64, Int64] = s.ts[loads], s.end[loads]
        held = [(o.ts, o.ts + o.wait_ns) for f in findings for o in f.occurrences if o.ts >= begin]
        self.waits = np.array(held, np.int64).reshape(-1, 2).T
        self.bubbles = [
            (o.device, o.released, n, o.bubble_ns)
            for n, f in enumerate(findings)
            for o in f.occurrences
            if o.bubble_ns and not f.intended and o.released >= begin
        ]

    def until(self, row: int, launched: int) -> tuple[int, int, int, int, tuple[tuple[int, int], ...]]:
        """Return the fields of a collective from `worked` on."""
        s = self.trace.slices
        begin, device = int(s.ts[row]), int(s.device[row])
        starts, ends = self.loads
        loaded = np.maximum(np.minimum(ends, launched) - np.maximum(starts, self.begin), 0).sum()
        waited = np.maximum(np.minimum(self.waits[1], launched) - self.waits[0], 0).sum()
        idle: dict[int, int] = {}
        for where, released, finding, length in self.bubbles:
            if where == device and released < begin:
                idle[finding] = idle.get(finding, 0) + length
        work = self.work.of(device)
        beside = work.busy.between(begin, int(s.end[row]))
        return work.busy.between(self.begin, begin), int(loaded), int(waited), beside, tuple(sorted(idle.items()))
