"""Replay a graph with a scale of the host's own time and without some findings, and return the time of a step.

Every quantity is a completion time, and every rule is "the latest of some times, plus a duration": arithmetic in
(max, +). A run that adds W to a stream and alone would end at L moves the stream's end e to max(e + W, L), however many
launches it has. Removing a wait takes one argument from a maximum, so a removal can never cost time.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Sequence
from functools import cached_property
from operator import sub
from typing import NamedTuple, TypeVar

import msgspec
import numpy as np

from syncscan.model.rank import WaitNode
from syncscan.model.trace import NONE
from syncscan.whatif.graph import LAUNCH_QUEUE, RECORD, RUN, STREAM_WAIT, WAIT, Graph, Move, StepProgram

MIN_CYCLES, MAX_CYCLES, STEADY = 3, 12, 1e-4
"""Least and most cycles through the recorded steps, and relative change of a cycle's time that counts as steady."""
BEGIN = 1e9
"""Time at which hosts begin, ns; streams without work and events never reached are at 0, long before."""
SAME = 1e-9
"""Relative tolerance for everything to be later by one time: far above rounding, far below STEADY."""


class PaceMark(NamedTuple):
    """How far everything has advanced between two steps."""

    ends: list[float]
    """When each thread and each stream is done."""
    events: list[float]
    queues: list[list[float]]
    """For each launch queue, how long after the slowest thread each launch in it ends, the last first. Only those that
    end later can block a host."""


class Pace:
    """Length of a cycle through the same steps, and whether the next ones will be as long."""

    def __init__(self, begin: PaceMark) -> None:
        self.last, self.took, self.steady, self.repeats, self._cycles = begin, -1.0, False, False, 1

    def cycle(self, now: PaceMark) -> None:
        before, self.last, self._cycles = self.last, now, self._cycles + 1
        last, self.took = self.took, max(map(sub, now.ends, before.ends))  # what is behind so far won't stay so
        self.repeats = self._repeats(before)
        alike = self._cycles >= MIN_CYCLES and abs(self.took - last) <= STEADY * self.took
        self.steady = self.repeats or alike or self._cycles == MAX_CYCLES

    def _repeats(self, before: PaceMark) -> bool:
        """Return whether everything is later by the same time, so that it repeats; entries at 0 were never used."""
        now, took, room = self.last, self.took, SAME * self.took
        times = zip((*now.ends, *now.events), (*before.ends, *before.events), strict=True)
        if not all(abs(end - then - took) <= room or end == 0.0 for end, then in times):
            return False
        queues = (itertools.zip_longest(*each, fillvalue=0.0) for each in zip(now.queues, before.queues, strict=True))
        return all(abs(left - then) <= room for queue in queues for left, then in queue)


def left_of(pending: Sequence[tuple[int, float]], clock: Sequence[float]) -> list[float]:
    """Return a launch queue in the form of `PaceMark`, from its launches' numbers and ends and the threads' times."""
    least = min(clock)
    return [max(0.0, end - least) for _, end in reversed(pending)]


Own = TypeVar("Own", bound="ReplayState")


class Scaled(msgspec.Struct, frozen=True, eq=False):
    """A program with a replay's scales applied: host work per node, and the end that its launches force per feed."""

    program: StepProgram
    hosts: list[float]
    late: list[float]


class Replay(msgspec.Struct, frozen=True, eq=False, dict=True):
    """A graph with a scale of the host's own time and one of the device's, ready to be replayed repeatedly."""

    graph: Graph
    scale: float = 1.0
    """Scale of the host's own time."""
    stretch: float = 1.0
    """Scale of the device's time."""

    @cached_property
    def programs(self) -> tuple[Scaled, ...]:
        return tuple(_scale(program, self.scale, self.stretch) for program in self.graph.programs)

    @cached_property
    def waiting(self) -> frozenset[int]:
        return frozenset[int]().union(*(program.waiting for program in self.graph.programs))

    @cached_property
    def known(self) -> dict[tuple[int | None, frozenset[int], bool], Steady]:
        """Steady states by step (None: all), removed findings, and whether the host's time around them goes too."""
        return {}


def _scale(program: StepProgram, scale: float, stretch: float) -> Scaled:
    ends = scale * program.late_host + stretch * program.late_device
    late = np.maximum.reduceat(ends, program.late_first).tolist() if len(program.late_first) else []
    return Scaled(program, (scale * program.node_host).tolist(), late)


class Steady(msgspec.Struct, frozen=True):
    """A step in the steady state, in ns: its time, the hosts' waits in it, and how long the step's thread works."""

    period: float
    waits: dict[int, float]
    """Waits by finding (NONE: those that can't be removed)."""
    host: float
    device: float
    """How long any stream works."""

    @property
    def waited(self) -> float:
        return sum(self.waits.values())


def period(replay: Replay, removed: frozenset[int] = frozenset(), step: int | None = None) -> float:
    """Return the time that one step takes in the steady state, in ns; see `steady`."""
    return steady(replay, removed, step).period


def steady(
    replay: Replay, removed: frozenset[int] = frozenset(), step: int | None = None, with_ops: bool = False
) -> Steady:
    """Replay the steps repeatedly until a cycle shifts everything by the same time, usually after the first.

    If parts advance at different paces, such as a host far ahead of its device, until two cycles take the same time.

    Each distinct replay is done once: of hundreds of findings, most wait in few of the steps or in none, so that the
    others don't change (of a detector's 371 replays, 64 differ).

    Streams share one device, and kernels that ran alone in the trace would slow each other down. So no step takes less
    time than the device worked in it, however its streams overlap.

    It cycles through all programs, or repeats one `step`; `with_ops` takes the host's time in the ops around removed
    waits out too.
    """
    gone = removed & (replay.waiting if step is None else replay.graph.programs[step].waiting)
    question = step, gone, with_ops and bool(gone)
    if question not in replay.known:
        replay.known[question] = _replayed(replay, *question)
    return replay.known[question]


