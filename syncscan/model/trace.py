"""A trace as columns: what `load` makes of a file's bytes and every later stage reads."""

from __future__ import annotations

import enum
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, wraps
from typing import Any, TypeVar

import msgspec
import numpy as np

from syncscan.model.arrays import Bool, Int8, Int32, Int64, grouped, looked_up
from syncscan.model.capture import NO_TABLE, CaptureTable
from syncscan.model.file_state import FileState
from syncscan.model.frame_chains import FrameChains
from syncscan.model.interval import cover_of
from syncscan.model.making import Making
from syncscan.model.names import is_step
from syncscan.model.paths import Paths
from syncscan.model.saved import Kept
from syncscan.model.step_marks import StepMark
from syncscan.model.steps_found import NO_STEPS, StepsFound

Made = TypeVar("Made")

NONE = -1
"""What an id column holds where the event has no such id."""


class Category(enum.IntEnum):
    """What kind of slice a row is; one name for each, whatever the trace's version called it."""

    CPU_OP = 0
    ANNOTATION = 1
    RUNTIME = 2
    DRIVER = 3
    KERNEL = 4
    MEMCPY = 5
    MEMSET = 6
    SYNC = 7
    OVERHEAD = 8


_HIP_COPY = {1: "Memcpy HtoD", 2: "Memcpy DtoH", 3: "Memcpy DtoD"}
"""hipMemcpyKind, by which a HIP call says its copy's direction itself (hip_runtime_api.h)."""

_FEW = 4
"""Up to so many names a look at all rows for each costs less than to look each row up: of 470,000 0.13 ms, and 0.52."""

DEEPEST = 256
"""Slices around another that count. The deepest of our recordings has 11; a trace that says thousands would cost
what the square of its size does."""

_COPIES, _SYNCS = (Category.MEMCPY,), (Category.SYNC,)
"""What a call's correlation leads to: made once, as the enumeration's attributes are slow."""

CALLS = (Category.RUNTIME, Category.DRIVER)
"""Categories of the calls of a host."""

HOST = (Category.CPU_OP, Category.ANNOTATION, *CALLS)
"""Categories whose slices lie on a host thread and nest."""

DEVICE = (Category.KERNEL, Category.MEMCPY, Category.MEMSET)
"""Categories that occupy a device stream."""


class Vendor(str, enum.Enum):
    """Whose device the trace was recorded on."""

    CUDA = "cuda"
    ROCM = "rocm"
    XPU = "xpu"
    MTIA = "mtia"
    NONE = "none"


class Track(msgspec.Struct, frozen=True):
    """One row of a trace viewer: a host thread, or a stream of a device.

    `pid` and `tid` are text, because traces write both numbers and words there.
    """

    pid: str
    tid: str
    process: str = ""
    thread: str = ""


class Slices(msgspec.Struct, frozen=True, eq=False, dict=True):
    """Columns of the complete events (`ph: X`) that lie on a host thread or a device, one row each.

    Rows are sorted by (track, ts, -dur), so that a track is one run of rows and a parent stands before its children.
    All arrays have the same length; one of which no row has a value can't be written to. Times are int64 nanoseconds on
    the trace's own clock (`ts` and `dur` times 1000).
    """

    category: Int8
    """A `Category`."""
    name: Int32
    """Index into `Trace.strings`."""
    track: Int32
    """Index into `Trace.tracks`."""
    ts: Int64
    dur: Int64
    correlation: Int64
    """Joins a runtime call with the device work that it launched; NONE without."""
    external: Int64
    """`External id`: an op's own id, or the id of the innermost op around a runtime call; NONE without."""
    sequence: Int64
    """`Sequence number` of an autograd op; NONE without."""
    fwd_thread: Int32
    """`Fwd thread id`: 0 on forward ops, the small thread number on backward ops; NONE without."""
    device: Int32
    """Of device work and sync rows; NONE without."""
    stream: Int32
    """Of device work and sync rows; NONE without."""
    bytes: Int64
    """Size of a copy or memset; NONE without."""
    copy_kind: Int8
    """hipMemcpyKind of a HIP copy call (1 H2D, 2 D2H, 3 D2D, 4 default); NONE without."""
    awaits: Int64
    """Of `Event Sync` and `Stream Wait Event` rows: the correlation of the event's record call; NONE without."""
    group: Int32
    """Of a collective's kernel: index into `Trace.strings` of its process group, as `process_group.group_text` has it;
    NONE without. Its `sequence` is the collective's number in that group, where the trace has it."""
    parent: Int32
    """Row of the innermost host slice around this one on its track; NONE at the top and for device work."""

    def __len__(self) -> int:
        return len(self.ts)

    @cached_property
    def end(self) -> Int64:
        """`ts + dur`, int64 nanoseconds, one a row."""
        return self.ts + self.dur


