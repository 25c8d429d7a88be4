"""From a Replay and many sets of removed findings to the steady state without each: one replay, with columns for times.

What each node does is arithmetic on completion times, the same for every set but at the waits that it removes. So many
sets are replayed for little more than one costs; the numbers are those of `replay`, bit for bit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from functools import reduce

import numpy as np

from syncscan.model.arrays import Bool, Float64
from syncscan.model.trace import NONE
from syncscan.whatif.graph import HostWait, Record, Run, StreamWait
from syncscan.whatif.replay import LAUNCH_QUEUE, MAX_CYCLES, MIN_CYCLES, STEADY, Replay, Scaled, Steady

MANY = 10
"""From so many sets on columns cost less than a replay each: numpy takes as long for one number as for a hundred."""


def foresee(replay: Replay, removals: Iterable[frozenset[int]], whole: bool = False) -> None:
    """Replay all steps without each of these sets of findings, so that `steady` knows the answers.

    Of few sets nothing is replayed yet: `steady` does it when it is asked.

    Args:
        replay: from `prepare`.
        removals: numbers of findings.
        whole: as of `steady`.
    """
    waiting = dict.fromkeys(removed & replay.waiting for removed in removals)
    asked = [gone for gone in waiting if gone and (None, gone, whole) not in replay.known]
    if len(asked) >= MANY:
        found = _replayed(replay, asked, whole)
        replay.known.update(((None, gone, whole), each) for gone, each in zip(asked, found, strict=True))


def _replayed(replay: Replay, removals: Sequence[frozenset[int]], whole: bool) -> list[Steady]:
    """The steady state without each set, once a cycle takes it as long as the one before."""
    states = _States(replay, removals, whole)
    found: list[Steady | None] = [None] * len(removals)
    ends, took = np.zeros_like(states.ended()), np.full(len(removals), -1.0)
    for cycle in range(MAX_CYCLES):
        states.begin_cycle()
        for program in replay.programs:
            states.step(program)
        before, ends, last = ends, states.ended(), took
        took = (ends - before).max(axis=0)
        steady = (cycle + 1 >= MIN_CYCLES) & (np.abs(took - last) <= STEADY * took) | (cycle + 1 == MAX_CYCLES)
        for at in np.flatnonzero(steady).tolist():
            found[at] = found[at] or states.steady(at, took.item(at))
        if None not in found:
            break
    return [each for each in found if each is not None]


class _States:
    """Completion times as of `replay.State`, in columns: one entry for each set of removed findings."""

    def __init__(self, replay: Replay, removals: Sequence[frozenset[int]], whole: bool) -> None:
        graph, self.replay, self.removals, self.whole = replay.graph, replay, removals, whole
        self.nothing = np.zeros(len(removals))
        self.clock = [self.nothing] * max(1, graph.threads)
        self.ends = [self.nothing] * max(1, len(graph.streams))
        self.events = [self.nothing] * max(1, graph.events)
        self.pending: deque[tuple[int, Float64]] = deque()
        self.launched = 0
        every = frozenset[int]().union(*removals)
        self.gone: dict[int, Bool] = {n: np.array([n in removed for removed in removals]) for n in every}
        """Finding → which of the sets it is in."""
        self.begin_cycle()

    def begin_cycle(self) -> None:
        """Nothing was waited for or worked yet."""
        self.waits: dict[int, Float64] = {}
        self.worked = self.shorter = self.nothing

    def ended(self) -> Float64:
        """When each thread and each stream is done, a row each."""
        return np.stack([*self.clock, *self.ends])

    def steady(self, at: int, took: float) -> Steady:
        """What the last cycle was like without the set at this place."""
        replay, count, removed = self.replay, len(self.replay.programs), self.removals[at]
        busy = replay.graph.busy_ns * replay.stretch - self.shorter.item(at) / count
        waits = {k: waited.item(at) / count for k, waited in self.waits.items() if k not in removed}
        return Steady(max(took / count, busy), waits, self.worked.item(at) / count, busy)

    def step(self, scaled: Scaled) -> None:
        """Advance by one program."""
        clock, ends, events = self.clock, self.ends, self.events
        for thread in range(1, len(clock)):
            clock[thread] = np.maximum(clock[thread], clock[0])
        for node, host in zip(scaled.program.nodes, scaled.hosts, strict=True):
            if type(node) is Run:
                self._run(node, host, scaled.late)
            elif type(node) is HostWait:
                self._wait(node, host)
            elif type(node) is Record:
                events[node.event] = ends[node.stream]
            elif type(node) is StreamWait:
                ends[node.stream] = np.maximum(ends[node.stream], events[node.event])

    def _run(self, node: Run, host: float, late: list[float]) -> None:
        self.launched += node.launches
        now = self.clock[node.thread] = self._queue(self.clock[node.thread]) + host
        if not node.thread:
            self.worked = self.worked + host
        last = self.nothing
        for feed in node.feeds:
            busy = self.ends[feed.stream] + feed.work_ns * self.replay.stretch
            end = self.ends[feed.stream] = np.maximum(busy, now + late[feed.row])
            last = np.maximum(last, end)
        if node.launches:
            self.pending.append((self.launched, last))

    def _queue(self, now: Float64) -> Float64:
        """When hosts that want to launch now can."""
        least = self.launched - LAUNCH_QUEUE
        while self.pending and self.pending[0][0] <= least:
            now = np.maximum(now, self.pending.popleft()[1])
        return now

    def _wait(self, node: HostWait, host: float) -> None:
        """Wait where the wait isn't removed, and pass it where it is."""
        wait, scale, thread = node.wait, self.replay.scale, node.thread
        now = self.clock[thread] + host
        free = now + scale * wait.call_ns
        go_on = np.maximum(self._done(node) + wait.wake_ns, free)
        self.waits[wait.finding] = self.waits.get(wait.finding, self.nothing) + go_on - free
        self.clock[thread] = go_on + scale * wait.after_ns
        spent: Float64 | float = scale * (wait.call_ns + wait.after_ns)
        if wait.finding in self.gone:
            gone = self.gone[wait.finding]
            left = scale * (wait.left_ns - (max(wait.read_ns, wait.op_ns) if self.whole else wait.read_ns))
            self.clock[thread] = np.where(gone, now + left, self.clock[thread])
            spent = np.where(gone, left, spent)
            if wait.copy != NONE:
                saved = np.where(gone, self.replay.stretch * wait.copy_ns, 0.0)
                self.ends[wait.copy], self.shorter = self.ends[wait.copy] - saved, self.shorter + saved
        if not thread:
            self.worked = self.worked + (host + spent)

    def _done(self, node: HostWait) -> Float64:
        """When what a wait is for is done."""
        if node.event != NONE:
            return self.events[node.event]
        done = [self.ends[stream] for stream in node.streams]
        return reduce(np.maximum, done) if done else self.nothing
