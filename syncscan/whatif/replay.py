"""From a Graph, a scale of the host's own time and a set of removed findings to the time that a step takes.

Every quantity is a completion time, and every rule is "the latest of some times, plus a duration": arithmetic in
(max, +). A run that adds W to a stream and alone would end at L takes the stream's end e to max(e + W, L), however many
launches are in it. Removing a wait takes one argument from a maximum; so no removal can ever cost time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from syncscan.whatif.graph import Graph, Program, Record, Run, Wait

LAUNCH_QUEUE = 1024
"""Launches that a stream holds before the host must wait (observed on CUDA, undocumented)."""

MIN_CYCLES, MAX_CYCLES, STEADY = 3, 12, 1e-4
"""Cycles through the recorded steps, and the relative change of a cycle's time that counts as steady."""


@dataclass(frozen=True, eq=False, slots=True)
class Replay:
    """A graph with one scale of the host's own time applied, ready to be replayed again and again."""

    graph: Graph
    programs: tuple[tuple[tuple[object, ...], ...], ...]
    scale: float
    stretch: float


def prepare(graph: Graph, scale: float = 1.0, stretch: float = 1.0) -> Replay:
    """Apply `scale` to the host's own time and `stretch` to the device's."""
    return Replay(graph, tuple(_prepared(p, scale, stretch) for p in graph.programs), scale, stretch)


def _prepared(program: Program, scale: float, stretch: float) -> tuple[tuple[object, ...], ...]:
    late: list[float] = []
    if len(program.late_first):
        ends = scale * program.late_host + stretch * program.late_device
        late = np.maximum.reduceat(ends, program.late_first).tolist()
    out: list[tuple[object, ...]] = []
    for node in program.nodes:
        if isinstance(node, Run):
            feeds = tuple((f.stream, f.work_ns * stretch, late[f.row]) for f in node.feeds)
            out.append((0, node.thread, node.host_ns * scale, node.launches, feeds))
        elif isinstance(node, Wait):
            costs = (node.call_ns * scale, node.wake_ns, node.after_ns * scale, node.left_ns * scale)
            out.append((1, node.thread, node.host_ns * scale, node.finding, node.streams, node.event, costs))
        elif isinstance(node, Record):
            out.append((2, node.event, node.stream))
        else:
            out.append((3, node.event, node.stream))
    return tuple(out)


@dataclass(frozen=True, slots=True)
class Steady:
    """A step in the steady state, in ns: its time, how long hosts wait in it for each finding, and how long the step's thread works."""

    period: float
    waits: dict[int, float]
    """By finding (NONE: those that can't be removed)."""
    host: float

    @property
    def waited(self) -> float:
        """All waits together."""
        return sum(self.waits.values())


def period(replay: Replay, removed: frozenset[int] = frozenset(), steps: Sequence[int] | None = None) -> float:
    """The time that one step takes in the steady state, in ns; see `steady`."""
    return steady(replay, removed, steps).period


def steady(replay: Replay, removed: frozenset[int] = frozenset(), steps: Sequence[int] | None = None) -> Steady:
    """Replay the steps over and over until a cycle through them takes as long as the one before.

    Args:
        replay: from `prepare`.
        removed: numbers of the findings whose waits are left out.
        steps: which programs to cycle through; all of them by default.
    """
    chosen = [replay.programs[i] for i in (range(len(replay.programs)) if steps is None else steps)]
    if not chosen:
        return Steady(0.0, {}, 0.0)
    state = _State(replay.graph)
    end, took = 0.0, -1.0
    for cycle in range(MAX_CYCLES):
        state.waits, state.worked = {}, 0.0
        for nodes in chosen:
            state.step(nodes, removed)
        before, end, last = end, state.done(), took
        took = end - before
        if cycle + 1 >= MIN_CYCLES and abs(took - last) <= STEADY * took:
            break
    count = len(chosen)
    return Steady(took / count, {k: w / count for k, w in state.waits.items()}, state.worked / count)


class _State:
    """Completion times: of each host thread, each stream and each event."""

    def __init__(self, graph: Graph) -> None:
        self.clock = [0.0] * max(1, graph.threads)
        self.ends = [0.0] * max(1, len(graph.streams))
        self.events = [0.0] * max(1, graph.events)
        self.pending: deque[tuple[int, float]] = deque()
        self.launched = 0
        self.waits: dict[int, float] = {}
        self.worked = 0.0

    def done(self) -> float:
        return max(max(self.clock), max(self.ends))

    def step(self, nodes: Sequence[tuple[object, ...]], removed: frozenset[int]) -> None:
        """Advance by one program. Plain tuples and one loop: this is what every projection spends its time in."""
        clock, ends, events = self.clock, self.ends, self.events
        for thread in range(1, len(clock)):
            clock[thread] = max(clock[thread], clock[0])
        for node in nodes:
            kind = node[0]
            if kind == 0:
                _, thread, host, launches, feeds = node
                if launches:
                    self._queue(thread, launches)
                now = clock[thread] = clock[thread] + host
                self.worked += host if thread == 0 else 0.0
                for stream, work, late in feeds:
                    busy, alone = ends[stream] + work, now + late
                    ends[stream] = busy if busy > alone else alone
                if launches:
                    self.pending.append((self.launched, max(ends[f[0]] for f in feeds)))
            elif kind == 1:
                _, thread, host, finding, streams, event, (call, wake, after, left) = node
                now = clock[thread] + host
                if finding in removed:
                    clock[thread] = now + left
                    self.worked += host + left if thread == 0 else 0.0
                    continue
                done = events[event] if event >= 0 else max((ends[s] for s in streams), default=0.0)
                go_on = max(now + call, done + wake)
                self.waits[finding] = self.waits.get(finding, 0.0) + go_on - now - call
                self.worked += host + call + after if thread == 0 else 0.0
                clock[thread] = go_on + after
            elif kind == 2:
                events[node[1]] = ends[node[2]]
            else:
                ends[node[2]] = max(ends[node[2]], events[node[1]])

    def _queue(self, thread: int, launches: int) -> None:
        self.launched += launches
        pending = self.pending
        while pending and pending[0][0] <= self.launched - LAUNCH_QUEUE:
            self.clock[thread] = max(self.clock[thread], pending.popleft()[1])
