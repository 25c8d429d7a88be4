"""From replays of one graph and many sets of removed findings to the steady state without each: columns for times.

What each node does is arithmetic on completion times, the same for every set but at the waits that it removes, and for
every scale but in its factors. So many are replayed for little more than one costs; the numbers are those of `replay`,
bit for bit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from syncscan.model.arrays import Bool, Float64, Int64
from syncscan.model.trace import NONE
from syncscan.whatif.graph import RECORD, RUN, STREAM_WAIT, WAIT
from syncscan.whatif.replay import LAUNCH_QUEUE, MAX_CYCLES, MIN_CYCLES, STEADY, Question, Replay, Steady
from syncscan.whatif.waits import Wait

MANY = 16
"""From so many sets on columns cost less than a replay each: numpy takes as long for one number as for a hundred, here
as long as 13 to 17 replays (recorded steps with 2 to 53 findings)."""


class Without(NamedTuple):
    """A replay, the numbers of findings that are removed in it, and whether the host's time around them goes too."""

    replay: Replay
    removed: frozenset[int]
    whole: bool = False


def foresee(asked: Iterable[Without], steps: Sequence[int] | None = None) -> None:
    """Replay the steps without each of these sets, so that `steady` knows the answers.

    Of few nothing is replayed yet: `steady` does it when it is asked.

    Args:
        asked: of one graph.
        steps: which programs to cycle through; all of them by default.
    """
    questions = dict.fromkeys((replay, replay.question(removed, steps, whole)) for replay, removed, whole in asked)
    new = [(replay, question) for replay, question in questions if question[1] and question not in replay.known]
    if len(new) >= MANY:
        for (replay, question), found in zip(new, _replayed(new, steps), strict=True):
            replay.known[question] = found


def _replayed(asked: Sequence[tuple[Replay, Question]], steps: Sequence[int] | None) -> list[Steady]:
    """The steady state of each, once a cycle takes it as long as the one before."""
    states = _States(asked, steps)
    found: list[Steady | None] = [None] * len(asked)
    ends, took = np.zeros_like(states.ended()), np.full(len(asked), -1.0)
    for cycle in range(MAX_CYCLES):
        states.begin_cycle()
        for number in range(len(states.programs)):
            states.step(number)
        before, ends, last = ends, states.ended(), took
        took = (ends - before).max(axis=0)
        steady = (cycle + 1 >= MIN_CYCLES) & (np.abs(took - last) <= STEADY * took) | (cycle + 1 == MAX_CYCLES)
        for at in np.flatnonzero(steady).tolist():
            found[at] = found[at] or states.steady(at, took.item(at))
        if None not in found:
            break
    return [each for each in found if each is not None]


class _Columns:
    """Numbers that differ from replay to replay, a row each, as columns with one entry for each question.

    Args:
        rows: one for each number, with an entry for each of the different replays.
        which: of each question the place of its replay among them.
    """

    def __init__(self, rows: Float64, which: Int64) -> None:
        self._rows, self._which = rows, which

    def __getitem__(self, row: int) -> Float64:
        column: Float64 = self._rows[row].take(self._which)
        return column

    def __iter__(self) -> Iterator[Float64]:
        return (row.take(self._which) for row in self._rows)


