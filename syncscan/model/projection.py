"""A replay's prediction: the step without chosen sync points, one step in detail, and the changes worth making."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec
import numpy as np

from syncscan.model.arrays import Int64
from syncscan.model.finding import Confidence
from syncscan.model.habit import Basis, Change
from syncscan.model.step import Bound


class Projection(msgspec.Struct, frozen=True):
    """The predicted step without the findings in `removed`; all times in µs per step.

    `baseline_us` is the replayed step with nothing removed, `observed_us` the step time according to the trace (or
    `--step-ms`). `device_limit_us` is the device's own work, which the profiler doesn't lengthen: it stays as in the
    trace where an estimate of profiler overhead leaves the other times in proportion to the profiled step.
    """

    removed: tuple[str, ...]
    observed_us: float
    baseline_us: float
    predicted_us: float
    range_us: tuple[float, float]
    bound_after: Bound
    host_limit_us: float
    device_limit_us: float
    device_share: float = 1.0
    """Fraction of the predicted step in which the device is busy."""
    notes: tuple[str, ...] = ()
    profiled_us: float = 0.0
    """Step time in the trace, under the profiler."""
    calibrated: bool = False
    """Whether the unprofiled step's time is known; else all times are in proportion to the profiled step."""
    host_scale: float = 1.0
    """Fraction of the host's own time in the trace that isn't profiler overhead."""
    launches: str = "eager"
    """How the step is launched: `eager`, `compile`, `reduce-overhead` or `graph`."""
    waits_us: float | None = None
    """The predicted step if only the waits went; given where the ops go along that the fixes replace."""
    provided: str = ""
    """Obstacles to launching it so, a sentence; empty without any."""

    @property
    def saving_us(self) -> float:
        """Predicted saving, µs."""
        return self.baseline_us - self.predicted_us

    @property
    def saving_range_us(self) -> tuple[float, float]:
        """The least and the most that the step may become shorter, µs."""
        low, high = self.range_us
        return max(0.0, self.baseline_us - high), max(0.0, self.baseline_us - low)

    @property
    def speedup(self) -> float:
        """`baseline_us / predicted_us`."""
        return self.baseline_us / self.predicted_us if self.predicted_us else 1.0


class RemovalGroup(msgspec.Struct, frozen=True):
    """Findings worth removing together, in order: their saving on top of the groups before.

    `alone_us` is the largest saving of any single one; all times in µs per step.
    """

    ids: tuple[str, ...]
    saving_us: float
    alone_us: float
    after_us: float
    """The step without this group and those before it."""


class Blocked(msgspec.Struct, frozen=True):
    """A time in which the step's own thread would be blocked: at a sync that stays, or by a full launch queue."""

    finding: int
    """Number of the finding that waits; -1 for a full queue and for a wait that can't be removed."""
    recorded: int
    """When the recorded wait began, ns on the trace's clock; -1 for a full queue."""
    begin: int
    end: int
    """Predicted, ns on the trace's clock."""


class Schedule(msgspec.Struct, frozen=True, eq=False):
    """One recorded step as it would run without some findings; predicted, int64 ns on the trace's clock.

    The step starts at its recorded begin and is in proportion to the recorded step: it includes the same share of
    profiler overhead.
    """

    begin: int
    end: int
    """End of the recorded step: the begin of the next."""
    replayed_end: int
    rows: Int64
    """Rows of the device work launched in the step."""
    start: Int64
    """When each of `rows` would start; work that a host far ahead leaves to a later step is placed where the previous
    step's work does the same."""
    dur: Int64
    """0 for work that isn't done any more, as a compile fuses it into other work."""
    tracks: tuple[int, ...]
    """Host threads of the step: its own and those it hands work to."""
    host_from: Int64
    """Recorded times on those threads, ascending."""
    host_to: Int64
    """Replayed times for them, ascending."""
    host_end: int
    """When that step's own thread has done its part; before `replayed_end` where it runs ahead of the device."""
    blocked: tuple[Blocked, ...] = ()
    """When that thread would be blocked, in time order."""
    unplaced: int = 0
    """How long, ns, of the step's end belongs elsewhere in the step, at places that aren't known."""

    def host(self, ts: Int64) -> Int64:
        """Map recorded times on the step's threads to replayed ones, by linear interpolation."""
        out: Int64 = np.rint(np.interp(ts, self.host_from, self.host_to)).astype(np.int64)
        return out


class StepState(msgspec.Struct, frozen=True, eq=False):
    """The predicted time of the step after some fixes, µs per step."""

    us: float
    range_us: tuple[float, float]
    schedule: Schedule | None = None
    """One of its steps, drawn launch by launch; None where nothing was launched, or it wasn't asked for."""


class Projects(Protocol):
    """Interface of the stage that replays an analysis's step; arguments as in `Analysis`."""

    @property
    def replayable(self) -> bool:
        """Return whether there is anything to replay."""
        ...

    @property
    def projectable(self) -> bool:
        """Return whether the replay takes the step's time, so that its projections tell anything."""
        ...

    def whatif(
        self, selectors: Sequence[str], *, step_ms: float | None, keep_timing: bool, launches: str | None, fix: bool
    ) -> Projection: ...

    def schedule(
        self, selectors: Sequence[str], *, at: int | None, step_ms: float | None, launches: str | None
    ) -> Schedule | None: ...

    def state(self, findings: Sequence[str], changes: Sequence[Change]) -> StepState | None:
        """Return the step without these findings, by id, and with these changes; None where nothing can be replayed.

        `changes` has the likely change of each habit that is dropped.
        """
        ...

    def after(self, findings: Sequence[str], changes: Sequence[Change], *, at: int | None) -> StepState | None:
        """Return the same with one of its steps, drawn launch by launch."""
        ...


class Remedy(msgspec.Struct, frozen=True, kw_only=True):
    """Syncs to remove together, or one habit to drop; times in µs per step."""

    findings: tuple[str, ...] = ()
    """Ids of the syncs; empty for a habit."""
    habit: str = ""
    """The habit's id; empty for syncs."""
    launches: str = ""
    """How the step launches too, as of `State`; empty where that stays."""
    change: Change = Change()
    """The likely change of the step besides its syncs: by dropping the habit, or by this way to launch."""
    what: str
    """The change in a few words, from the rule."""
    alone_us: float
    """Gain if nothing else is changed."""
    range_us: tuple[float, float]
    """Range of that gain."""
    after_us: float | None
    """Gain after all entries above it in the list; None for upper bounds and samples, which aren't replayed."""
    basis: Basis
    confidence: Confidence