def _replayed(replay: Replay, step: int | None, removed: frozenset[int], with_ops: bool) -> Steady:
    programs = replay.programs if step is None else replay.programs[step : step + 1]
    if not programs:
        return Steady(0.0, {}, 0.0, 0.0)
    state = ReplayState.of(replay, with_ops)
    state.lead_in(programs[-1], removed)
    pace = Pace(state.mark())
    while not pace.steady:
        state.waits.clear()
        for program in programs:
            state.step(program, removed)
        pace.cycle(state.mark())
    count, recorded = len(programs), [scaled.program for scaled in programs]
    spared = [program.spared[n] for program in recorded for n in removed if n in program.spared]
    host = sum(program.worked_ns for program in recorded) - sum(s.whole if with_ops else s.host for s in spared)
    busy = replay.stretch * (replay.graph.busy_ns - sum(s.device for s in spared) / count)
    waits_left = {k: waited / count for k, waited in state.waits.items() if k not in removed}
    return Steady(max(pace.took / count, busy if step is None else 0.0), waits_left, replay.scale * host / count, busy)


class ReplayState:
    """Completion times of each host thread, each stream and each event.

    If `whole`, the host's time in the op around a removed wait goes too.
    """

    def __init__(
        self, threads: int, streams: int, events: int, scale: float, stretch: float, with_ops: bool = False
    ) -> None:
        self.scale, self.stretch, self.whole = scale, stretch, with_ops
        self.clock = [BEGIN] * max(1, threads)
        self.ends = [0.0] * max(1, streams)
        self.events = [0.0] * max(1, events)
        self.pending: deque[tuple[int, float]] = deque()
        self.launched = 0
        self.waits: dict[int, float] = {}

    @classmethod
    def of(cls: type[Own], replay: Replay, whole: bool = False) -> Own:
        graph = replay.graph
        return cls(graph.threads, len(graph.streams), graph.events, replay.scale, replay.stretch, whole)

    def ended(self) -> list[float]:
        return [*self.clock, *self.ends]

    def mark(self) -> PaceMark:
        return PaceMark(self.ended(), [*self.events], [left_of(self.pending, self.clock)])

    def lead_in(self, scaled: Scaled, removed: frozenset[int]) -> None:
        """Approximate the state after a whole step by its last waits, as few waits leave anything of earlier ones."""
        first, program = scaled.program.lead_in, scaled.program
        self._advance(program.moves[first:], scaled.hosts[first:], scaled.late, removed)

    def step(self, scaled: Scaled, removed: frozenset[int]) -> None:
        self.join()
        self._advance(scaled.program.moves, scaled.hosts, scaled.late, removed)

    def join(self) -> None:
        """Let the other threads continue from the time of the step's own thread at a step's begin."""
        for thread in range(1, len(self.clock)):
            self.clock[thread] = max(self.clock[thread], self.clock[0])

    def _advance(self, moves: Sequence[Move], hosts: list[float], late: list[float], removed: frozenset[int]) -> None:
        """Run the loop that takes most of a projection's time: the most frequent moves are inlined and call nothing."""
        clock, ends, events, pending, waits = self.clock, self.ends, self.events, self.pending, self.waits
        scale, stretch, launched = self.scale, self.stretch, self.launched
        for move, host in zip(moves, hosts, strict=True):
            kind = move[0]
            if kind == RUN:
                _, thread, launches, feeds = move
                launched += launches
                now, least = clock[thread], launched - LAUNCH_QUEUE
                while pending and pending[0][0] <= least:  # the queue is full: a host that wants to launch is blocked
                    end = pending.popleft()[1]
                    if end > now:
                        now = end
                now = clock[thread] = now + host
                last = 0.0
                for stream, work, row in feeds:
                    busy, alone = ends[stream] + work * stretch, now + late[row]
                    end = ends[stream] = busy if busy > alone else alone
                    if end > last:
                        last = end
                if launches:
                    pending.append((launched, last))
            elif kind == WAIT:
                _, thread, only, finding, call, wake, after, wait = move
                now = clock[thread] + host
                if finding in removed:
                    self._without(wait, now)
                else:
                    free = now + scale * call
                    awake = (ends[only] if only != NONE else self._done(wait)) + wake
                    go_on = awake if awake > free else free
                    clock[thread] = go_on + scale * after
                    waits[finding] = waits.get(finding, 0.0) + go_on - free
            elif kind == RECORD:
                events[move[1]] = ends[move[2]]
            elif kind == STREAM_WAIT:
                ends[move[2]] = max(ends[move[2]], events[move[1]])
        self.launched = launched

    def _without(self, wait: WaitNode, now: float) -> None:
        """Pass a removed wait: its op goes or is shortened; its copy goes, or is pinned and shorter."""
        saved_ns = max(wait.read_ns, wait.op_ns) if self.whole else wait.read_ns
        self.clock[wait.thread] = now + self.scale * (wait.left_ns - saved_ns)
        if wait.copy != NONE:
            self.ends[wait.copy] -= self.stretch * wait.copy_ns

    def _done(self, wait: WaitNode) -> float:
        """Return when what a wait is for is done: its event, or else the streams."""
        if wait.event != NONE:
            return self.events[wait.event]
        return max((self.ends[stream] for stream in wait.streams), default=0.0)