class _States:
    """Completion times as of `replay.State`, in columns: one entry for each question."""

    def __init__(self, asked: Sequence[tuple[Replay, Question]], steps: Sequence[int] | None) -> None:
        self.asked, self.steps = asked, steps
        replays = list(dict.fromkeys(replay for replay, _ in asked))
        which = np.array([replays.index(replay) for replay, _ in asked])
        graph = replays[0].graph
        self.programs = [scaled.program for scaled in replays[0].chosen(steps)]
        each = [replay.chosen(steps) for replay in replays]
        self.hosts = [_columns([scaled.hosts for scaled in same], which) for same in zip(*each, strict=True)]
        self.late = [_columns([scaled.late for scaled in same], which) for same in zip(*each, strict=True)]
        self.scale: Any = _of_each([replay.scale for replay in replays], which)
        self.stretch: Any = _of_each([replay.stretch for replay in replays], which)
        self.nothing = np.zeros(len(asked))
        self.clock = [self.nothing] * max(1, graph.threads)
        self.ends = [self.nothing] * max(1, len(graph.streams))
        self.events = [self.nothing] * max(1, graph.events)
        self.pending: deque[tuple[int, list[Float64]]] = deque()
        self.launched = 0
        every = frozenset[int]().union(*(removed for _, (_, removed, _) in asked))
        self.gone: dict[int, Bool] = {n: np.array([n in removed for _, (_, removed, _) in asked]) for n in every}
        """Finding → which of the sets it is in."""
        self.whole: Any = _of_each([whole for _, (_, _, whole) in asked], np.arange(len(asked)))
        self.begin_cycle()

    def begin_cycle(self) -> None:
        """Nothing was waited for or worked yet."""
        self.waits: dict[int, Float64] = {}
        self.worked: Any = 0.0  # a number until it differs from question to question
        self.shorter = self.nothing

    def ended(self) -> Float64:
        """When each thread and each stream is done, a row each."""
        return np.stack([*self.clock, *self.ends])

    def steady(self, at: int, took: float) -> Steady:
        """What the last cycle was like of the question at this place."""
        count, (replay, (_, removed, _)) = len(self.programs), self.asked[at]
        busy = replay.graph.busy_ns * replay.stretch - self.shorter.item(at) / count
        floor = busy if self.steps is None else 0.0
        waits = {k: waited.item(at) / count for k, waited in self.waits.items() if k not in removed}
        worked = (self.nothing + self.worked).item(at)
        return Steady(max(took / count, floor), waits, worked / count, busy)

    def step(self, number: int) -> None:
        """Advance by one program; as `replay.State` it spells out what most moves are, and calls little."""
        clock, ends, events, late = self.clock, self.ends, self.events, self.late[number]
        scale, stretch, worked, maximum = self.scale, self.stretch, self.worked, np.maximum
        for thread in range(1, len(clock)):
            clock[thread] = maximum(clock[thread], clock[0])
        for move, host in zip(self.programs[number].moves, self.hosts[number], strict=True):
            kind = move[0]
            if kind == RUN:
                _, thread, launches, feeds = move
                now = clock[thread] = self._held(clock[thread], launches) + host
                if not thread:
                    worked = worked + host
                for stream, work, row in feeds:
                    ends[stream] = maximum(ends[stream] + work * stretch, now + late[row])
                if launches:
                    self.pending.append((self.launched, [ends[stream] for stream, _, _ in feeds]))
            elif kind == WAIT:
                _, thread, only, streams, event, finding, call, wake, after, wait = move
                now = clock[thread] + host
                free = now + scale * call
                go_on = maximum((ends[only] if only != NONE else self._done(streams, event)) + wake, free)
                self.waits[finding] = self.waits.get(finding, self.nothing) + go_on - free
                clock[thread], spent = go_on + scale * after, scale * (call + after)
                if finding in self.gone:
                    spent = self._without(wait, thread, now, spent)
                if not thread:
                    worked = worked + (host + spent)
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

    def _without(self, wait: Wait, thread: int, now: Float64, spent: Any) -> Float64:
        """Pass the wait where it is removed; returns what the thread then spends there, which it else spends so."""
        gone = self.gone[wait.finding]
        left = self.scale * (wait.left_ns - self._read(wait))
        self.clock[thread] = np.where(gone, now + left, self.clock[thread])
        if wait.copy != NONE:
            saved = np.where(gone, self.stretch * wait.copy_ns, 0.0)
            self.ends[wait.copy], self.shorter = self.ends[wait.copy] - saved, self.shorter + saved
        then: Float64 = np.where(gone, left, spent)
        return then

    def _read(self, wait: Wait) -> Any:
        """What goes of the host's time with a removed wait, ns."""
        most = max(wait.read_ns, wait.op_ns)
        if isinstance(self.whole, bool):
            return most if self.whole else wait.read_ns
        return np.where(self.whole, most, wait.read_ns)

    def _done(self, streams: tuple[int, ...], event: int) -> Float64:
        """When what a wait is for is done."""
        if event != NONE:
            return self.events[event]
        done = [self.ends[stream] for stream in streams]
        return reduce(np.maximum, done) if done else self.nothing


def _of_each(values: Sequence[Any], which: Int64) -> Any:
    """Of each question its value, as a column; one that is the same for all as it is, which takes half the time."""
    return values[0] if len(set(values)) == 1 else np.array(values).take(which)


def _columns(of_replays: Sequence[list[float]], which: Int64) -> Any:
    """Numbers of the different replays as columns; of one replay as they are, which is the same for each question."""
    if len(of_replays) == 1:
        return of_replays[0]
    return _Columns(np.array(of_replays).T.copy(), which)
