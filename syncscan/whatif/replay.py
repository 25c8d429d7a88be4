"""From a Graph, a scale of the host's own time and a set of removed findings to the time that a step takes.

Every quantity is a completion time, and every rule is "the latest of some times, plus a duration": arithmetic in
(max, +). A run that adds W to a stream and alone would end at L takes the stream's end e to max(e + W, L), however many
launches are in it. Removing a wait takes one argument from a maximum; so no removal can ever cost time.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from operator import sub
from typing import NamedTuple, TypeAlias

import msgspec
import numpy as np

from syncscan.model.trace import NONE
from syncscan.whatif.graph import RECORD, RUN, STREAM_WAIT, WAIT, Graph, Move, Program
from syncscan.whatif.waits import Wait

LAUNCH_QUEUE = 1024
"""Launches that a stream holds before the host must wait (observed on CUDA, undocumented)."""

MIN_CYCLES, MAX_CYCLES, STEADY = 3, 12, 1e-4
"""Cycles through the recorded steps, and the relative change of a cycle's time that counts as steady."""
BEGIN = 1e9
"""When the hosts begin, ns: what is at 0 then, streams without work and events that are never reached, is long past."""
SAME = 1e-9
"""All is later by one time if it is to this part of it: far more than rounding makes of it, far less than STEADY."""

Question: TypeAlias = "tuple[tuple[int, ...] | None, frozenset[int], bool]"
"""Which programs to replay (None: all), without which findings, and whether with the host's time in the ops around."""


class Scaled(msgspec.Struct, frozen=True, eq=False):
    """A program with a replay's scales applied: per node the host's work, per feed the end that its launches force."""

    program: Program
    hosts: list[float]
    late: list[float]


class Replay(msgspec.Struct, frozen=True, eq=False, dict=True):
    """A graph with one scale of the host's own time and one of the device's, ready to be replayed again and again."""

    graph: Graph
    programs: tuple[Scaled, ...]
    scale: float
    stretch: float

    @cached_property
    def waiting(self) -> frozenset[int]:
        """Numbers of the findings that wait in any of its programs."""
        return _waiting(self.programs)

    @cached_property
    def known(self) -> dict[Question, Steady]:
        """What was replayed of it."""
        return {}

    def chosen(self, steps: Sequence[int] | None) -> Sequence[Scaled]:
        """Some of its programs, or all of them."""
        return self.programs if steps is None else [self.programs[i] for i in steps]

    def question(self, removed: frozenset[int], steps: Sequence[int] | None, whole: bool) -> Question:
        """What `steady` asks with these: of the findings only those matter that wait in the steps."""
        gone = removed & (self.waiting if steps is None else _waiting(self.chosen(steps)))
        return None if steps is None else tuple(steps), gone, whole and bool(gone)

    def answer(self, question: Question, took: float, waits: Mapping[int, float]) -> Steady:
        """The steady state, of which a cycle takes so long and holds these waits, ns."""
        steps, removed, whole = question
        programs = [scaled.program for scaled in self.chosen(steps)]
        spared = [program.spared[n] for program in programs for n in removed if n in program.spared]
        host = sum(program.worked_ns for program in programs) - sum(s.whole if whole else s.host for s in spared)
        busy = self.stretch * (self.graph.busy_ns - sum(s.device for s in spared) / len(programs))
        period = max(took / len(programs), busy if steps is None else 0.0)
        kept = {k: waited / len(programs) for k, waited in waits.items() if k not in removed}
        return Steady(period, kept, self.scale * host / len(programs), busy)


def prepare(graph: Graph, scale: float = 1.0, stretch: float = 1.0) -> Replay:
    """Apply `scale` to the host's own time and `stretch` to the device's."""
    return Replay(graph, tuple(_scaled(p, scale, stretch) for p in graph.programs), scale, stretch)


def _scaled(program: Program, scale: float, stretch: float) -> Scaled:
    ends = scale * program.late_host + stretch * program.late_device
    late = np.maximum.reduceat(ends, program.late_first).tolist() if len(program.late_first) else []
    return Scaled(program, (scale * program.node_host).tolist(), late)


