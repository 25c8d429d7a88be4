"""Replay a whole job: the programs of all ranks with their collectives matched.

Each rank is replayed as if alone (`replay` has the arithmetic) until it launches a collective. That starts when the
last of its ranks has arrived, takes as long as for the last to arrive, and ends for all. So a late rank delays the
others, and an early one only waits, and computes more slowly beside the collective meanwhile (`rank_graph`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TypeAlias

import msgspec

from syncscan.model.rank import (
    CollectiveNode,
    RankGraph,
    RankNode,
    RankProgram,
    Record,
    RunNode,
    WaitNode,
)
from syncscan.model.trace import NONE
from syncscan.whatif.graph import LAUNCH_QUEUE
from syncscan.whatif.replay import Pace, PaceMark, ReplayState


class SharedCollective(msgspec.Struct, frozen=True, eq=False):
    ranks: tuple[int, ...]
    """Indices of the participating ranks."""
    took_ns: tuple[float, ...]
    """Its length on each rank once all had arrived; for a rank that didn't wait, from its own arrival."""
    waits: tuple[bool, ...]
    """Whether each rank waited for the others; one that sends little doesn't."""


class Job(msgspec.Struct, frozen=True, eq=False):
    """All ranks' programs, step by step, and their collectives.

    Joint collectives are by indices of rank and collective; one without it takes as long as observed (`alone_ns`).
    """

    graphs: tuple[RankGraph, ...]
    collectives: Mapping[tuple[int, int], SharedCollective]
    alone_ns: Mapping[tuple[int, int], float] = msgspec.field(default_factory=dict)

    @property
    def steps(self) -> int:
        return min((len(graph.programs) for graph in self.graphs), default=0)


Scales: TypeAlias = tuple[float, float]
"""Factors of the recorded times: the hosts' own, and the devices'."""
AS_RECORDED: Scales = (1.0, 1.0)
NOTHING: Mapping[int, frozenset[int]] = {}


def period(
    job: Job,
    scales: Scales,
    removed: Mapping[int, frozenset[int]] = NOTHING,
    steps: Sequence[int] | None = None,
    with_ops: bool = False,
) -> float:
    """Return the time that a step of the job takes in the steady state, ns.

    `removed` has the findings of each rank to remove, by their numbers there; `with_ops` if the ops around them go too.
    """
    chosen = range(job.steps) if steps is None else steps
    if not chosen or not job.graphs:
        return 0.0
    states = [_Rank(job, k, scales, removed.get(k, frozenset()), with_ops) for k in range(len(job.graphs))]
    _advance(states, [graph.programs[chosen[-1]] for graph in job.graphs], job)
    pace = Pace(_mark(states))
    while not pace.steady:
        for step in chosen:
            _advance(states, [graph.programs[step] for graph in job.graphs], job)
        pace.cycle(_mark(states))
    busy = 0.0
    for graph in job.graphs:  # how long its device would work with no collective beside it
        lost = 1.0 - 1.0 / graph.slowdown
        programs = [graph.programs[step] for step in chosen]
        busy = max(busy, sum(program.busy_ns - program.beside_ns * lost for program in programs))
    return max(pace.took, busy * scales[1]) / len(chosen)


def _mark(states: Sequence[_Rank]) -> PaceMark:
    ends, events, queues = zip(*(state.mark() for state in states), strict=True)
    return PaceMark([*chain(*ends)], [*chain(*events)], [*chain(*queues)])


def _advance(states: Sequence[_Rank], programs: Sequence[RankProgram], job: Job) -> None:
    """Advance all ranks by a step, each until it has to wait for others at a collective."""
    arrived: dict[SharedCollective, dict[int, float]] = {}
    runnable = deque(range(len(states)))
    for state, program in zip(states, programs, strict=True):
        state.begin(program)
    while runnable or arrived:
        if not runnable:  # ranks reached their collectives in different orders: the trace can't show how they met
            runnable.extend(_let_go(states, arrived))
            continue
        rank = runnable.popleft()
        at = states[rank].run()
        if at is None:
            continue
        collective = job.collectives[rank, at.collective]
        came = arrived.setdefault(collective, {})
        came[rank] = states[rank].arrival
        if len(came) == len(collective.ranks):
            del arrived[collective]
            last = max(came.values())
            for other, took, waits in zip(collective.ranks, collective.took_ns, collective.waits, strict=True):
                states[other].leave((last if waits else came[other]) + took)
            runnable.extend(collective.ranks)


