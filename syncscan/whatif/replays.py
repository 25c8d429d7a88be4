"""From replays of one graph and many sets of removed findings to the steady state without each: columns for times.

What each node does is arithmetic on completion times, the same for every set but at the waits that it removes, and for
every scale but in its factors. So many are replayed for little more than one costs; the numbers are those of `replay`,
bit for bit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from syncscan.model.arrays import Bool, Float64
from syncscan.model.trace import NONE
from syncscan.whatif.graph import RECORD, RUN, STREAM_WAIT, WAIT, Move
from syncscan.whatif.replay import LAUNCH_QUEUE, MAX_CYCLES, MIN_CYCLES, STEADY, Question, Replay, Scaled, Steady
from syncscan.whatif.waits import Wait

MANY = 16
"""From so many sets on columns cost less than a replay each: numpy takes as long for one number as for a hundred, here
as long as 13 to 17 replays (recorded steps with 2 to 53 findings)."""

MOST_NUMBERS = 1 << 19
"""Moves times questions that are replayed at once: each move may hold four columns, so this is 16 MB."""


class Without(NamedTuple):
    """A replay, the numbers of findings that are removed in it, and whether the host's time around them goes too."""

    replay: Replay
    removed: frozenset[int]
    whole: bool = False


_Asked = tuple[Replay, Question]