def _waiting(programs: Sequence[Scaled]) -> frozenset[int]:
    return frozenset[int]().union(*(scaled.program.waiting for scaled in programs))


class Steady(msgspec.Struct, frozen=True):
    """A step in the steady state, in ns: its time, the hosts' waits in it, and how long the step's thread works."""

    period: float
    waits: dict[int, float]
    """By finding (NONE: those that can't be removed)."""
    host: float
    device: float
    """How long any stream works."""

    @property
    def waited(self) -> float:
        """All waits together."""
        return sum(self.waits.values())


def period(replay: Replay, removed: frozenset[int] = frozenset(), steps: Sequence[int] | None = None) -> float:
    """The time that one step takes in the steady state, in ns; see `steady`."""
    return steady(replay, removed, steps).period


def steady(
    replay: Replay,
    removed: frozenset[int] = frozenset(),
    steps: Sequence[int] | None = None,
    whole: bool = False,
) -> Steady:
    """Replay the steps over and over until all is later by one time after a cycle through them; mostly after the first.

    What keeps a pace of its own, as a host far ahead of its device, isn't: there until one takes as long as another.

    Each different replay is done once: of hundreds of findings most wait in few of the steps, or in none of them, and
    without those the others are as they were (of a detector's 371 replays 64 differ).

    Streams share one device, and kernels that ran alone in the trace would slow each other down: so no step takes less
    than the device worked in it, however its streams fall.

    Args:
        replay: from `prepare`.
        removed: numbers of the findings whose waits are left out.
        steps: which programs to cycle through; all of them by default.
        whole: of the removed ones the host's time in the ops around them goes too.
    """
    asked = replay.question(removed, steps, whole)
    if asked not in replay.known:
        replay.known[asked] = _replayed(replay, asked)
    return replay.known[asked]


def _replayed(replay: Replay, asked: Question) -> Steady:
    """The steady state that a question is about; see `steady`."""
    steps, removed, whole = asked
    programs = replay.chosen(steps)
    if not programs:
        return Steady(0.0, {}, 0.0, 0.0)
    state = State(replay, whole)
    state.lead_in(programs[-1], removed)
    pace = Pace(state.mark())
    while not pace.steady:
        state.waits.clear()
        for program in programs:
            state.step(program, removed)
        pace.cycle(state.mark())
    return replay.answer(asked, pace.took, state.waits)


class Mark(NamedTuple):
    """How far all has come between two steps."""

    ends: list[float]
    """When each thread and each stream is done."""
    events: list[float]
    queues: list[list[float]]
    """Of each launch queue: how long after the thread that is furthest behind each launch in it ends, the last first.
    Only those that end later may hold a host back."""


class Pace:
    """What a cycle through the same steps takes, and whether the next ones will.

    Args:
        begin: where the first begins.
    """

    def __init__(self, begin: Mark) -> None:
        self.last, self.took, self.steady, self.repeats, self._cycles = begin, -1.0, False, False, 1

    def cycle(self, now: Mark) -> None:
        """Another one ended here."""
        before, self.last, self._cycles = self.last, now, self._cycles + 1
        last, self.took = self.took, max(map(sub, now.ends, before.ends))  # what is behind so far won't stay so
        self.repeats = self._repeats(before)
        alike = self._cycles >= MIN_CYCLES and abs(self.took - last) <= STEADY * self.took
        self.steady = self.repeats or alike or self._cycles == MAX_CYCLES

    def _repeats(self, before: Mark) -> bool:
        """Whether all is as much later than before: then it goes on like that. What is at 0 is never touched."""
        now, took, room = self.last, self.took, SAME * self.took
        times = zip((*now.ends, *now.events), (*before.ends, *before.events), strict=True)
        if not all(abs(end - then - took) <= room or end == 0.0 for end, then in times):
            return False
        queues = itertools.starmap(_side_by_side, zip(now.queues, before.queues, strict=True))
        return all(abs(left - then) <= room for queue in queues for left, then in queue)


