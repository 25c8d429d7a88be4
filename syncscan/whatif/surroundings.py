"""Find influences from outside of a step, its input and other ranks, and the parts of the step that they take."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from syncscan.facts.loader_samples import loader_share
from syncscan.model.finding import Finding
from syncscan.model.slice_names import is_loader_with_workers
from syncscan.model.step import BOUND_FROM, StepSummary
from syncscan.model.trace import Category, Trace
from syncscan.whatif.replay import Replay

PACED = 0.05
"""Least part of its time that a step must wait for the DataLoader's workers to be paced by them."""
MOSTLY = 0.5
"""Part of a finding's waits that collectives alone must fill for it to wait behind collectives; and of a step that
samples must find in a DataLoader for it to be what bounds steps that no replay explains."""


class Surroundings(msgspec.Struct, frozen=True):
    measured: StepSummary
    """The step as recorded."""
    waits_for_loader: bool = False
    """Whether the DataLoader's workers set the step's pace, independent of its syncs."""
    sampled_input: float = 0.0
    """Part of the step in which it waits for a DataLoader, by samples without the profiler; 0 where unknown."""
    behind: frozenset[int] = frozenset()
    """Numbers of the findings that mostly wait behind exposed collectives."""


def surroundings_of(trace: Trace, findings: Sequence[Finding], measured: StepSummary) -> Surroundings:
    waits, sampled = loader_waits(trace), loader_share(trace)
    paced = waits > PACED * measured.observed_us * 1e3 or bool(waits and sampled > NOTABLE)
    behind = set[int]()
    for number, finding in enumerate(findings):
        communicated = sum([o.communication_ns for o in finding.occurrences])
        if communicated > max(0, MOSTLY * sum([o.wait_ns for o in finding.occurrences])):
            behind.add(number)
    return Surroundings(measured, paced, sampled, frozenset(behind))


NOTABLE = 0.1
"""Least part of a step from which input, communication or syncs bound it."""


class Shares(msgspec.Struct, frozen=True):
    """Parts of a step: how the busiest device spends it, and how long the host waits for its input."""

    device: float = 0.0
    communication: float = 0.0
    """Part in exposed collectives."""
    input: float = 0.0

    @property
    def waits_for_ranks(self) -> bool:
        """Whether other ranks or the network set the step's pace.

        They do if collectives fill what the device's work leaves of the step, or are its largest part: larger than that
        work, and than the time in which the device is idle, for which the step's own host or input is to blame.
        """
        if self.device >= BOUND_FROM or self.communication < NOTABLE:
            return False
        used = self.device + self.communication
        return used >= BOUND_FROM or self.communication >= max(self.device, 1.0 - used)


def shares_of(replay: Replay, period_ns: float, surroundings: Surroundings) -> Shares:
    """Return how a replayed step's time is spent; its input takes what samples say, if the recorded steps waited less.

    A recorded step that waited longer is replayed so, and its other parts are parts of that.
    """
    if not period_ns:
        return Shares()
    measured = surroundings.measured
    device = replay.stretch * 1e3 / period_ns
    return Shares(
        device=min(1.0, measured.device_busy_us * device),
        communication=min(1.0, measured.communication_us * device),
        input=min(1.0, max(surroundings.sampled_input, measured.input_us * replay.scale * 1e3 / period_ns)),
    )


def in_percent(share: float) -> str:
    """Return a share in whole percent: `3%`; `less than 1%` instead of `0%`."""
    return f"{share:.0%}" if share >= 0.005 else "less than 1%"


def loader_waits(trace: Trace) -> float:
    """Return the mean time per step in `__next__` of a DataLoader with workers on the step's thread, ns."""
    if not trace.steps:
        return 0.0
    s, steps = trace.slices, trace.main_steps
    rows = trace.where(is_loader_with_workers, Category.ANNOTATION, Category.CPU_OP)
    rows = rows[(s.track[rows] == steps[0].track) & (s.ts[rows] >= steps[0].ts) & (s.ts[rows] < steps[-1].end)]
    return float(s.dur[rows].sum()) / len(steps)