class Frames(msgspec.Struct, frozen=True, eq=False, dict=True):
    """Columns of the Python frames (`python_function`) that the analysis can use, sorted by (track, ts, -dur).

    A reader may leave out frames that contain no candidate for a sync call; it never leaves out one that does.
    """

    name: Int32
    track: Int32
    ts: Int64
    dur: Int64

    def __len__(self) -> int:
        return len(self.ts)

    @cached_property
    def end(self) -> Int64:
        """`ts + dur`, int64 nanoseconds, one a row."""
        return self.ts + self.dur


class Flows(msgspec.Struct, frozen=True, eq=False):
    """Forward-to-backward arrows (`fwdbwd`): where each starts on the forward thread and ends on the backward one."""

    from_track: Int32
    from_ts: Int64
    to_track: Int32
    to_ts: Int64

    def __len__(self) -> int:
        return len(self.from_ts)


class Step(msgspec.Struct, frozen=True):
    """One step: an interval of a host thread, ns; `number` is the profiler's, or counts from 0."""

    number: int
    track: int
    ts: int
    end: int
    row: int = NONE
    """The range that marks it, NONE without."""
    mark: StepMark | None = None
    """What a serving framework says of it."""


DRAWN = "syncscan_"
"""What the categories of slices begin with that `syncscan annotate` adds."""


class TraceInfo(msgspec.Struct, frozen=True):
    """What a trace says about itself, and what reading it had to say.

    `base_ns` is added to a slice's `ts` to get epoch nanoseconds (0 in old traces, where `ts` is absolute).
    `metadata` holds all top-level keys but the events as parsed JSON, to be written back with a trace; what is used of
    them is in the other fields, checked.
    """

    path: str
    size_bytes: int
    events: int
    vendor: Vendor = Vendor.NONE
    devices: tuple[str, ...] = ()
    compute_capability: tuple[int, int] | None = None
    """Of the first CUDA device, major and minor number: (9, 0) for Hopper."""
    rank: int | None = None
    world_size: int | None = None
    base_ns: int = 0
    with_stack: bool = False
    record_shapes: bool = False
    dropped: int = 0
    """Records of the device that the profiler says it lost."""
    capture: CaptureTable = NO_TABLE
    metadata: Mapping[str, Any] = msgspec.field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    complete: bool = True
    """False where the file ends before its list of events does."""
    kept: Kept | None = None
    """None where the trace itself was read."""
    drawn: bool = False
    """Whether it is an annotated copy: what syncscan draws is in it already."""
    sound: FileState | None = None
    """The file that was read, where its pieces were decoded as they stand in it; None where one was repaired, or where
    that isn't known. The end of its list is read event by event, whatever it is like."""