def _side_by_side(now: Sequence[float], before: Sequence[float]) -> Iterator[tuple[float, float]]:
    return itertools.zip_longest(now, before, fillvalue=0.0)


def left_of(pending: Sequence[tuple[int, float]], clock: Sequence[float]) -> list[float]:
    """A launch queue as `Mark` has it, from its launches' numbers and ends and where the threads are."""
    least = min(clock)
    return [max(0.0, end - least) for _, end in reversed(pending)]


class State:
    """Completion times: of each host thread, each stream and each event."""

    def __init__(self, replay: Replay, whole: bool = False) -> None:
        graph, self.whole = replay.graph, whole
        self.scale, self.stretch = replay.scale, replay.stretch
        self.clock = [BEGIN] * max(1, graph.threads)
        self.ends = [0.0] * max(1, len(graph.streams))
        self.events = [0.0] * max(1, graph.events)
        self.pending: deque[tuple[int, float]] = deque()
        self.launched = 0
        self.waits: dict[int, float] = {}

    def ended(self) -> list[float]:
        """When each thread and each stream is done."""
        return [*self.clock, *self.ends]

    def mark(self) -> Mark:
        """How far it has come."""
        return Mark(self.ended(), [*self.events], [left_of(self.pending, self.clock)])

    def lead_in(self, scaled: Scaled, removed: frozenset[int]) -> None:
        """Come to where a program's end leaves a step, mostly: few waits leave anything of what was before them."""
        first, program = scaled.program.lead_in, scaled.program
        self._advance(program.moves[first:], scaled.hosts[first:], scaled.late, removed)

    def step(self, scaled: Scaled, removed: frozenset[int]) -> None:
        """Advance by one program."""
        clock = self.clock
        for thread in range(1, len(clock)):
            clock[thread] = max(clock[thread], clock[0])
        self._advance(scaled.program.moves, scaled.hosts, scaled.late, removed)

    def _advance(self, moves: Sequence[Move], hosts: list[float], late: list[float], removed: frozenset[int]) -> None:
        """The loop that every projection spends its time in: so what most moves are is spelt out, and calls nothing."""
        clock, ends, events, pending, waits = self.clock, self.ends, self.events, self.pending, self.waits
        scale, stretch, launched = self.scale, self.stretch, self.launched
        for move, host in zip(moves, hosts, strict=True):
            kind = move[0]
            if kind == RUN:
                _, thread, launches, feeds = move
                launched += launches
                now, least = clock[thread], launched - LAUNCH_QUEUE
                while pending and pending[0][0] <= least:  # the queue is full: a host that wants to launch is held back
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
                _, thread, only, streams, event, finding, call, wake, after, wait = move
                now = clock[thread] + host
                if finding in removed:
                    self._without(wait, thread, now)
                else:
                    free = now + scale * call
                    awake = (ends[only] if only != NONE else self._done(streams, event)) + wake
                    go_on = awake if awake > free else free
                    clock[thread] = go_on + scale * after
                    waits[finding] = waits.get(finding, 0.0) + go_on - free
            elif kind == RECORD:
                events[move[1]] = ends[move[2]]
            elif kind == STREAM_WAIT:
                ends[move[2]] = max(ends[move[2]], events[move[1]])
        self.launched = launched

    def _without(self, wait: Wait, thread: int, now: float) -> None:
        """Pass a removed wait: its op goes or what is left of it stays; its copy goes, or is pinned and shorter."""
        gone = max(wait.read_ns, wait.op_ns) if self.whole else wait.read_ns
        self.clock[thread] = now + self.scale * (wait.left_ns - gone)
        if wait.copy != NONE:
            self.ends[wait.copy] -= self.stretch * wait.copy_ns

    def _done(self, streams: tuple[int, ...], event: int) -> float:
        """When what a wait is for is done: its event, or else the streams."""
        if event != NONE:
            return self.events[event]
        return max((self.ends[stream] for stream in streams), default=0.0)
