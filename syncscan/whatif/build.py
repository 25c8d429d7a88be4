"""From a Trace and its sync points to a Graph: the launches, waits and events of some steps, cut into runs.

Times on a host thread are turned into *work* first: the trace's clock with every wait cut out, so that what is left is
the thread's own time and nothing of the device's. Device work keeps its length, its distance from the work before it
where it was queued behind that, and its distance from its launch where it wasn't.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from syncscan.model.habit import Change
from syncscan.model.period import busy_time
from syncscan.model.period import windows as step_windows
from syncscan.model.trace import NONE, Int64, Trace
from syncscan.model.work import merged
from syncscan.whatif import edit
from syncscan.whatif.events import Events, Reached, StreamWait, first_waiters
from syncscan.whatif.graph import BLOCK, Await, Feed, Float64, Graph, Node, Program, Record, Run, Wait
from syncscan.whatif.launches import Launches, find_launches
from syncscan.whatif.overlap import ahead, launched_in
from syncscan.whatif.threads import find_threads
from syncscan.whatif.waits import Held, Hold, find_waits, pressed

MAX_STEPS = 6
"""Steps that are replayed of a long trace: those at even ranks of length, so that their mean is the trace's."""


def build(
    trace: Trace,
    holds: Sequence[Hold],
    max_steps: int = MAX_STEPS,
    ahead_of: str = "",
    change: Change | None = None,
) -> Graph:
    """The dependency graph of a trace's steps, or of the whole trace where it marks none.

    Args:
        trace: any trace with runtime calls and device work; without them the graph has no work and no waits.
        holds: its sync points.
        max_steps: how many steps to take at most.
        ahead_of: glob of scopes whose device work gets streams of its own, where nothing waits for it.
        change: what else is different from the recorded steps.
    """
    windows = chosen(step_windows(trace), max_steps)
    if not windows:
        return Graph((), 1, (), 0)
    margin = max(b - a for a, b in windows)
    begin, end = windows[0][0] - margin, windows[-1][1]
    launches = find_launches(trace, begin, end)
    moved = len(launches.streams) if ahead_of else NONE
    if ahead_of:
        launches = ahead(launches, launched_in(trace, launches, ahead_of))
    if change:
        launches = edit.moved(launches, change)
    events = Events(trace, launches, begin, end)
    inside = [h for h in holds if any(a <= trace.slices.ts[h.calls[0]] < b for a, b in windows)]
    waits = events.stream_waits()
    held = find_waits(trace, launches, events, inside)
    tracks = np.concatenate([launches.tracks, np.array([h.track for h in held], np.int64)])
    launches, without = explained(launches, waits), []
    if change:
        launches, without = edit.shortened(launches, change), edit.cuts(launches, change, windows)
    maker = _Maker(trace, launches, find_threads(trace, np.unique(tracks)), waits, held, without)
    programs = tuple(maker.program(a, b) for a, b in windows)
    other = ahead_of or (change and (change.work or change.ahead))
    busy = 0.0 if other else busy_time(trace, windows) / len(windows)
    return Graph(programs, maker.count, launches.streams, len(maker.slots), busy, moved)


def chosen(windows: list[tuple[int, int]], count: int) -> list[tuple[int, int]]:
    """The steps to replay of a trace's: all, or as many at even ranks of length; in time order."""
    if len(windows) <= count:
        return windows
    by_length = sorted(windows, key=lambda w: w[1] - w[0])
    ranks = ((np.arange(count) + 0.5) * len(windows) / count).astype(int)
    return sorted(by_length[r] for r in ranks)


def explained(launches: Launches, waits: list[StreamWait]) -> Launches:
    """Launches behind an event edge start late because of it: they get the usual gap and latency instead of theirs."""
    first = first_waiters(waits)
    gap, latency = launches.gap.copy(), launches.latency.copy()
    gap[first] = np.minimum(gap[first], launches.usual_gap[first])
    latency[first] = np.minimum(latency[first], launches.usual_latency)
    return replace(launches, gap=gap, latency=latency)


