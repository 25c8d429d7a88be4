"""What a habit's rule may ask of one trace: rows in the steps, what they launched, when the device idled."""

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
from syncscan.model.finding import Confidence, Finding
from syncscan.model.habit import Advice, Change, Habit
from syncscan.model.host import SampledHost
from syncscan.model.interval import Cover, Interval, ThreadInterval
from syncscan.model.making import Making
from syncscan.model.short_id import short_id
from syncscan.model.step import StepSummary
from syncscan.model.trace import NONE, Category, Trace

_NO_ROWS = np.zeros(0, np.int64)
NOTABLE = 0.01
"""What takes less than this part of a step isn't worth a word."""
HELD = 0.5
"""A step is bound by its launches for sure when the device works less than this part of its unprofiled time."""
LEAST_NS = 3_000
"""No eager launch takes the host less, whoever looks on: dispatch and call (an H200's host needs 5 to 8 µs)."""
THOUSANDS = 1000
"""From so many launches a step on, their number alone is proof."""
LAUNCH_NS = 100_000
"""A launch takes the host this at most, with the Python and the dispatch before it; more is something else."""


class Context(Making, frozen=True):
    """What the rules look at; everything in it is computed once, when it is first asked for: several ask the same."""

    trace: Trace
    findings: tuple[Finding, ...]
    step: StepSummary
    sampled: SampledHost | None = None

    @property
    def count(self) -> int:
        """How many steps were recorded."""
        return len(self.trace.steps)

    @property
    def period_us(self) -> float:
        """The time of a step in µs: without the profiler where that is known, else as recorded."""
        return self.step.unprofiled_us or self.step.observed_us

    @property
    def notable_us(self) -> float:
        """The least cost of a step that is worth a word, in µs."""
        return NOTABLE * self.period_us

    @cached_property
    def steps(self) -> tuple[Interval, ...]:
        """Each step from its begin to the next one's, ns."""
        return step_intervals(self.trace)

    @cached_property
    def work(self) -> DeviceWork:
        """The device's side, as sorted arrays."""
        return self.trace.kept(DeviceWork)

    @property
    def paths(self) -> Paths:
        """The chains of host slices, by the row of the innermost."""
        return self.trace.kept(Paths)

    @property
    def host_scale(self) -> float:
        """What is left of host times when the profiler's own is taken off: 1 where that isn't known."""
        return min(1.0, self.period_us / self.step.observed_us) if self.step.observed_us else 1.0

    @cached_property
    def launching_us(self) -> float:
        """Host time that the launches of a step take, in µs: from one to the next, counted up to `LAUNCH_NS` each."""
        launched = self._launched[1][self._launched_inside]
        at = distinct(np.concatenate([launched, [s.ts for s in self.trace.steps]]))
        gaps = np.minimum(np.diff(at), LAUNCH_NS)
        return float(gaps.sum()) / self.count / 1e3 * self.host_scale

    @cached_property
    def launch_bound(self) -> bool:
        """Whether launches hold the step, proven by a step time that no profiler stretched, or by their sheer number.

        Recording alone can make the host of a step slower than its device; so without such a time only as many launches
        count as would hold the device up at `LEAST_NS` each.
        """
        known, busy = self.step.unprofiled_us, self.step.device_busy_us
        if known is None:
            return busy < HELD * self.launch_count * LEAST_NS / 1e3
        return busy < HELD * known and self.launching_us > HELD * known

    @cached_property
    def launch_calls(self) -> Int64:
        """Rows of the calls that launch the steps' work, in time order."""
        found = self._launched[2][self._launched_inside]
        launches = np.zeros(len(self.trace.slices), np.bool_)
        launches[found[found != NONE]] = True
        calls = np.flatnonzero(launches)
        ordered: Int64 = calls[np.argsort(self.trace.slices.ts[calls], kind="stable")]
        return ordered

    @property
    def launch_count(self) -> float:
        """How many calls launch the work of a step."""
        return len(self.launch_calls) / self.count

    def rows(self, category: Category, wanted: Callable[[str], Any], *, main: bool = True) -> list[int]:
        """Rows inside the steps of this category and with such a name, in time order.

        Args:
            category: of the slices.
            wanted: asked once a distinct name.
            main: only on the steps' own threads.
        """
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
        """A mask over `Trace.tracks`: the steps' own threads; and one place more, for steps of none."""
        mask = np.zeros(len(self.trace.tracks) + 1, np.bool_)
        mask[[step.track for step in self.trace.steps]] = True
        return mask

    def inside(self, ts: Int64) -> Bool:
        """Which of these times lie in a step."""
        return self._in_steps.holds(ts)

    def step_of(self, ts: Any) -> Any:
        """The place of the step that each of these times lies in, or behind; -1 before the first."""
        return np.searchsorted(self.begins, ts, side="right") - 1

    def step_at(self, ts: int) -> Interval | None:
        """The step that a time (ns) lies in, None without."""
        at = int(self.step_of(ts))
        return self.steps[at] if at >= 0 and self.steps[at].holds(ts) else None

    @cached_property
    def begins(self) -> Int64:
        """When each step begins, ns."""
        return np.array([step.begin for step in self.steps], np.int64)

    @cached_property
    def _in_steps(self) -> Cover:
        """The time in the steps; none goes on when the next has begun."""
        ends = np.array([step.end for step in self.steps], np.int64)
        return Cover(self.begins, np.minimum(ends, np.append(self.begins[1:], ends[-1:])))

    def outermost(self, rows: Iterable[int]) -> list[int]:
        """Those of these rows, in time order, that lie in no other of them."""
        s, found, each = self.trace.slices, list[int](), np.array(list(rows), np.int64)
        until: dict[int, int] = {}
        columns = (each, s.track[each], s.ts[each], s.end[each])
        for row, track, begin, end in zip(*(column.tolist() for column in columns), strict=True):
            if begin >= until.get(track, 0):
                found.append(row)
                until[track] = end
        return found

    def interval(self, row: int, keep: float = 0.0) -> ThreadInterval:
        """Where a host slice lies; without the first `keep` of it (a part of its length)."""
        s = self.trace.slices
        return ThreadInterval(int(s.track[row]), int(s.ts[row]) + int(keep * int(s.dur[row])), int(s.end[row]))

    def length_us(self, rows: Iterable[int]) -> float:
        """Length of these slices in µs a step."""
        return float(self.trace.slices.dur[np.array(list(rows), np.int64)].sum()) / self.count / 1e3

    def least_us(self, launches: float, mean_ns: float, intervals: Sequence[ThreadInterval]) -> float:
        """What thousands of launches take of the host at least, in µs a step, where the step's own time isn't known.

        0 for fewer of them, and where the device is busy meanwhile or its kernels take longer than their launches.

        Args:
            launches: a step.
            mean_ns: how long one kernel takes.
            intervals: where they are launched.
        """
        if launches < THOUSANDS or mean_ns > HELD * LEAST_NS:
            return 0.0
        length = sum(end - begin for _, begin, end in intervals) / self.count / 1e3
        return launches * (LEAST_NS - mean_ns) / 1e3 if self.idle_within(intervals) >= HELD * length else 0.0

    def idle_us(self, rows: Iterable[int]) -> float:
        """How long the devices stood idle while these slices ran, in µs a step (the device that idled longest)."""
        return self.idle_within([self.interval(row) for row in rows])

    def idle_within(self, intervals: Sequence[ThreadInterval]) -> float:
        """How long the devices stood idle in these intervals, in µs a step (the device that idled longest)."""
        idle = [
            sum(end - begin - self.work.of(d).busy_within(begin, end) for _, begin, end in intervals)
            for d in self.work.devices
        ]
        return float(max(idle, default=0)) / self.count / 1e3

    @cached_property
    def _launched(self) -> tuple[Int64, Int64, Int64, Int32]:
        """Device work in order of its launch: rows, the time of the launch, its call, the call's track."""
        trace, (at, order) = self.trace, self.trace.by_launch
        calls = trace.device_calls[order]
        return trace.device_rows[order], at, calls, np.where(calls == NONE, NONE, trace.slices.track[calls])

    @cached_property
    def _launched_inside(self) -> Any:
        """Which of that was launched in a step."""
        return self.inside(self._launched[1])

    @cached_property
    def _launched_on(self) -> dict[int, tuple[Int64, Int64]]:
        """For each track the work that it launched, in order of its launch: rows, and the time of the launch."""
        rows, at, _, tracks = self._launched
        return {track: (rows[tracks == track], at[tracks == track]) for track in distinct(tracks).tolist()}

    def launched_by(self, rows: Sequence[int] | Int64) -> list[Int64]:
        """For each of these host slices the rows of the device work that its thread launched in it, in order."""
        found = [_NO_ROWS] * len(rows)
        for places, work, first, behind in self._launches_in(np.array(rows, np.int64)):
            for place, *bounds in zip(places.tolist(), first.tolist(), behind.tolist(), strict=True):
                found[place] = work[slice(*bounds)]
        return found

    def launching(self, rows: Int64) -> Bool:
        """In which of these host slices its thread launched any device work."""
        found = np.zeros(len(rows), np.bool_)
        for places, _, first, behind in self._launches_in(rows):
            found[places] = first < behind
        return found

    def _launches_in(self, rows: Int64) -> Iterator[tuple[Int64, Int64, Int64, Int64]]:
        """By thread: places of its slices, the work that it launched, and where in it each one's begins and ends."""
        s, tracks = self.trace.slices, self.trace.slices.track[rows]
        for track in distinct(tracks).tolist():
            work, at = self._launched_on.get(track, (_NO_ROWS, _NO_ROWS))
            places = np.flatnonzero(tracks == track)
            mine = rows[places]
            yield places, work, np.searchsorted(at, s.ts[mine]), np.searchsorted(at, s.end[mine])

    def launched(self, interval: ThreadInterval, *, any_thread: bool = False) -> Int64:
        """Rows of the device work that this interval of a host thread launched, in order."""
        rows, at, _, tracks = self._launched
        track, begin, end = interval
        lo, hi = np.searchsorted(at, [begin, end])
        mine = rows[lo:hi]
        return mine if any_thread else mine[tracks[lo:hi] == track]

    def scope(self, row: int) -> tuple[str, ...]:
        """Names of the scopes around a host slice, outermost first, the profiler's steps left out."""
        return self.paths.to(self.trace.slices.parent.item(row)).names.scopes

    def op(self, row: int) -> str:
        """The outermost op around a host slice; empty without."""
        op = self.paths.outermost_op(row)
        return self.trace.name(op) if op != NONE else ""

    @cached_property
    def sync_calls(self) -> frozenset[int]:
        """Rows of the calls of all sync points: what they cost is said of them, and of no habit."""
        return frozenset(chain.from_iterable([o.sync.calls for f in self.findings for o in f.occurrences]))

    def habit(
        self,
        advice: Advice,
        rows: Sequence[int],
        cost_us: float | None,
        evidence: Sequence[str],
        changes: Sequence[Change] = (),
        confidence: Confidence = Confidence.HIGH,
    ) -> Habit:
        """A habit that lies at these host slices; named by its rule and the first one's place, so its id is stable."""
        scope = self.scope(rows[0]) if rows else ()
        op = self.op(rows[0]) if rows else ""
        return Habit(
            id=f"{advice.rule}-{short_id((advice.rule, scope, op))}",
            advice=advice,
            confidence=confidence,
            scope=scope,
            op=op,
            per_step=len(rows) / self.count,
            evidence=tuple(evidence),
            cost_us=cost_us,
            changes=tuple(changes),
        )

    def by_scope(self, rows: Iterable[int]) -> list[list[int]]:
        """These host slices, grouped by the scopes around them."""
        groups: dict[tuple[str, ...], list[int]] = {}
        for row in rows:
            groups.setdefault(self.scope(row), []).append(row)
        return list(groups.values())
