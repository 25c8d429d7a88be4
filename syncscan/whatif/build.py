"""Write the replayed steps of a trace as a Graph: their launches, waits and events, as programs of nodes.

Times on a host thread are turned into *own time* first: the trace's clock with every wait left out, so that what
remains is the thread's own work and no device work's. Device work keeps its length, its distance from the work
before it where it was queued behind that, and its distance from its launch where it wasn't.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from types import MappingProxyType

import msgspec
import numpy as np
from msgspec.structs import replace

from syncscan.model.arrays import Float64, Int64, distinct
from syncscan.model.interval import Interval, cover_of
from syncscan.model.rank import CollectiveNode, Record, StreamWait
from syncscan.model.trace import NONE
from syncscan.whatif.events import EventEdge, EventRecord
from syncscan.whatif.graph import BLOCK, Feed, Graph, HostRun, Node, StepProgram
from syncscan.whatif.replayed_steps import ReplayedSteps
from syncscan.whatif.wait_effects import WaitEffect


def build(steps: ReplayedSteps, collectives: Mapping[int, int] = MappingProxyType({})) -> Graph:
    """Return the dependency graph of these steps.

    Collectives, by the rows of their kernels, become nodes of their own where all ranks are replayed together.
    """
    writer = _ProgramWriter(steps, collectives)
    programs = tuple(writer.program(interval) for interval in steps.intervals)
    streams = steps.launches.streams
    return Graph(programs, writer.thread_count, streams, len(writer.slots), steps.busy_ns)


class _OwnTime:
    """Turns times of one logical thread into its own time: the clock without some intervals, others longer or shorter.

    The rows to leave out come in any order. Those of `paced` are disjoint, each with how many times as long it takes;
    what is left out of them stays so.
    """

    def __init__(self, left_out: list[Interval], paced: Sequence[tuple[Interval, float]] = ()) -> None:
        disjoint = [(interval, 1.0) for interval in cover_of(left_out).intervals]
        if paced:
            disjoint = sorted([*disjoint, *_between_left_out(paced, [interval for interval, _ in disjoint])])
        self.begins = np.array([interval.begin for interval, _ in disjoint], np.int64)
        self.lengths = np.array([interval.length for interval, _ in disjoint], np.int64)
        self.parts = np.array([part for _, part in disjoint])
        """The part of each interval that is left out of the thread's own time; below 0 where it takes longer."""
        self.out_before = np.concatenate([[0.0], np.cumsum(self.lengths * self.parts)])

    def at(self, ts: Int64) -> Float64:
        count = np.searchsorted(self.begins, ts, side="left")
        if not len(self.begins):
            return ts.astype(np.float64)
        last = np.maximum(count - 1, 0)
        in_last = np.where(count > 0, np.minimum(ts - self.begins[last], self.lengths[last]), 0) * self.parts[last]
        own: Float64 = (ts - self.out_before[last] - in_last).astype(np.float64)
        return own


def _between_left_out(
    paced: Sequence[tuple[Interval, float]], left_out: Sequence[Interval]
) -> Iterator[tuple[Interval, float]]:
    """Yield the pieces of the paced intervals that aren't left out, each with the part of it that pacing leaves out."""
    begins, ends = [i.begin for i in left_out], [i.end for i in left_out]
    for interval, factor in paced:
        at = interval.begin
        for place in range(bisect_right(ends, interval.begin), len(left_out)):
            if begins[place] >= interval.end:
                break
            if begins[place] > at:
                yield Interval(at, begins[place]), 1.0 - factor
            at = max(at, ends[place])
        if at < interval.end:
            yield Interval(at, interval.end), 1.0 - factor


class _Cut(msgspec.Struct, frozen=True):
    """A point that cuts a program as host and streams synchronize: a wait, an event's record, a stream's wait for it.

    A wait comes behind a launch that began at the same time, a record and a stream's wait before it.
    """

    ts: int
    behind_launch: bool
    of: WaitEffect | EventRecord | EventEdge | int
    """A number is the place of a launch that is a node of its own."""
    own: float = 0.0
    """When a wait begins, in its thread's own time."""


