"""Unfold one replayed step: each launch with the time at which it would run.

`replay` advances whole runs of launches at once. This repeats one step until nothing changes any more and unfolds its
runs; a run's last launch on a stream ends exactly where the replay puts the stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from syncscan.model.arrays import Float64, Int64
from syncscan.model.interval import Interval
from syncscan.model.projection import Blocked, Schedule
from syncscan.model.trace import NONE
from syncscan.whatif.graph import RUN, WAIT, Move
from syncscan.whatif.replay import Pace, Replay, ReplayState
from syncscan.whatif.replayed_steps import ReplayedSteps


def _nearest(steps: Sequence[Interval], at: int | None) -> int:
    """Return the number of the step around this time (ns), or the nearest; the middle one without a time."""
    if at is None:
        return len(steps) // 2
    return min(range(len(steps)), key=lambda k: max(steps[k].begin - at, at - steps[k].end + 1, 0))


class _Moment(msgspec.Struct, frozen=True, eq=False):
    """A run, the time of its thread after it, and the times of the streams before it; replayed ns."""

    thread: int
    launches: int
    feeds: tuple[tuple[int, float, int], ...]
    clock: float
    ends: list[float]


class _Pause(msgspec.Struct, frozen=True):
    """A wait of the step's own thread, or a launch that the full queue delayed; replayed ns."""

    finding: int
    recorded: tuple[int, int] | None
    """The wait in the trace, ns on its clock; None for a full queue."""
    begin: float
    blocked: float
    """How long it is blocked; 0 for a removed wait."""
    end: float
    """When the thread goes on."""


