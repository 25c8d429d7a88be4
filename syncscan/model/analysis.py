"""The analysis of one trace: the value that every report renders."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from syncscan.model.finding import Finding
from syncscan.model.habit import Habit
from syncscan.model.trace import Trace

if TYPE_CHECKING:
    import pandas as pd

    from syncscan.model.projection import Group, Overlap, Pipeline, Projection
    from syncscan.model.schedule import Schedule


class Bound(str, enum.Enum):
    """What a step's time is bound by."""

    DEVICE = "device"
    HOST = "host"
    SYNC = "sync"
    INPUT = "input"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class StepSummary:
    """The measured step, means over the analysed steps in µs, and what bounds it."""

    count: int
    observed_us: float
    """Throughput: host and device both done, in the steady state of many such steps."""
    host_us: float
    """The host's part: the length of the step's span on its thread."""
    wait_us: float
    device_busy_us: float
    device_idle_us: float
    bubble_us: float
    input_us: float
    """Time inside the DataLoader's `__next__` on the step's thread."""
    bound: Bound
    reason: str
    """One sentence: the numbers that `bound` rests on."""
    unprofiled_us: float | None = None
    """The same step without the profiler, where capture timed it or the user gave it."""
    recoverable_us: float | None = None
    recoverable_range_us: tuple[float, float] | None = None
    advice: tuple[str, ...] = ()
    """Sentences that follow from the replay: what to do, or that nothing is to be gained."""


@dataclass(frozen=True, eq=False, repr=False)
class Analysis:
    """Everything syncscan found out about one trace; in a notebook it shows itself as a report.

    `replay` and `show` are put in by `api`: a value can't import the stages that make a projection or a report of it.
    """

    trace: Trace
    step: StepSummary
    findings: tuple[Finding, ...]
    warnings: tuple[str, ...] = ()
    replay: Callable[..., Projection] | None = None
    pipelines: Callable[..., Pipeline] | None = None
    schedules: Callable[..., Schedule | None] | None = None
    groups: tuple[Group, ...] = ()
    """Findings worth removing together, the best saving a change first."""
    overlaps: tuple[Overlap, ...] = ()
    """How far the device's streams overlapped; empty with one stream."""
    habits: tuple[Habit, ...] = ()
    """What else costs the step time, or spoils its timing, the largest gain first."""
    show: Callable[[Analysis], dict[str, str]] | None = None

    def __repr__(self) -> str:
        bound = f"bound: {self.step.bound.value}"
        return f"<Analysis of {self.trace.info.path!r}: {len(self.findings)} findings, {bound}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """What IPython shows: MIME type → text."""
        return self.show(self) if self.show else {"text/plain": repr(self)}

    def finding(self, id: str) -> Finding:
        """The finding with this id; KeyError if there is none."""
        for f in self.findings:
            if f.id == id:
                return f
        raise KeyError(id)

    def whatif(self, *remove: str, **options: Any) -> Projection:
        """The step without the findings that these selectors name.

        Args:
            remove: selectors, each `all`, `scope:GLOB`, `rule:ID`, `op:GLOB` or `id:ID`.
            options: passed on to the replay: `step_ms` (float), the unprofiled step's time in ms.

        Raises:
            RuntimeError: this analysis was made without a replay.
        """
        if self.replay is None:
            raise RuntimeError("this analysis was made without what-if; use syncscan.analyze(path)")
        return self.replay(self, remove, **options)

    def pipeline(self, scope: str, beside: str = "", **options: Any) -> Pipeline:
        """An upper bound on what running a scope on a stream of its own, a step ahead, would save.

        Args:
            scope: glob of the scope that would run ahead.
            beside: glob of the only scope that it would run beside; by default all the rest of the step.
            options: passed on to the replay: `step_ms` (float), the unprofiled step's time in ms.

        Raises:
            RuntimeError: this analysis was made without a replay.
        """
        if self.pipelines is None:
            raise RuntimeError("this analysis was made without what-if; use syncscan.analyze(path)")
        return self.pipelines(self, scope, beside, **options)

    def to_frame(self) -> pd.DataFrame:
        """The findings as a tidy pandas frame, one row each; times are float64 µs a step (columns: see README)."""
        import pandas as pd

        from syncscan.model.rows import COLUMNS, finding_rows

        return pd.DataFrame(finding_rows(self), columns=list(COLUMNS))
