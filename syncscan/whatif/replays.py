"""Replay one graph without many sets of findings at once, with columns for times.

Each node is arithmetic on completion times, the same for every set except at removed waits, and for every scale except
in its factors. So many sets are replayed for little more than the cost of one; the numbers are those of `replay`, bit
for bit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from syncscan.model.arrays import Bool, Float64
from syncscan.model.trace import NONE
from syncscan.whatif.graph import LAUNCH_QUEUE, RECORD, RUN, STREAM_WAIT, WAIT, HostWait, Move
from syncscan.whatif.replay import BEGIN, MAX_CYCLES, MIN_CYCLES, SAME, STEADY, Question, Replay, Scaled, Steady

MANY = 16
"""Number of sets from which columns cost less than single replays: numpy takes as long for one number as for a hundred,
here as long as 13 to 19 replays (recorded steps with 5 to 53 findings)."""

MOST_NUMBERS = 1 << 19
"""Most moves times questions to replay at once: each move may have four columns, so this is 16 MB."""


class Without(NamedTuple):
    """A replay, the numbers of findings removed in it, and whether the host's time around them goes too."""

    replay: Replay
    removed: frozenset[int]
    whole: bool = False


_Asked = tuple[Replay, Question]


def prefetch(removals: Iterable[Without], steps: Sequence[int] | None = None) -> None:
    """Replay the steps without each of these sets, so that `steady` has the answers.

    If there are few, nothing is replayed; `steady` does it on demand.
    """
    questions = dict.fromkeys((replay, replay.question(removed, steps, whole)) for replay, removed, whole in removals)
    new = [(replay, question) for replay, question in questions if question[1] and question not in replay.known]
    if len(new) < MANY:
        return
    moves = sum(len(scaled.program.moves) for scaled in new[0][0].chosen(steps))
    some = max(MANY, MOST_NUMBERS // max(1, moves))
    for first in range(0, len(new), some):
        asked_now = new[first : first + some]
        for (replay, question), answer in zip(asked_now, _replayed(asked_now, steps), strict=True):
            replay.known[question] = answer


def _replayed(pairs: Sequence[_Asked], steps: Sequence[int] | None) -> list[Steady]:
    """Return the steady state of each, once a cycle takes it as long as the previous one."""
    questions = _Questions(pairs)
    programs = [questions.moves(scaled) for scaled in zip(*(r.chosen(steps) for r in questions.replays), strict=True)]
    states = _States(questions)
    states_of: list[Steady | None] = [None] * len(pairs)
    states.step(programs[-1][questions.replays[0].chosen(steps)[-1].program.lead_in :])
    before, took = states.mark(), np.full(len(pairs), -1.0)
    for cycle in range(1, MAX_CYCLES):
        states.waits.clear()
        for moves in programs:
            states.step(moves)
        now, last = states.mark(), took
        took = (now.ends - before.ends).max(axis=0)
        steady = now.repeats(before, took) | (cycle + 1 >= MIN_CYCLES) & (np.abs(took - last) <= STEADY * took)
        for at in np.flatnonzero(steady | (cycle + 1 == MAX_CYCLES)).tolist():
            states_of[at] = states_of[at] or states.answer(at, took.item(at))
        if None not in states_of:
            break
        before = now
    return [state for state in states_of if state is not None]


class _Removal(NamedTuple):
    """The effect of removing a wait, in columns; elsewhere it stays as it is."""

    gone: Bool
    left: Float64
    """Time that the thread then spends there, ns."""
    copy: int
    saved: Float64 | None
    """Time that its copy then takes less of this stream, ns."""


class _Questions:
    """Questions of one graph, side by side, one column each."""

    def __init__(self, pairs: Sequence[_Asked]) -> None:
        self.pairs = pairs
        self.replays = list(dict.fromkeys(replay for replay, _ in pairs))
        self._which = np.array([self.replays.index(replay) for replay, _ in pairs])
        """For each question, the index of its replay."""
        self._scale = np.array([replay.scale for replay, _ in pairs])
        self._stretch = np.array([replay.stretch for replay, _ in pairs])
        sets = [removed for _, (_, removed, _) in pairs]
        self._gone = {n: np.array([n in removed for removed in sets]) for n in frozenset[int]().union(*sets)}
        """Finding → which of the sets contain it."""
        self._whole = np.array([whole for _, (_, _, whole) in pairs])

    def moves(self, scaled: Sequence[Scaled]) -> list[Move]:
        """Return the moves of one program, scaled by each of the replays, with columns."""
        program = scaled[0].program
        hosts = list(np.array([one.hosts for one in scaled]).T.take(self._which, axis=1))
        late = list(np.array([one.late for one in scaled]).T.take(self._which, axis=1))
        waits, works = self._waits(program.host_waits), list(np.multiply.outer(program.works, self._stretch))
        moves = []
        for move, host in zip(program.moves, hosts, strict=True):
            if move[0] == RUN:
                _, thread, launches, feeds = move
                columns = [(stream, works[row], late[row]) for stream, _, row in feeds]
                moves.append((RUN, thread, host, launches, columns))
            else:
                moves.append((*move[:6], host, *next(waits)) if move[0] == WAIT else move)
        return moves

    def _waits(self, nodes: Sequence[HostWait]) -> Iterator[tuple[Any, ...]]:
        """Yield for each wait the times of its call and its end, and the effect of removing it."""
        for wait in (node.wait for node in nodes):
            removal, removed = None, self._gone.get(wait.finding)
            if removed is not None:
                taken = np.where(self._whole, max(wait.read_ns, wait.op_ns), wait.read_ns)
                saved = np.where(removed, self._stretch * wait.copy_ns, 0.0) if wait.copy != NONE else None
                removal = _Removal(removed, self._scale * (wait.left_ns - taken), wait.copy, saved)
            yield self._scale * wait.call_ns, wait.wake_ns, self._scale * wait.after_ns, removal


class _StepAdvance(NamedTuple):
    """How far everything has advanced between two steps, as in `replay.Mark`, with a column per question."""

    ends: Float64
    events: Float64
    queue: Float64

    def repeats(self, before: _StepAdvance, took: Float64) -> Bool:
        room = SAME * took
        alike = np.ones(len(took), bool)
        for now, then in ((self.ends, before.ends), (self.events, before.events)):
            alike &= ((np.abs(now - then - took) <= room) | (now == 0.0)).all(axis=0)
        shared = min(len(self.queue), len(before.queue))
        alike &= (np.abs(self.queue[:shared] - before.queue[:shared]) <= room).all(axis=0)
        for longer in (self.queue[shared:], before.queue[shared:]):
            alike &= (longer <= room).all(axis=0)
        return alike


class _States:
    """Completion times as in `replay.State`, in columns with one entry per question."""

    def __init__(self, questions: _Questions) -> None:
        self.pairs = questions.pairs
        graph = questions.replays[0].graph
        self.nothing = np.zeros(len(self.pairs))
        self.clock = [self.nothing + BEGIN] * max(1, graph.threads)
        self.ends = [self.nothing] * max(1, len(graph.streams))
        self.events = [self.nothing] * max(1, graph.events)
        self.pending: deque[tuple[int, list[Float64]]] = deque()
        self.launched = 0
        self.waits: dict[int, Float64] = {}

    def mark(self) -> _StepAdvance:
        least = reduce(np.minimum, self.clock)
        queue = np.zeros((len(self.pending), len(self.pairs)))
        for row, (_, done) in enumerate(reversed(self.pending)):
            queue[row] = np.maximum(reduce(np.maximum, done, self.nothing) - least, 0.0)
        return _StepAdvance(np.stack([*self.clock, *self.ends]), np.stack(self.events), queue)

    def answer(self, at: int, took: float) -> Steady:
        replay, question = self.pairs[at]
        return replay.answer(question, took, {k: waited.item(at) for k, waited in self.waits.items()})

    def step(self, moves: Sequence[Move]) -> None:
        """Advance by one program; like `replay.State`, it inlines the most frequent moves."""
        clock, ends, events, waits, maximum = self.clock, self.ends, self.events, self.waits, np.maximum
        for thread in range(1, len(clock)):
            clock[thread] = maximum(clock[thread], clock[0])
        for move in moves:
            kind = move[0]
            if kind == RUN:
                _, thread, host, launches, feeds = move
                now = clock[thread] = self._held(clock[thread], launches) + host
                for stream, work, late in feeds:
                    ends[stream] = maximum(ends[stream] + work, now + late)
                if launches:
                    self.pending.append((self.launched, [ends[stream] for stream, _, _ in feeds]))
            elif kind == WAIT:
                _, thread, only, streams, event, finding, host, call, wake, after, removal = move
                now = clock[thread] + host
                free = now + call
                go_on = maximum((ends[only] if only != NONE else self._done(streams, event)) + wake, free)
                clock[thread] = go_on + after
                if removal is not None:
                    self._without(removal, thread, now)
                waits[finding] = waits.get(finding, self.nothing) + go_on - free
            elif kind == RECORD:
                events[move[1]] = ends[move[2]]
            elif kind == STREAM_WAIT:
                ends[move[2]] = maximum(ends[move[2]], events[move[1]])

    def _held(self, now: Float64, launches: int) -> Float64:
        """Return when a host that wants to launch this many can."""
        self.launched += launches
        least = self.launched - LAUNCH_QUEUE
        while self.pending and self.pending[0][0] <= least:
            # not before 0, where everything begins, as in a single replay
            now = reduce(np.maximum, self.pending.popleft()[1], np.maximum(now, self.nothing))
        return now

    def _without(self, removal: _Removal, thread: int, now: Float64) -> None:
        np.add(now, removal.left, out=self.clock[thread], where=removal.gone)
        if removal.saved is not None:
            self.ends[removal.copy] = self.ends[removal.copy] - removal.saved

    def _done(self, streams: tuple[int, ...], event: int) -> Float64:
        if event != NONE:
            return self.events[event]
        done = [self.ends[stream] for stream in streams]
        return reduce(np.maximum, done) if done else self.nothing