class _Recorder(ReplayState):
    """A replay's state that records its runs, and the pauses of the step's own thread."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.moments: list[_Moment] = []
        self.pauses: list[_Pause] = []

    def _advance(self, moves: Sequence[Move], hosts: list[float], late: list[float], removed: frozenset[int]) -> None:
        for move, host in zip(moves, hosts, strict=True):
            before, on_main_thread = list(self.ends), move[0] in (RUN, WAIT) and move[1] == 0
            since, waited = self.clock[0], self.waits.get(move[3], 0.0) if move[0] == WAIT else 0.0
            super()._advance((move,), [host], late, removed)
            if move[0] == RUN:
                _, thread, launches, feeds = move
                self.moments.append(_Moment(thread, launches, feeds, self.clock[thread], before))
            if on_main_thread:
                self._pause(move, since, host, waited)

    def _pause(self, move: Move, since: float, host: float, waited: float) -> None:
        """Record what delays the step's thread in this move, which began at `since` with `host` ns of its own work.

        The move's finding had `waited` ns before it.
        """
        if move[0] == WAIT:
            finding, interval = move[3], move[7].interval
            blocked = self.waits.get(finding, 0.0) - waited
            self.pauses.append(_Pause(finding, (interval[0], interval[1]), since + host, blocked, self.clock[0]))
        elif (held := self.clock[0] - host - since) > 0.0:
            self.pauses.append(_Pause(NONE, None, since, held, since + held))


class StepSchedules:
    """Unfolds the steps of one replay; where steps are changed, times are in proportion to the replay `as_recorded`."""

    def __init__(self, steps: ReplayedSteps, replay: Replay, as_recorded: Replay | None = None) -> None:
        self.steps, self.replay, self.as_recorded = steps, replay, as_recorded or replay

    def schedule(self, at: int | None, removed: frozenset[int]) -> Schedule:
        """Return the replayed step around this time (ns), or the nearest to it, without these findings."""
        number = _nearest(self.steps.intervals, at)
        zero, moments, pauses, done, length = _moments(self.replay, number, removed)
        begin, end = self.steps.intervals[number]
        factor = (end - begin) / _moments(self.as_recorded, number, frozenset())[-1]
        unfolded = [_NOTHING, *self._unfold(number, moments)]
        rows, start, finish, host = (list(c) for c in zip(*unfolded, strict=True))
        met = [(p.recorded, (p.begin, p.end)) for p in pauses if p.recorded]
        fixed_times = np.concatenate([[begin], *(h[0] for h in host), *(m[0] for m in met), [end]]).astype(np.int64)
        times = np.concatenate([[zero], *(h[1] for h in host), *(m[1] for m in met), [done]])
        order = np.argsort(fixed_times, kind="stable")

        def clock(t: Float64) -> Int64:
            return begin + np.rint((t - zero) * factor).astype(np.int64)

        starts, ends = clock(np.concatenate(start)), clock(np.concatenate(finish))
        replayed_end = int(clock(np.array([zero + length]))[0])
        return Schedule(
            begin=begin,
            end=end,
            replayed_end=replayed_end,
            rows=np.concatenate(rows),
            start=self._within(starts, begin, replayed_end),
            dur=ends - starts,
            tracks=tuple(t for t, thread in self.steps.threads.items() if thread == 0),
            host_from=fixed_times[order],
            host_to=np.maximum.accumulate(clock(times[order])),
            host_end=min(int(clock(np.array(done))), replayed_end),
            blocked=tuple(
                Blocked(
                    finding=p.finding,
                    recorded=p.recorded[0] if p.recorded else NONE,
                    begin=int(clock(np.array(p.begin))),
                    end=int(clock(np.array(p.begin + p.blocked))),
                )
                for p in pauses
                if p.blocked > 0.0
            ),
        )

    def _within(self, starts: Int64, begin: int, end: int) -> Int64:
        """Return these times within the step, as every step of the steady state equals the one before."""
        if not self.steps.marked or end <= begin:
            return starts
        return begin + (starts - begin) % (end - begin)

    def _unfold(
        self, number: int, moments: Sequence[_Moment]
    ) -> Iterator[tuple[Int64, Float64, Float64, tuple[Int64, Float64]]]:
        """Yield per run: rows, starts and ends of its launches, and the host's known times (recorded, replayed)."""
        work, scaled = self.steps.launches, self.replay.programs[number]
        at = int(np.searchsorted(work.issued, self.steps.intervals[number].begin))
        for m in moments:
            lo, at = at, at + m.launches
            streams = work.stream[lo:at]
            for stream, _, row in m.feeds:
                own_launches = lo + np.flatnonzero(streams == stream)
                first = int(scaled.program.late_first[row])
                calls = m.clock + self.replay.scale * scaled.program.late_host[first : first + len(own_launches)]
                start, finish = self._stream(own_launches, calls, m.ends[stream])
                own = m.thread == 0
                yield work.rows[own_launches], start, finish, (work.returned[own_launches], calls) if own else _NOWHERE

    def _stream(self, places: Int64, calls: Float64, end: float) -> tuple[Float64, Float64]:
        """Return the times of a run's launches on one stream, each after its call and after the work before it."""
        work, stretch = self.steps.launches, self.replay.stretch
        early = calls + stretch * work.latency[places]
        gap = stretch * work.gap[places]
        length = stretch * (work.end - work.start)[places]
        start = np.empty(len(places))
        for k in range(len(places)):
            start[k] = max(early[k], end + gap[k])
            end = start[k] + length[k]
        return start, start + length


def _moments(
    replay: Replay, number: int, removed: frozenset[int]
) -> tuple[float, list[_Moment], list[_Pause], float, float]:
    """Return when the step's thread began, its runs, its pauses, when it was done, and the step's length.

    Of a step that repeats.
    """
    state, program = _Recorder.of(replay), replay.programs[number]
    state.lead_in(program, removed)
    pace = Pace(state.mark())
    while not pace.steady:
        state.moments, state.pauses, zero = [], [], state.clock[0]
        state.step(program, removed)
        pace.cycle(state.mark())
    return zero, state.moments, state.pauses, state.clock[0], pace.took


_NOWHERE = (np.zeros(0, np.int64), np.zeros(0))
_NOTHING = (np.zeros(0, np.int64), np.zeros(0), np.zeros(0), _NOWHERE)
"""Unfolded form of a step without launches."""