class Trace(Making, frozen=True, eq=False):
    """One recorded trace: strings, tracks, slices, frames, flows and steps, linked and ready to be analysed."""

    info: TraceInfo
    strings: tuple[str, ...]
    tracks: tuple[Track, ...]
    slices: Slices
    frames: Frames
    flows: Flows
    steps: tuple[Step, ...]
    steps_found: StepsFound = NO_STEPS

    def name(self, row: int) -> str:
        """The name of the slice in this row."""
        return self.strings[self.slices.name.item(row)]

    def ancestors(self, row: int) -> list[int]:
        """Rows of the host slices around this row, outermost first, itself left out; of more than DEEPEST the inner."""
        parent = self.slices.parent.item  # a tenth of what int(parent[at]) costs
        chain: list[int] = []
        at = parent(row)
        while at != NONE and len(chain) < DEEPEST:
            chain.append(at)
            at = parent(at)
        return chain[::-1]

    @cached_property
    def paths(self) -> Paths:
        """The chains of host slices, asked for by the row of the innermost."""
        s = self.slices
        steps = [number for number in self.names_of(Category.ANNOTATION) if is_step(self.strings[number])]
        return Paths(self.strings, s.name, s.category, s.parent, steps, DEEPEST)

    def outermost_op(self, row: int) -> int:
        """The row of the outermost op around this row, NONE without."""
        return next(iter(self.paths.to(self.slices.parent.item(row)).ops), NONE)

    def frames_around(self, track: int, begin: int, end: int) -> tuple[str, ...]:
        """Names of the Python frames of a thread around this time (ns), outermost first; empty without stacks."""
        return self.frames_around_each(np.array([track]), np.array([begin]), np.array([end]))[0]

    def frames_around_each(self, tracks: Int64 | Int32, begins: Int64, ends: Int64) -> list[tuple[str, ...]]:
        """The same for each of these threads and times."""
        found: list[tuple[str, ...]] = [()] * len(tracks)
        for track, here in grouped(tracks) if len(self.frames) else ():
            if track not in self._frame_chains:
                mine = slice(*np.searchsorted(self.frames.track, [track, track + 1]).tolist())
                columns = self.frames.name[mine], self.frames.ts[mine], self.frames.end[mine]
                self._frame_chains[track] = FrameChains(self.strings, *columns)
            names = self._frame_chains[track].around_each(begins[here], ends[here])
            for place, around in zip(here.tolist(), names, strict=True):
                found[place] = around
        return found

    @cached_property
    def _frame_chains(self) -> dict[int, FrameChains]:
        """Track → its frames, as they are asked for."""
        return {}

    def is_category(self, *categories: Category) -> Bool:
        """A mask over `slices`: rows of one of these categories."""
        return of_categories(self.slices.category, categories)

    def named(self, predicate: Any) -> Bool:
        """A mask over `slices`: rows whose name satisfies `predicate(str) -> bool`, asked once a distinct name."""
        mask: Bool = looked_up(self.names_that(predicate), self.slices.name)
        return mask

    def names_that(self, predicate: Any) -> Bool:
        """A mask over `strings`: names of slices that satisfy `predicate(str) -> bool`."""
        hits = self._strings_that.get(predicate)
        if hits is None:
            hits = self._strings_that[predicate] = np.zeros(len(self.strings), np.bool_)
            for number in self._slice_names:
                hits[number] = bool(predicate(self.strings[number]))
        return hits

    def where(self, predicate: Callable[[str], Any], *categories: Category) -> Int64:
        """Rows of these categories whose name satisfies `predicate`, ascending; asked once a distinct name of each."""
        each = [rows for rows in (self._where(predicate, category) for category in categories) if len(rows)]
        if len(each) == 1:
            return each[0]
        return np.sort(np.concatenate([np.zeros(0, np.int64), *each]), kind="stable")  # quick: each ascends

    def _where(self, predicate: Callable[[str], Any], category: Category) -> Int64:
        wanted = [number for number in self.names_of(category) if predicate(self.strings[number])]
        if not wanted:
            return np.zeros(0, np.int64)
        rows, names = self.rows_of(category)
        if len(wanted) <= _FEW:
            mask = names == wanted[0]
            for number in wanted[1:]:
                mask |= names == number
        else:
            hits = np.zeros(len(self.strings), np.bool_)
            hits[wanted] = True
            mask = looked_up(hits, names)
        found: Int64 = rows[mask]
        return found

    def called(self, rows: Int64, predicate: Callable[[str], Any]) -> Bool:
        """Which of these rows have a name that satisfies `predicate`; asked once a distinct name of theirs."""
        names = self.slices.name.take(rows)
        used, hits = np.zeros(len(self.strings), np.bool_), np.zeros(len(self.strings), np.bool_)
        used[names] = True
        hits[[number for number in np.flatnonzero(used).tolist() if predicate(self.strings[number])]] = True
        mask: Bool = looked_up(hits, names)
        return mask

    def rows_of(self, category: Category) -> tuple[Int64, Int32]:
        """The rows of a category, ascending, and of each the number of its name in `strings`."""
        known = self._rows_of_category
        if category not in known:
            rows = np.flatnonzero(self.slices.category == int(category))
            known[category] = rows, self.slices.name.take(rows)
        return known[category]

    def lengths_like(self, row: int) -> Int64:
        """How long each slice took that has the category and the name of the one in this row, ns."""
        rows, names = self.rows_of(Category(self.slices.category.item(row)))
        lengths: Int64 = self.slices.dur[rows[names == self.slices.name.item(row)]]
        return lengths

    def names_of(self, category: Category) -> list[int]:
        """The numbers of the strings that are names of slices of this category, ascending."""
        known = self._names_of_category
        if category not in known:
            used = np.zeros(len(self.strings), np.bool_)
            used[self.rows_of(category)[1]] = True
            known[category] = np.flatnonzero(used).tolist()
        return known[category]

    @cached_property
    def _rows_of_category(self) -> dict[Category, tuple[Int64, Int32]]:
        return {}

    @cached_property
    def _names_of_category(self) -> dict[Category, list[int]]:
        return {}

    @cached_property
    def _strings_that(self) -> dict[Any, Bool]:
        """Predicate → which of the strings satisfy it: several stages ask the same."""
        return {}

    @cached_property
    def _slice_names(self) -> list[int]:
        """The strings that are names of slices; most of them are names of frames where there are stacks."""
        used = np.zeros(len(self.strings), np.bool_)
        used[self.slices.name] = True
        names: list[int] = np.flatnonzero(used).tolist()
        return names

    @cached_property
    def device_rows(self) -> Int64:
        """Rows of kernels, copies and memsets, in order of their start."""
        rows = np.flatnonzero(self.is_category(*DEVICE))
        return rows[np.argsort(self.slices.ts[rows], kind="stable")]

    @cached_property
    def device_calls(self) -> Int64:
        """For each of `device_rows` the row of its call, see `calls_of`."""
        return self.calls_of(self.device_rows)

    def calls_of(self, rows: Int64) -> Int64:
        """For each of these rows the row of the runtime or driver call with its correlation, NONE without.

        Where a runtime call and the driver call inside it share a correlation, it is the outer one: what the program
        called.
        """
        return self.calls_with(self.slices.correlation[rows])

    def calls_with(self, correlations: Int64) -> Int64:
        """For each of these correlations the row of the call that has it, NONE without; see `calls_of`."""
        known, calls = self._calls_by_correlation
        if not len(known):
            return np.full(len(correlations), NONE, np.int64)
        at = np.minimum(np.searchsorted(known, correlations), len(known) - 1)
        return np.where((known[at] == correlations) & (correlations != NONE), calls[at], NONE)

    @cached_property
    def _calls_by_correlation(self) -> tuple[Int64, Int64]:
        """Correlations of all runtime and driver calls that have one, ascending, and the rows of the calls."""
        s = self.slices
        calls = np.flatnonzero(self.is_category(*CALLS) & (s.correlation != NONE))
        calls = calls[np.argsort(s.correlation[calls], kind="stable")]
        return s.correlation[calls], calls

    def started_work(self, calls: Int64) -> Bool:
        """Which of these calls started device work that is in the trace."""
        started: Bool = self._started_work[calls]
        return started

    @cached_property
    def _started_work(self) -> Bool:
        """A mask over `slices`: the calls that started device work."""
        started = np.zeros(len(self.slices) + 1, np.bool_)  # NONE, which is -1, is the place at the end
        started[self.device_calls] = True
        started[NONE] = False
        known, calls = self._calls_by_correlation
        again = np.flatnonzero(known[1:] == known[:-1]) + 1  # as a driver's call in a runtime's, which is the one found
        started[calls[again]] = started[calls[np.searchsorted(known, known[again])]]
        return started

    def copy_of(self, call: int) -> int:
        """The row of the device copy that a call started, NONE without."""
        return int(self.copies_of(np.array([call])).item())

    def copies_of(self, calls: Int64) -> Int64:
        """For each of these calls the row of the device copy that it started, NONE without."""
        return self._work_with(_COPIES, self.slices.correlation[calls])

    def works_of(self, calls: Int64) -> Int64:
        """For each of these calls the row of the device work that it started, NONE without.

        Of several, as of a graph, the highest: the one that starts last on the last of their streams.
        """
        return self._work_with(DEVICE, self.slices.correlation[calls])

    def sync_rows_of(self, calls: Int64) -> Int64:
        """For each of these calls the synchronisation row that the profiler wrote for it, NONE without."""
        return self._work_with(_SYNCS, self.slices.correlation[calls])

    def copy_names(self, calls: Int64) -> list[str]:
        """What each of these calls copies, e.g. `Memcpy DtoH (Device -> Pinned)`; empty without a copy.

        The device's row says it, unless a HIP call says otherwise by its kind: ROCm names a read-back after the staging
        buffer on the device that it goes through, `Memcpy DtoD`.
        """
        copies, kinds = self.copies_of(calls), self.slices.copy_kind[calls]
        numbers = np.where(copies == NONE, NONE, self.slices.name[copies]).tolist()
        names = ["" if number == NONE else self.strings[number] for number in numbers]
        for at in np.flatnonzero(kinds != NONE).tolist():
            told = _HIP_COPY.get(kinds.item(at), "")
            names[at] = names[at] if names[at].startswith(told) else told
        return names

    def _work_with(self, categories: tuple[Category, ...], correlations: Int64) -> Int64:
        """For each of these correlations the last row of these categories that has it, NONE without."""
        if categories not in self._ascending_correlations:
            rows = np.sort(np.concatenate([self.rows_of(category)[0] for category in categories]), kind="stable")
            rows = rows[self.slices.correlation.take(rows) != NONE]
            rows = rows[np.argsort(self.slices.correlation.take(rows), kind="stable")]
            self._ascending_correlations[categories] = (self.slices.correlation[rows], rows)
        known, rows = self._ascending_correlations[categories]
        if not len(known):
            return np.full(len(correlations), NONE, np.int64)
        at = np.maximum(np.searchsorted(known, correlations, side="right") - 1, 0)
        return np.where((known[at] == correlations) & (correlations != NONE), rows[at], NONE)

    @cached_property
    def _ascending_correlations(self) -> dict[tuple[Category, ...], tuple[Int64, Int64]]:
        return {}

    @cached_property
    def launched_at(self) -> Int64:
        """For each of `device_rows`: when its launching call began, ns.

        Work whose call is missing was launched before recording began; in a trace without any such link it counts as
        launched when it starts.
        """
        s, calls = self.slices, self.device_calls
        start = s.ts[self.device_rows]
        known = calls != NONE
        if not known.any():
            return start.copy()
        return np.where(known, np.minimum(s.ts[calls], start), np.minimum(start, s.ts.min() - 1))

    def launched_in(self, intervals: Iterable[tuple[int, int]]) -> Bool:
        """A mask over `device_rows`: the work that was launched in any of these intervals (ns)."""
        launched, order = self.by_launch
        cover = cover_of([(begin, end) for begin, end in intervals if begin < end])
        mask = np.zeros(len(order), np.bool_)
        mask[order] = cover.holds_ascending(launched)
        return mask

    def launched_within(self, begin: int, end: int) -> Int64:
        """Places in `device_rows` of the work that was launched from `begin` to before `end` (ns), ascending."""
        (first,), (behind,) = self.launches_of([(begin, end)])
        return np.sort(self.by_launch[1][first:behind], kind="stable")  # quick where a stream's work comes in order

    def launches_of(self, intervals: Iterable[tuple[int, int]]) -> tuple[Int64, Int64]:
        """For each of these intervals (ns) where in `by_launch` its work begins, and where that ends."""
        times = np.array(list(intervals), np.int64).reshape(-1, 2)
        places = self.by_launch[0].searchsorted(times)
        return places[:, 0], places.max(axis=1)

    @cached_property
    def by_launch(self) -> tuple[Int64, Int64]:
        """Device work in order of its launch: when that was (ns), and the place of each in `device_rows`."""
        order = np.argsort(self.launched_at, kind="stable")
        return self.launched_at[order], order

    @cached_property
    def main_steps(self) -> tuple[Step, ...]:
        """The steps of the thread that marked the most of them, in time order: those of one program are counted once.

        Of several threads with as many it is the first; empty where none are marked.
        """
        tracks = Counter(step.track for step in self.steps)
        main = max(sorted(tracks), key=tracks.__getitem__, default=NONE)
        return tuple(sorted((step for step in self.steps if step.track == main), key=lambda step: step.ts))

    def last_steps(self, times: Int64) -> Int64:
        """For each of these times the place in `steps` of the last step to have begun by then; NONE before any."""
        return np.searchsorted(np.array(self._step_starts, np.int64), times, side="right") - 1

    def steps_at(self, times: Int64) -> list[Step | None]:
        """For each of these times the step that goes on then, see `step_at`."""
        steps: tuple[Step | None, ...] = (*self.steps, None)
        return [steps[k] for k in np.where(self.in_steps(times), self.last_steps(times), NONE).tolist()]

    def in_steps(self, times: Int64) -> Bool:
        """Which of these times lie in a step, see `step_at`."""
        ends = np.array([*(step.end for step in self.steps), 0], np.int64)  # NONE, which is -1, is the place at the end
        last = self.last_steps(times)
        inside: Bool = (last != NONE) & (times < ends[last])
        return inside

    def step_at(self, ts: int) -> Step | None:
        """The step that goes on at this time (ns), the last one to have begun; None between steps."""
        k = bisect_right(self._step_starts, ts) - 1
        return self.steps[k] if k >= 0 and ts < self.steps[k].end else None

    @cached_property
    def _step_starts(self) -> list[int]:
        return [step.ts for step in self.steps]

    def track_rows(self, track: int) -> slice:
        """The run of rows that lie on this track."""
        return slice(*self._track_bounds[track : track + 2])

    @cached_property
    def _track_bounds(self) -> list[int]:
        numbers = np.arange(len(self.tracks) + 1, dtype=self.slices.track.dtype)
        bounds: list[int] = np.searchsorted(self.slices.track, numbers).tolist()
        return bounds


def of_categories(column: Int8, categories: Iterable[Category]) -> Bool:
    """Which entries of a column are one of these categories; `np.isin` takes five times as long for so few."""
    mask = np.zeros(len(column), np.bool_)
    for category in categories:
        mask |= column == int(category)
    return mask


def once(make: Callable[[Trace], Made]) -> Callable[[Trace], Made]:
    """A function that makes something of a trace: made once, for every stage that asks; so it mustn't be changed."""
    return wraps(make)(lambda trace: trace.kept(make))