def _union(cuts: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Cuts that overlap as one, so that no time is taken off twice."""
    if not cuts:
        return cuts
    starts, ends = (np.array(c, np.int64) for c in zip(*sorted(cuts), strict=True))
    first, last = merged(starts, ends)
    return list(zip(first.tolist(), last.tolist(), strict=True))


class _Clock:
    """Turns times of one logical thread into its own work: the time with the cuts left out."""

    def __init__(self, cuts: list[tuple[int, int]]) -> None:
        cuts = sorted(cuts)
        self.starts = np.array([a for a, _ in cuts], np.int64)
        lengths = np.array([b - a for a, b in cuts], np.int64)
        self.lengths = lengths
        self.before = np.concatenate([[0], np.cumsum(lengths)])

    def work(self, ts: Int64) -> Float64:
        """Work done at these times, ns since the trace's zero."""
        at = np.searchsorted(self.starts, ts, side="left")
        cut = self.before[np.maximum(at - 1, 0)]
        if len(self.starts):
            k = np.maximum(at - 1, 0)
            cut = cut + np.where(at > 0, np.minimum(ts - self.starts[k], self.lengths[k]), 0)
        out: Float64 = (ts - cut).astype(np.float64)
        return out


@dataclass(frozen=True, slots=True)
class _Mark:
    """Where a program is cut: a wait, a record or a stream's wait, at a time on the host."""

    ts: int
    order: int
    thread: int
    item: Held | Reached | StreamWait


@dataclass(slots=True)
class _Tape:
    """The nodes of a program as they are written, and how far each thread has come (in work)."""

    at: list[float]
    nodes: list[Node] = field(default_factory=list)
    host: list[Float64] = field(default_factory=list)
    device: list[Float64] = field(default_factory=list)
    first: list[int] = field(default_factory=list)

    def advance(self, thread: int, to: float) -> float:
        took, self.at[thread] = to - self.at[thread], to
        return took


class _Maker:
    def __init__(
        self,
        trace: Trace,
        launches: Launches,
        threads: dict[int, int],
        waits: list[StreamWait],
        held: list[Held],
        without: Sequence[edit.Cut] = (),
    ) -> None:
        self.launches, self.threads = launches, threads
        self.count = max(threads.values(), default=0) + 1
        cuts: list[list[tuple[int, int]]] = [[] for _ in range(self.count)]
        for h in [*held, *pressed(trace, launches)]:
            cuts[threads[h.track]].append((h.ts, h.cut))
        for track, start, stop in without:
            if track in threads:
                cuts[threads[track]].append((start, stop))
        self.clocks = [_Clock(_union(c) if without else c) for c in cuts]
        self.held, self.waits = held, waits
        reached = [w.event for w in waits] + [h.event for h in held if h.event]
        self.records = sorted(set(reached), key=lambda r: r.ts)
        self.slots: dict[Reached, int] = {}
        self.thread_of = np.array([threads.get(t, 0) for t in launches.tracks.tolist()], np.int64)

    def program(self, begin: int, end: int) -> Program:
        """The program of the step between these times."""
        work = self.launches
        lo, hi = np.searchsorted(work.issued, [begin, end])
        marks = self._marks(begin, end)
        tape = _Tape([float(c.work(np.array([begin]))[0]) for c in self.clocks])
        at = int(lo)
        for mark in marks:
            upto = int(lo + np.searchsorted(work.issued[lo:hi], mark.ts, side="right" if mark.order else "left"))
            self._runs(tape, at, upto)
            at = max(at, upto)
            self._node(tape, mark)
        self._runs(tape, at, int(hi))
        rest = tape.advance(0, float(self.clocks[0].work(np.array([end]))[0]))
        tape.nodes.append(Run(0, rest))
        lengths = (work.end - work.start)[lo:hi]
        return Program(
            nodes=tuple(tape.nodes),
            node_host=np.array([getattr(n, "host_ns", 0.0) for n in tape.nodes]),
            late_host=np.concatenate(tape.host) if tape.host else np.zeros(0),
            late_device=np.concatenate(tape.device) if tape.device else np.zeros(0),
            late_first=np.array(tape.first, np.int64),
            length_ns=float(end - begin),
            stream_ns=tuple(float(lengths[work.stream[lo:hi] == k].sum()) for k in range(len(work.streams))),
            launches=int(hi - lo),
        )

    def _marks(self, begin: int, end: int) -> list[_Mark]:
        marks = [_Mark(h.ts, 1, self.threads[h.track], h) for h in self.held if begin <= h.ts < end]
        inside = [r for r in self.records if begin <= r.ts < end]
        for number, r in enumerate(inside):
            self.slots[r] = number
        marks += [_Mark(r.ts, 0, 0, r) for r in inside]
        marks += [_Mark(w.ts, 0, 0, w) for w in self.waits if begin <= w.ts < end and w.event in self.slots]
        return sorted(marks, key=lambda m: (m.ts, m.order))

    def _node(self, tape: _Tape, mark: _Mark) -> None:
        item = mark.item
        if isinstance(item, Reached):
            tape.nodes.append(Record(self.slots[item], item.stream))
        elif isinstance(item, StreamWait):
            tape.nodes.append(Await(self.slots[item.event], item.stream))
        else:
            host = tape.advance(mark.thread, float(self.clocks[mark.thread].work(np.array([item.ts]))[0]))
            tape.nodes.append(self._wait(mark.thread, host, item))

    def _wait(self, thread: int, host: float, held: Held) -> Wait:
        event = NONE if held.event is None else self.slots.get(held.event, NONE)
        streams = held.streams if held.event is None else ()
        return Wait(
            thread, host, streams, event, held.call_ns, held.wake_ns, held.after_ns, held.left_ns, held.finding,
            held.wait_ns, held.spare_ns, held.copy, held.pinned_ns,
        )  # fmt: skip

    def _runs(self, tape: _Tape, lo: int, hi: int) -> None:
        """Write the launches lo … hi-1: one run a stretch on one thread, none longer than BLOCK."""
        if hi <= lo:
            return
        turns = lo + 1 + np.flatnonzero(np.diff(self.thread_of[lo:hi]))
        edges = [lo, *turns.tolist(), hi]
        for a, b in itertools.pairwise(edges):
            for start in range(a, b, BLOCK):
                self._run(tape, start, min(start + BLOCK, b))

    def _run(self, tape: _Tape, lo: int, hi: int) -> None:
        work, thread = self.launches, int(self.thread_of[lo])
        at = self.clocks[thread].work(work.returned[lo:hi])
        host = tape.advance(thread, float(at[-1]))
        feeds = []
        for stream in np.unique(work.stream[lo:hi]).tolist():
            mine = np.flatnonzero(work.stream[lo:hi] == stream)
            length = (work.end - work.start)[lo:hi][mine].astype(np.float64)
            adds = length + work.gap[lo:hi][mine]
            behind = adds.sum() - np.cumsum(adds)
            feeds.append(Feed(stream, float(adds.sum()), len(tape.first)))
            tape.first.append(sum(len(h) for h in tape.host))
            tape.host.append(at[mine] - at[-1])
            tape.device.append(work.latency[lo:hi][mine] + length + behind)
        tape.nodes.append(Run(thread, host, hi - lo, tuple(feeds)))