class _ProgramWriter:
    def __init__(self, steps: ReplayedSteps, collectives: Mapping[int, int]) -> None:
        self.launches, self.threads, self.edges, self.waits = steps.launches, steps.threads, steps.edges, steps.waits
        self.thread_count = max(self.threads.values(), default=0) + 1
        tracks = self.launches.tracks
        threads = [self.threads.get(track, 0) for track in range(int(tracks.max(initial=NONE)) + 1)]
        self.thread_of = np.array(threads, np.int64)[tracks]
        self.turns = 1 + np.flatnonzero(np.diff(self.thread_of))
        """The places of launches whose thread isn't that of the launch before."""
        self.own_times = self._own_times(steps)
        self.returned = np.zeros(len(tracks))
        """When each launch returned, in its thread's own time; known of those of the programs that are written."""
        self.length = (self.launches.end - self.launches.start).astype(np.float64)
        self.adds = self.length + self.launches.gap
        """The time that each launch adds to a busy stream."""
        self.collectives = collectives
        self.apart = np.flatnonzero(np.isin(self.launches.rows, list(collectives)))
        self.begun = self._begun()
        awaited = [edge.event for edge in self.edges] + [wait.awaited for wait in self.waits if wait.awaited]
        self.records = sorted(set(awaited), key=lambda record: record.ts)
        self.reached: list[float] = []
        """How far each thread of the program that is written has come, in its own time."""
        self.slots: dict[EventRecord, int] = {}
        """Event record → its number among those of its step."""

    def _own_times(self, steps: ReplayedSteps) -> list[_OwnTime]:
        without: list[list[Interval]] = [[] for _ in range(self.thread_count)]
        for wait in self.waits:
            without[self.threads[wait.track]].append(wait.interval)
        for track, begin, end in steps.left_out:
            if track in self.threads:
                without[self.threads[track]].append(Interval(begin, end))
        paced: list[list[tuple[Interval, float]]] = [[] for _ in range(self.thread_count)]
        for track, begin, end, factor in steps.paced:
            if track in self.threads:
                paced[self.threads[track]].append((Interval(begin, end), factor))
        return [_OwnTime(*each) for each in zip(without, paced, strict=True)]

    def _begun(self) -> list[_Cut]:
        """Return the beginnings of the waits, in time order."""
        begins = np.array([wait.interval[0] for wait in self.waits], np.int64)
        threads, own_time = np.array([self.threads[wait.track] for wait in self.waits], np.int64), np.zeros(len(begins))
        for thread in distinct(threads).tolist():
            places = np.flatnonzero(threads == thread)
            own_time[places] = self.own_times[thread].at(begins[places])
        met = zip(begins.tolist(), self.waits, own_time.tolist(), strict=True)
        return sorted((_Cut(ts, True, wait, at) for ts, wait, at in met), key=attrgetter("ts"))

    def program(self, step: Interval) -> StepProgram:
        work = self.launches
        first, end = (int(place) for place in np.searchsorted(work.issued, step))
        self._find_returns(first, end)
        cuts = self._cuts(step)
        between = self._between(cuts, first, end)
        feeds, late_host, late_device, late_first = self._runs(first, end, [run for part in between for run in part])
        nodes = [*self._nodes(step, cuts, between, feeds)]
        length, stream = self.length[first:end], work.stream[first:end]
        return StepProgram(
            nodes=tuple(nodes),
            node_host=np.array([getattr(node, "host_ns", 0.0) for node in nodes]),
            late_host=late_host,
            late_device=late_device,
            late_first=late_first,
            length_ns=float(step.length),
            stream_ns=tuple(float(length[stream == number].sum()) for number in range(len(work.streams))),
            launches=end - first,
            first=first,
        )

    def _nodes(
        self,
        step: Interval,
        cuts: Sequence[_Cut],
        between: Sequence[Sequence[slice]],
        feeds: Sequence[list[Feed]],
    ) -> Iterator[Node]:
        """Yield each cut's node behind the runs before it, then the runs after the last cut and the step's rest."""
        begins, ends = zip(*(own.at(np.array(step)).tolist() for own in self.own_times), strict=True)
        self.reached, remaining = list(begins), iter(feeds)
        for runs, cut in itertools.zip_longest(between, cuts):
            for run in runs:
                thread = self.thread_of.item(run.start)
                host_ns = self._advance(thread, self.returned.item(run.stop - 1))
                yield HostRun(thread, host_ns, run.stop - run.start, tuple(next(remaining)))
            if cut is not None:
                yield self._node(cut)
        yield HostRun(0, self._advance(0, ends[0]))

    def _between(self, cuts: Sequence[_Cut], first: int, end: int) -> list[list[slice]]:
        """Return the runs of launches before each cut and after the last one: of one thread, at most BLOCK long."""
        turns: list[int] = self.turns[slice(*np.searchsorted(self.turns, [first + 1, end]).tolist())].tolist()
        between, written = [], first
        for cut, launched in zip(cuts, self._launched_by(cuts, first, end), strict=True):
            upto = max(written, launched)
            if isinstance(cut.of, int):
                upto = max(upto, cut.of)
            between.append(_cut(written, upto, turns))
            written = upto + isinstance(cut.of, int)
        return [*between, _cut(written, end, turns)]

    def _find_returns(self, first: int, end: int) -> None:
        for thread in distinct(self.thread_of[first:end]).tolist():
            mine = first + np.flatnonzero(self.thread_of[first:end] == thread)
            self.returned[mine] = self.own_times[thread].at(self.launches.returned[mine])

    def _launched_by(self, cuts: Sequence[_Cut], first: int, end: int) -> list[int]:
        """Return, for each cut, the index after the last launch before it, from `first` to `end`."""
        issued, times = self.launches.issued[first:end], np.array([cut.ts for cut in cuts], np.int64)
        behind = np.array([cut.behind_launch for cut in cuts], np.bool_)
        places = np.where(behind, issued.searchsorted(times, side="right"), issued.searchsorted(times))
        launched: list[int] = (first + places).tolist()
        return launched

    def _cuts(self, step: Interval) -> list[_Cut]:
        """Return all cuts of a step, in time order; number its event records."""
        records = [record for record in self.records if step.holds(record.ts)]
        self.slots.update((record, number) for number, record in enumerate(records))
        edges = [edge for edge in self.edges if step.holds(edge.ts) and edge.event in self.slots]
        waits = slice(*(bisect_left(self.begun, ts, key=attrgetter("ts")) for ts in step))
        cuts = [
            *self.begun[waits],
            *(_Cut(record.ts, False, record) for record in records),
            *(_Cut(edge.ts, False, edge) for edge in edges),
            *(_Cut(int(self.launches.issued[at]), False, at) for at in self._apart_in(step)),
        ]
        return sorted(cuts, key=lambda cut: (cut.ts, cut.behind_launch))

    def _apart_in(self, step: Interval) -> list[int]:
        issued = self.launches.issued[self.apart]
        inside: list[int] = self.apart[(issued >= step.begin) & (issued < step.end)].tolist()
        return inside

    def _node(self, cut: _Cut) -> Node:
        of = cut.of
        if isinstance(of, int):
            return self._collective(of)
        if isinstance(of, EventRecord):
            return Record(self.slots[of], of.stream)
        if isinstance(of, EventEdge):
            return StreamWait(self.slots[of.event], of.stream)
        return self._host_wait(of, cut.own)

    def _collective(self, at: int) -> CollectiveNode:
        work, thread = self.launches, int(self.thread_of[at])
        host_ns = self._advance(thread, self.returned.item(at))
        gap, latency = float(work.gap[at]), float(work.latency[at])
        return CollectiveNode(thread, host_ns, int(work.stream[at]), gap, latency, self.collectives[work.rows.item(at)])

    def _host_wait(self, wait: WaitEffect, own_time: float) -> WaitEffect:
        thread = self.threads[wait.track]
        host_ns = self._advance(thread, own_time)
        if wait.awaited is None:
            return replace(wait, thread=thread, host_ns=host_ns)
        event = self.slots.get(wait.awaited, NONE)
        return replace(wait, thread=thread, host_ns=host_ns, streams=(), event=event)

    def _advance(self, thread: int, to: float) -> float:
        """Move a thread on to this time; return how much of its own time passes."""
        spent, self.reached[thread] = to - self.reached[thread], to
        return spent

    def _runs(self, first: int, end: int, runs: list[slice]) -> tuple[list[list[Feed]], Float64, Float64, Int64]:
        """Return what these runs add to each stream, and how late each of their launches alone would make it end.

        The runs are all launches of a program but those apart; the rest is a program's `late` table.
        """
        work, lengths = self.launches, [run.stop - run.start for run in runs]
        of_run, places = np.repeat(np.arange(len(runs)), lengths), np.arange(first, end)
        if len(self.apart):
            places = places[np.isin(places, self.apart, invert=True)]
        stream = work.stream[places]
        if len(work.streams) > 1:
            order = np.lexsort((stream, of_run))
            of_run, places, stream = of_run[order], places[order], stream[order]
        begins = np.flatnonzero(np.diff(of_run, prepend=-1) | np.diff(stream, prepend=-1))
        adds = self.adds[places]
        sums, count = np.cumsum(adds), np.diff(begins, append=len(places))
        total = np.add.reduceat(adds, begins).tolist() if len(begins) else []
        feeds: list[list[Feed]] = [[] for _ in runs]
        for row, feed in enumerate(zip(of_run[begins].tolist(), stream[begins].tolist(), total, strict=True)):
            feeds[feed[0]].append((feed[1], feed[2], row))
        last = np.array([run.stop - 1 for run in runs], np.int64)
        late_host = self.returned[places] - self.returned[last][of_run]
        late_device = work.latency[places] + self.length[places] + np.repeat(sums[begins + count - 1], count) - sums
        return feeds, late_host, late_device, begins


def _cut(first: int, end: int, turns: Sequence[int]) -> list[slice]:
    """Return the places from `first` to before `end`, cut where another thread's turn is, and into pieces of BLOCK."""
    if first >= end:
        return []
    bounds = [first, *(turn for turn in turns if first < turn < end), end]
    return [
        slice(start, min(start + BLOCK, stop))
        for begin, stop in itertools.pairwise(bounds)
        for start in range(begin, stop, BLOCK)
    ]