def foresee(asked: Iterable[Without], steps: Sequence[int] | None = None) -> None:
    """Replay the steps without each of these sets, so that `steady` knows the answers.

    Of few nothing is replayed yet: `steady` does it when it is asked.

    Args:
        asked: of one graph.
        steps: which programs to cycle through; all of them by default.
    """
    questions = dict.fromkeys((replay, replay.question(removed, steps, whole)) for replay, removed, whole in asked)
    new = [(replay, question) for replay, question in questions if question[1] and question not in replay.known]
    if len(new) < MANY:
        return
    moves = sum(len(scaled.program.moves) for scaled in new[0][0].chosen(steps))
    some = max(MANY, MOST_NUMBERS // max(1, moves))
    for first in range(0, len(new), some):
        asked_now = new[first : first + some]
        for (replay, question), found in zip(asked_now, _replayed(asked_now, steps), strict=True):
            replay.known[question] = found


def _replayed(asked: Sequence[_Asked], steps: Sequence[int] | None) -> list[Steady]:
    """The steady state of each, once a cycle takes it as long as the one before."""
    questions = _Questions(asked)
    programs = [questions.moves(scaled) for scaled in zip(*(r.chosen(steps) for r in questions.replays), strict=True)]
    states = _States(questions)
    found: list[Steady | None] = [None] * len(asked)
    ends, took = np.zeros_like(states.ended()), np.full(len(asked), -1.0)
    for cycle in range(MAX_CYCLES):
        states.begin_cycle()
        told = cycle + 1 >= MIN_CYCLES
        for moves in programs:
            states.step(moves, told)
        before, ends, last = ends, states.ended(), took
        took = (ends - before).max(axis=0)
        steady = told & (np.abs(took - last) <= STEADY * took) | (cycle + 1 == MAX_CYCLES)
        for at in np.flatnonzero(steady).tolist():
            found[at] = found[at] or states.steady(at, took.item(at), len(programs))
        if None not in found:
            break
    return [each for each in found if each is not None]


class _Removal(NamedTuple):
    """What becomes of a wait where it is removed, in columns; elsewhere it stays as it is."""

    gone: Bool
    left: Any
    """What the thread then spends there, ns."""
    copy: int
    saved: Any
    """What its copy then takes less of this stream, ns."""


class _Questions:
    """Questions of one graph, side by side: what differs between them is a column, what doesn't one number."""

    def __init__(self, asked: Sequence[_Asked]) -> None:
        self.asked = asked
        self.replays = list(dict.fromkeys(replay for replay, _ in asked))
        self._which = np.array([self.replays.index(replay) for replay, _ in asked])
        """Of each question the place of its replay among them."""
        self._scale = self._of_each([replay.scale for replay in self.replays])
        self._stretch = self._of_each([replay.stretch for replay in self.replays])
        sets = [removed for _, (_, removed, _) in asked]
        self._gone = {n: np.array([n in removed for removed in sets]) for n in frozenset[int]().union(*sets)}
        """Finding → which of the sets it is in."""
        whole = np.array([whole for _, (_, _, whole) in asked])
        self._whole = whole if whole.any() and not whole.all() else whole.item(0)

    def moves(self, scaled: Sequence[Scaled]) -> list[Move]:
        """The moves of one program, which each of the replays scaled as it does, with their columns."""
        hosts, late = (self._columns([getattr(one, name) for one in scaled]) for name in ("hosts", "late"))
        return [self._move(move, host, late) for move, host in zip(scaled[0].program.moves, hosts, strict=True)]

    def _move(self, move: Move, host: Any, late: Sequence[Any]) -> Move:
        if move[0] == RUN:
            _, thread, launches, feeds = move
            scaled = [(stream, _operand(work * self._stretch), late[row]) for stream, work, row in feeds]
            return RUN, thread, host, launches, scaled
        if move[0] != WAIT:
            return move
        _, thread, only, streams, event, finding, call, wake, after, wait = move
        spent, removal = self._scale * (call + after), None
        if finding in self._gone:
            removal = self._removal(wait)
            spent = np.where(removal.gone, removal.left, spent)
        times = map(_operand, (self._scale * call, wake, self._scale * after))
        return WAIT, thread, host, only, streams, event, finding, *times, host + spent, removal

    def _removal(self, wait: Wait) -> _Removal:
        gone = self._gone[wait.finding]
        most = max(wait.read_ns, wait.op_ns)
        if isinstance(self._whole, bool):
            read: Any = most if self._whole else wait.read_ns
        else:
            read = np.where(self._whole, most, wait.read_ns)
        saved = np.where(gone, self._stretch * wait.copy_ns, 0.0)
        return _Removal(gone, _operand(self._scale * (wait.left_ns - read)), wait.copy, saved)

    def _of_each(self, values: Sequence[Any]) -> Any:
        """Of each question its replay's value."""
        return values[0] if len(set(values)) == 1 else np.array(values).take(self._which)

    def _columns(self, of_replays: Sequence[Sequence[float]]) -> Sequence[Any]:
        """Of each number its column; of one replay the number."""
        if len(of_replays) == 1:
            return [_operand(number) for number in of_replays[0]]
        return list(np.array(of_replays).T.take(self._which, axis=1))


def _operand(value: Any) -> Any:
    """A column, or a number as an array: numpy adds one to a column in 0.34 µs, and a number of Python in 0.54."""
    return np.asarray(value)


class _States:
    """Completion times as of `replay.State`, in columns: one entry for each question."""

    def __init__(self, questions: _Questions) -> None:
        self.asked = questions.asked
        graph = questions.replays[0].graph
        self.nothing = np.zeros(len(self.asked))
        self.clock = [self.nothing] * max(1, graph.threads)
        self.ends = [self.nothing] * max(1, len(graph.streams))
        self.events = [self.nothing] * max(1, graph.events)
        self.pending: deque[tuple[int, list[Float64]]] = deque()
        self.launched = 0
        self.begin_cycle()

    def begin_cycle(self) -> None:
        """Nothing was waited for or worked yet."""
        self.waits: dict[int, Float64] = {}
        self.worked: Any = 0.0  # a number until it differs from question to question
        self.shorter = self.nothing

    def ended(self) -> Float64:
        """When each thread and each stream is done, a row each."""
        return np.stack([*self.clock, *self.ends])

    def steady(self, at: int, took: float, count: int) -> Steady:
        """What the last cycle through so many steps was like of the question at this place."""
        replay, (steps, removed, _) = self.asked[at]
        busy = replay.graph.busy_ns * replay.stretch - self.shorter.item(at) / count
        floor = busy if steps is None else 0.0
        waits = {k: waited.item(at) / count for k, waited in self.waits.items() if k not in removed}
        worked = (self.nothing + self.worked).item(at)
        return Steady(max(took / count, floor), waits, worked / count, busy)

    def step(self, moves: Sequence[Move], told: bool) -> None:
        """Advance by one program; as `replay.State` it spells out what most moves are, and calls little."""
        clock, ends, events, worked, maximum = self.clock, self.ends, self.events, self.worked, np.maximum
        own = 0 if told else NONE
        for thread in range(1, len(clock)):
            clock[thread] = maximum(clock[thread], clock[0])
        for move in moves:
            kind = move[0]
            if kind == RUN:
                _, thread, host, launches, feeds = move
                now = clock[thread] = self._held(clock[thread], launches) + host
                if thread == own:
                    worked = worked + host
                for stream, work, late in feeds:
                    ends[stream] = maximum(ends[stream] + work, now + late)
                if launches:
                    self.pending.append((self.launched, [ends[stream] for stream, _, _ in feeds]))
            elif kind == WAIT:
                _, thread, host, only, streams, event, finding, call, wake, after, spent, removal = move
                now = clock[thread] + host
                free = now + call
                go_on = maximum((ends[only] if only != NONE else self._done(streams, event)) + wake, free)
                clock[thread] = go_on + after
                if removal is not None:
                    self._without(removal, thread, now)
                if told:
                    self.waits[finding] = self.waits.get(finding, self.nothing) + go_on - free
                if thread == own:
                    worked = worked + spent
            elif kind == RECORD:
                events[move[1]] = ends[move[2]]
            elif kind == STREAM_WAIT:
                ends[move[2]] = maximum(ends[move[2]], events[move[1]])
        self.worked = worked

    def _held(self, now: Float64, launches: int) -> Float64:
        """When a host that wants to launch so much can."""
        self.launched += launches
        least = self.launched - LAUNCH_QUEUE
        while self.pending and self.pending[0][0] <= least:
            # No earlier than at 0, where everything begins, as of one replay.
            now = reduce(np.maximum, self.pending.popleft()[1], np.maximum(now, self.nothing))
        return now

    def _without(self, removal: _Removal, thread: int, now: Float64) -> None:
        """Pass a wait where it is removed."""
        np.add(now, removal.left, out=self.clock[thread], where=removal.gone)
        if removal.copy != NONE:
            self.ends[removal.copy] = self.ends[removal.copy] - removal.saved
            self.shorter = self.shorter + removal.saved

    def _done(self, streams: tuple[int, ...], event: int) -> Float64:
        """When what a wait is for is done."""
        if event != NONE:
            return self.events[event]
        done = [self.ends[stream] for stream in streams]
        return reduce(np.maximum, done) if done else self.nothing
