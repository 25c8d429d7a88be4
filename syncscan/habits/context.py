"""Facts of a trace that the habits' rules share: rows in the steps, what they launched, when the device was idle."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from syncscan.facts.device_work import DeviceWork
from syncscan.facts.paths import Paths
from syncscan.facts.period import step_intervals
from syncscan.model.arrays import Bool, Int32, Int64, distinct
from syncscan.model.caching import Caching
from syncscan.model.finding import Confidence, Finding, short_id
from syncscan.model.habit import Area, Change, Habit
from syncscan.model.host import SampledHost
from syncscan.model.interval import Cover, Interval, ThreadInterval
from syncscan.model.step import StepSummary
from syncscan.model.trace import NONE, Category, Trace
from syncscan.rules.pages import habit_page

_NO_ROWS = np.zeros(0, np.int64)
NOTABLE = 0.01
"""Least part of a step that is worth reporting."""
HELD = 0.5
"""A step is certainly launch-bound if the device is busy less than this part of its unprofiled time."""
LEAST_NS = 3_000
"""Least host time of an eager launch on any host: dispatch and call (an H200's host needs 5 to 8 µs)."""
LAUNCH_NS = 100_000
"""Most host time of a launch with the Python and dispatch before it; more is something else."""


class Context(Caching, frozen=True):
    """Facts that the rules look at, each computed on first use and cached."""

    trace: Trace
    findings: tuple[Finding, ...]
    step: StepSummary
    sampled: SampledHost | None = None

    @property
    def count(self) -> int:
        return len(self.trace.steps)

    @property
    def period_us(self) -> float:
        """Time of a step in µs: without the profiler if known, else as recorded."""
        return self.step.unprofiled_us or self.step.observed_us

    @property
    def notable_us(self) -> float:
        """Least cost of a step that is worth reporting, in µs."""
        return NOTABLE * self.period_us

    @cached_property
    def steps(self) -> tuple[Interval, ...]:
        """Interval of each step, from its begin to the next one's, ns."""
        return step_intervals(self.trace)

    @cached_property
    def work(self) -> DeviceWork:
        return self.trace.cached(DeviceWork)

    @property
    def paths(self) -> Paths:
        """The chains of host slices, by the row of the innermost."""
        return self.trace.cached(Paths)

    @property
    def host_scale(self) -> float:
        """Factor from recorded host times to those without the profiler; 1 if unknown."""
        return min(1.0, self.period_us / self.step.observed_us) if self.step.observed_us else 1.0

    @cached_property
    def launching_us(self) -> float:
        """Host time of a step's launches, in µs: the distances between them, limited to `LAUNCH_NS` each."""
        launched = self._launched[1][self._launched_inside]
        at = distinct(np.concatenate([launched, [s.ts for s in self.trace.steps]]))
        gaps = np.minimum(np.diff(at), LAUNCH_NS)
        return float(gaps.sum()) / self.count / 1e3 * self.host_scale

    @cached_property
    def launch_bound(self) -> bool:
        """Whether launches bound the step, proven by an unprofiled step time or by their sheer number.

        Recording alone can make a step's host slower than its device. So without an unprofiled time, only as many
        launches count as would delay the device at `LEAST_NS` each.
        """
        unprofiled, busy = self.step.unprofiled_us, self.step.device_busy_us
        if unprofiled is None:
            return busy < HELD * self.launch_count * LEAST_NS / 1e3
        return busy < HELD * unprofiled and self.launching_us > HELD * unprofiled

    @cached_property
    def launch_calls(self) -> Int64:
        """Rows of the calls that launch the steps' work, in time order."""
        callers = self._launched[2][self._launched_inside]
        launches = np.zeros(len(self.trace.slices), np.bool_)
        launches[callers[callers != NONE]] = True
        calls = np.flatnonzero(launches)
        ordered: Int64 = calls[np.argsort(self.trace.slices.ts[calls], kind="stable")]
        return ordered

    @property
    def launch_count(self) -> float:
        """Number of calls that launch the work of a step."""
        return len(self.launch_calls) / self.count

    def rows(self, category: Category, wanted: Callable[[str], Any], *, main: bool = True) -> list[int]:
        """Return rows of this category in the steps with a wanted name, in time order; `main`: of steps' threads."""
        s = self.trace.slices
        rows = self.trace.where(wanted, category)
        if not len(rows):
            return []
        rows = rows[self.inside(s.ts[rows])]
        if main:
            rows = rows[self._of_steps.take(s.track[rows])]
        in_order: list[int] = rows[np.argsort(s.ts[rows], kind="stable")].tolist()
        return in_order

    @cached_property
    def _of_steps(self) -> Bool:
        """Mask over `Trace.tracks` of the steps' own threads, with one more entry for steps without a thread."""
        mask = np.zeros(len(self.trace.tracks) + 1, np.bool_)
        mask[[step.track for step in self.trace.steps]] = True
        return mask

    def inside(self, ts: Int64) -> Bool:
        return self._in_steps.holds(ts)

    def step_of(self, ts: Any) -> Any:
        """Return the index of the step that each time lies in or after; -1 before the first."""
        return np.searchsorted(self.begins, ts, side="right") - 1

    @cached_property
    def begins(self) -> Int64:
        return np.array([step.begin for step in self.steps], np.int64)

    @cached_property
    def _in_steps(self) -> Cover:
        """The time in the steps; a step ends at the latest when the next one begins."""
        ends = np.array([step.end for step in self.steps], np.int64)
        return Cover(self.begins, np.minimum(ends, np.append(self.begins[1:], ends[-1:])))

    def outermost(self, rows: Iterable[int]) -> list[int]:
        """Return those of these rows, in time order, that lie in no other of them."""
        s, outer, listed = self.trace.slices, list[int](), np.array(list(rows), np.int64)
        until: dict[int, int] = {}
        columns = (listed, s.track[listed], s.ts[listed], s.end[listed])
        for row, track, begin, end in zip(*(column.tolist() for column in columns), strict=True):
            if begin >= until.get(track, 0):
                outer.append(row)
                until[track] = end
        return outer

    def interval(self, row: int, keep: float = 0.0) -> ThreadInterval:
        """Return the thread interval of a host slice, without its first part `keep`."""
        s = self.trace.slices
        return ThreadInterval(int(s.track[row]), int(s.ts[row]) + int(keep * int(s.dur[row])), int(s.end[row]))

    def length_us(self, rows: Iterable[int]) -> float:
        """Return the length of these slices per step, in µs."""
        return float(self.trace.slices.dur[np.array(list(rows), np.int64)].sum()) / self.count / 1e3

    def idle_us(self, rows: Iterable[int]) -> float:
        """Return how long the most idle device was idle during these slices per step, in µs."""
        return self.idle_within([self.interval(row) for row in rows])

    def idle_within(self, intervals: Sequence[ThreadInterval]) -> float:
        idle = [
            sum(end - begin - self.work.of(d).busy.between(begin, end) for _, begin, end in intervals)
            for d in self.work.devices
        ]
        return float(max(idle, default=0)) / self.count / 1e3

    @cached_property
    def _launched(self) -> tuple[Int64, Int64, Int64, Int32]:
        """Device work in launch order: rows, launch times, calls, and the calls' tracks."""
        trace, (at, order) = self.trace, self.trace.by_launch
        calls = trace.device_calls[order]
        return trace.device_rows[order], at, calls, np.where(calls == NONE, NONE, trace.slices.track[calls])

    @cached_property
    def _launched_inside(self) -> Any:
        """Mask over `_launched` of work launched in a step."""
        return self.inside(self._launched[1])

    @cached_property
    def _launched_on(self) -> dict[int, tuple[Int64, Int64]]:
        """Work launched by each track, in launch order: rows and launch times."""
        rows, at, _, tracks = self._launched
        return {track: (rows[tracks == track], at[tracks == track]) for track in distinct(tracks).tolist()}

    def launched_by(self, rows: Sequence[int] | Int64) -> list[Int64]:
        """Return for each of these host slices the rows of device work that its thread launched in it, in order."""
        launched = [_NO_ROWS] * len(rows)
        for places, work, first, behind in self._launches_in(np.array(rows, np.int64)):
            for place, *bounds in zip(places.tolist(), first.tolist(), behind.tolist(), strict=True):
                launched[place] = work[slice(*bounds)]
        return launched

    def launching(self, rows: Int64) -> Bool:
        some = np.zeros(len(rows), np.bool_)
        for places, _, first, behind in self._launches_in(rows):
            some[places] = first < behind
        return some

    def _launches_in(self, rows: Int64) -> Iterator[tuple[Int64, Int64, Int64, Int64]]:
        """Yield per thread the indices of its slices, the work it launched, and begin and end of each slice's part."""
        s, tracks = self.trace.slices, self.trace.slices.track[rows]
        for track in distinct(tracks).tolist():
            work, at = self._launched_on.get(track, (_NO_ROWS, _NO_ROWS))
            places = np.flatnonzero(tracks == track)
            own = rows[places]
            yield places, work, np.searchsorted(at, s.ts[own]), np.searchsorted(at, s.end[own])

    def launched(self, interval: ThreadInterval) -> Int64:
        """Return the rows of device work that this interval of a host thread launched, in order."""
        rows, at, _, tracks = self._launched
        track, begin, end = interval
        lo, hi = np.searchsorted(at, [begin, end])
        launched: Int64 = rows[lo:hi][tracks[lo:hi] == track]
        return launched

    def scope(self, row: int) -> tuple[str, ...]:
        """Return the names of the scopes around a host slice, outermost first, without the profiler's steps."""
        return self.paths.to(self.trace.slices.parent.item(row)).names.scopes

    def op(self, row: int) -> str:
        """Return the outermost op around a host slice; empty without one."""
        op = self.paths.outermost_op(row)
        return self.trace.name(op) if op != NONE else ""

    @cached_property
    def sync_calls(self) -> frozenset[int]:
        """Rows of the calls of all sync points, whose costs are the findings' and no habit's."""
        return frozenset(chain.from_iterable([o.calls for f in self.findings for o in f.occurrences]))

    def habit(
        self,
        rule: str,
        rows: Sequence[int],
        cost_us: float | None,
        evidence: Sequence[str],
        changes: Sequence[Change] = (),
        confidence: Confidence = Confidence.HIGH,
        variant: str = "",
    ) -> Habit:
        """Return a habit at these host slices, with a variant of its page's texts.

        Its id is stable: from its rule and the first slice's place, or the variant.
        """
        page = habit_page(rule)
        scope = self.scope(rows[0]) if rows else ()
        op = self.op(rows[0]) if rows else ""
        return Habit(
            id=f"{rule}-{short_id((rule, variant) if variant else (rule, scope, op))}",
            rule=rule,
            area=Area(page.cause),
            title=page.titles[variant],
            why=page.why,
            fix=page.fixes[variant],
            when_fine=page.when_fine,
            do=page.dos[variant],
            confidence=confidence,
            scope=scope,
            op=op,
            per_step=len(rows) / self.count,
            evidence=tuple(evidence),
            cost_us=cost_us,
            changes=tuple(changes),
        )

    def by_scope(self, rows: Iterable[int]) -> list[list[int]]:
        groups: dict[tuple[str, ...], list[int]] = {}
        for row in rows:
            groups.setdefault(self.scope(row), []).append(row)
        return list(groups.values())