def _let_go(states: Sequence[_Rank], arrived: dict[SharedCollective, dict[int, float]]) -> list[int]:
    """Release the ranks of one collective though not all have arrived, and return them."""
    came = arrived.pop(next(iter(arrived)))
    for rank, arrival in came.items():
        states[rank].leave(arrival)
    return list(came)


class _Rank(ReplayState):
    def __init__(self, job: Job, rank: int, scales: Scales, removed: frozenset[int], with_ops: bool) -> None:
        graph = job.graphs[rank]
        super().__init__(graph.threads, graph.streams, graph.events, *scales, with_ops)
        self.job, self.rank, self.removed = job, rank, removed
        self.nodes: Sequence[RankNode] = ()
        self.next = 0
        self.arrival = 0.0
        self.slowdown = graph.slowdown
        self.lost = 1.0 - 1.0 / graph.slowdown
        """Part of the work beside a collective that is due to the collective."""
        self.collective = NONE, 0.0, 0.0
        """Stream, begin and end of the last collective."""

    def mark(self) -> PaceMark:
        """Return how far it has advanced; the last collective slows others down while it lasts."""
        ends, events, queues = super().mark()
        return PaceMark(ends, [*events, *self.collective[1:]], queues)

    def begin(self, program: RankProgram) -> None:
        self.nodes, self.next = program.nodes, 0
        self.join()

    def run(self) -> CollectiveNode | None:
        """Continue until a collective has to wait for other ranks, with `arrival` set; None at the step's end."""
        nodes = self.nodes
        while self.next < len(nodes):
            node = nodes[self.next]
            self.next += 1
            if isinstance(node, RunNode):
                self._launch(node)
            elif isinstance(node, WaitNode):
                self._wait(node)
            elif isinstance(node, CollectiveNode):
                self._arrive(node)
                if (self.rank, node.collective) in self.job.collectives:
                    return node
                self.leave(self.arrival + self.job.alone_ns.get((self.rank, node.collective), 0.0))
            elif isinstance(node, Record):
                self.events[node.event] = self.ends[node.stream]
            else:
                self.ends[node.stream] = max(self.ends[node.stream], self.events[node.event])
        return None

    def _launch(self, node: RunNode) -> None:
        if node.launches:
            self._queue(node.thread, node.launches)
        self.clock[node.thread] += self.scale * node.host_ns
        now, last = self.clock[node.thread], 0.0
        for stream, raw, beside, corners in node.feeds:
            work = raw - beside * self.lost
            device = self.stretch * work / raw if raw else self.stretch
            late = now + max([self.scale * host + device * behind for host, behind in corners])
            busy = self._beside(stream, self.ends[stream], work * self.stretch)
            self.ends[stream] = max(busy, late)
            last = max(last, self.ends[stream])
        if node.launches:
            self.pending.append((self.launched, last))

    def _beside(self, stream: int, begin: float, work: float) -> float:
        """Return when a stream has done this much work, which a collective on another stream slows down."""
        other, since, until = self.collective
        if other == stream or until <= begin or since >= begin + work:
            return begin + work
        left = work - max(since - begin, 0.0)
        slowed = min(left * self.slowdown, until - max(since, begin))
        return begin + work + slowed - slowed / self.slowdown

    def _arrive(self, node: CollectiveNode) -> None:
        self._queue(node.thread, 1)
        self.clock[node.thread] += self.scale * node.host_ns
        self.stream = node.stream
        free = self.ends[node.stream] + self.stretch * node.gap_ns
        self.arrival = max(free, self.clock[node.thread] + self.stretch * node.latency_ns)

    def leave(self, end: float) -> None:
        self.ends[self.stream] = end
        self.collective = self.stream, self.arrival, end
        self.pending.append((self.launched, end))

    def _wait(self, node: WaitNode) -> None:
        now = self.clock[node.thread] + self.scale * node.host_ns
        if node.finding in self.removed:
            self._without(node, now)
            return
        free, awake = now + self.scale * node.call_ns, self._done(node) + node.wake_ns
        self.clock[node.thread] = max(free, awake) + self.scale * node.after_ns

    def _queue(self, thread: int, launches: int) -> None:
        self.launched += launches
        pending = self.pending
        while pending and pending[0][0] <= self.launched - LAUNCH_QUEUE:
            self.clock[thread] = max(self.clock[thread], pending.popleft()[1])
