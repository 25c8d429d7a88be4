"""Watch a program's whole run: when its steps end, and which phases it consists of.

From the first step of a capture to its last the watch keeps when each ended, which costs some 100 ns, and samples
thinly where the program is, which costs 40 to 60 µs a sample. What the profiler disturbs is marked, so that it isn't
taken for the program's own time: the steps under it, those while traces are written and samples counted, and as many
behind those as the loader's workers have batches ready by then. The capture's work in all other steps (samples, and
what it does at a step's end) is timed, to be taken off their mean.
"""

from __future__ import annotations

import bisect
import itertools
import sys
import time
from array import array
from collections.abc import Iterable, Iterator, Sequence
from types import FrameType
from typing import Any

from syncscan.capture.device import prefetched
from syncscan.capture.stack_frames import TickStacks, is_ours, naming, of_program, outward
from syncscan.capture.stack_timer import NotSampled, Row, Ticks
from syncscan.capture.sync_lines import Json
from syncscan.facts.program_phases import Frame, Sample, SeenPhase, WatchedSteps, name_of, phases_of
from syncscan.facts.rhythm import median, period_of
from syncscan.source.loops import LoopLines, Loops

RATE = 29
"""Samples per second while nothing else is sampled: below 0.2 % of a step."""
STARTING = 3
"""First steps that don't count: kernels are loaded, algorithms chosen, memory allocated."""
SETTLING = 3
"""Uncounted steps after the capture's own pauses, until the device has queued work again."""
PATH_AT = 2
"""The step at whose end the stack is examined for where steps end."""
MOST_STEPS = 1 << 17
"""Most steps whose single times are written to the trace."""
MOSTLY = 0.6
"""Least fraction of the undisturbed time in its longest interval for shares to be based on that interval only."""
CYCLES = 2
"""Recurrences of a phase from which shares are based on whole cycles."""
MOST_PHASES = 24


class RunWatch:
    def __init__(self, *, sampled: bool) -> None:
        self._ends = array("q")
        self._sampled = sampled
        self._ticks: Ticks | None = None
        self._rows: list[tuple[int, int, Sequence[Any]]] = []
        self._samplings: list[tuple[int, int]] = []
        self._pauses: list[tuple[int, int]] = []
        """When the capture took a sample, or was at work at a step's end, and for how long (ns)."""
        self._disturbed: list[tuple[int, int, str]] = [(0, STARTING, "starting")]
        self._since: tuple[int, str] | None = None
        self._path: tuple[Frame, ...] = ()

    @property
    def steps(self) -> int:
        return max(0, len(self._ends) - 1)

    def start(self) -> None:
        """Mark the begin of the first step."""
        self.mark()
        self.sample()

    def mark(self) -> None:
        """Mark the end of a step, and the begin of the next."""
        self._ends.append(time.monotonic_ns())
        if len(self._ends) == PATH_AT + 1:
            self._path = _path(sys._getframe(1))

    def resume(self) -> None:
        """Note that the program goes on: from the step's end until now the capture was at work."""
        self._pauses.append((self._ends[-1], time.monotonic_ns() - self._ends[-1]))

    def sample(self) -> None:
        """Start sampling, where that is wanted and possible."""
        if not self._sampled or self._ticks is not None:
            return
        try:
            self._ticks = Ticks(RATE, time.monotonic_ns)
            self._ticks.start()
        except NotSampled:
            self._ticks = None

    def rest(self) -> None:
        """Pause sampling: the profiler runs, or another sampler."""
        ticks, self._ticks = self._ticks, None
        if ticks is not None:
            self.add(ticks.stop(), 1_000_000_000 // RATE, ticks.spent)

    def sample_ns(self) -> float:
        """Return how long the thread is busy with a sample, in ns, as the median of those so far; 0.0 without any."""
        return float(median([ns for _, ns in self._samplings])) if self._samplings else 0.0

    def add(self, rows: Iterable[Row], period_ns: int, spent: Iterable[tuple[int, int]] = ()) -> None:
        """Add samples: number of ticks, stack as in `Ticks`, and time; and when taking each was how much work (ns)."""
        self._samplings += spent
        self._rows += [(_moment(read), count * period_ns, stack) for count, stack, read in rows]

    def disturb(self, why: str) -> None:
        if self._since is None:
            self._since = (self.steps, why)

    def end_disturbance(self) -> None:
        """Mark the end of the disturbance in the current step, or with the last one."""
        if self._since is not None:
            (first, why), self._since = self._since, None
            self._disturbed.append((first, self.steps + 1 + SETTLING + prefetched(), why))

    def close(self) -> None:
        ticks, self._ticks = self._ticks, None
        if ticks is not None:
            ticks.close()

    def times(self) -> list[int]:
        return [b - a for a, b in zip(self._ends, self._ends[1:], strict=False)]

    def period(self) -> int:
        """Return the period in steps with which they repeat, as far as known by now."""
        return period_of([time for time, counts in zip(self.times(), self._counts(), strict=True) if counts])

    def seen(self) -> tuple[list[SeenPhase], tuple[int, LoopLines] | None]:
        """Return the phases of the run, and the steps' loop with the index of its function."""
        steps = WatchedSteps(self._ends, self._counts(), self._path, self.period())
        phases, around = phases_of(steps, self._samples(), Loops())
        return phases[:MOST_PHASES], around

    def record(self) -> Json | None:
        """Return the run's metadata for a trace, under "run"; None where no step has ended.

        It has `steps_us`, the time of each step; `disturbed`, rows of the first step, the first after it, and why;
        `loop`, the lines whose iterations are the steps (null if unknown); `window`, the first step and the first after
        those that shares are taken of, `sampled_us`, how long they were sampled, and `own_us`, how long the capture was
        at work in them; `phases`, each with kind, name, place, `us` (of `sampled_us`) and `at` (the steps in which
        it was met).
        """
        if not self.steps:
            return None
        self.rest()
        disturbed = [*self._disturbed, *([(self._since[0], self.steps, self._since[1])] if self._since else [])]
        (phases, around), counts, named = self.seen(), self._counts(), naming()
        first, end = window(counts, self.times(), [self._met(phase) for phase in phases])

        def inside(samples: Iterable[Sample]) -> float:
            numbers = ((self._at(sample.at), sample.ns) for sample in samples)
            return round(sum(ns for k, ns in numbers if first <= k < end and counts[k]) / 1e3, 1)

        return {
            "steps": self.steps,
            "steps_us": [round(ns / 1e3, 1) for ns in self.times()[:MOST_STEPS]],
            "disturbed": [list(row) for row in disturbed if row[0] < self.steps],
            "loop": None if around is None else self._loop(*around),
            "window": [first, end],
            "sampled_us": inside(self._samples()),
            "own_us": self._own_us(first, end, counts),
            "phases": [
                {
                    "kind": phase.kind.value,
                    "name": phase.name,
                    "file": named(phase.place.code.co_filename),
                    "function": name_of(phase.place.code),
                    "first": phase.place.first,
                    "last": phase.place.last,
                    "us": inside(phase.samples),
                    "at": self._met(phase),
                }
                for phase in phases
            ],
        }

    def _counts(self) -> list[bool]:
        counts = [True] * self.steps
        for first, end, _ in self._disturbed:
            for number in range(first, min(end, self.steps)):
                counts[number] = False
        if self._since is not None:
            counts[self._since[0] :] = [False] * len(counts[self._since[0] :])
        return counts

    def _samples(self) -> list[Sample]:
        """Return the program's samples from the first step's begin to the last one's end."""
        if not self._ends:
            return []
        frames = TickStacks()
        inside = (row for row in self._rows if self._ends[0] <= row[0] <= self._ends[-1])
        samples = (Sample(at, ns, of_program(frames(stack))) for at, ns, stack in inside)
        return sorted(sample for sample in samples if sample.stack)

    def _own_us(self, first: int, end: int, counts: Sequence[bool]) -> float:
        """Return how long the capture was at work in these steps, as far as they count.

        A sample, and a step's end, each count as the median one: others on the machine's cores make single ones longer,
        as they do with what the program does.
        """
        total = 0.0
        for works in (self._samplings, self._pauses):
            numbers = ((self._at(at), ns) for at, ns in works)
            inside = [ns for k, ns in numbers if first <= k < end and counts[k]]
            total += len(inside) * median(inside) if inside else 0.0
        return round(total / 1e3, 1)

    def _loop(self, depth: int, loop: LoopLines) -> Json:
        code = self._path[depth][0]
        return {"file": naming()(code.co_filename), "function": name_of(code), "first": loop.first, "last": loop.last}

    def _met(self, phase: SeenPhase) -> list[int]:
        return sorted({self._at(sample.at) for sample in phase.samples} - {-1})

    def _at(self, moment: int) -> int:
        """Return the step that the moment lies in; -1 outside of all."""
        number = bisect.bisect_right(self._ends, moment) - 1
        return number if number < self.steps else -1


def window(counts: Sequence[bool], times: Sequence[int], met: Iterable[Sequence[int]]) -> tuple[int, int]:
    """Return the first step and the exclusive end that the run's shares and mean are based on.

    They are the longest interval of undisturbed steps, if it has most of them; and of it whole cycles, from one time
    that a phase came to another. `counts` says of each step whether it is undisturbed; `met` has for each phase, the
    longest first, the steps that it was met in.
    """
    stretches = list(_stretches(counts))
    if not stretches:
        return 0, len(counts)
    longest = max(stretches, key=lambda stretch: sum(times[slice(*stretch)]))
    whole = sum(time for time, counted in zip(times, counts, strict=True) if counted)
    first, end = longest
    if sum(times[first:end]) < MOSTLY * whole:
        return stretches[0][0], stretches[-1][1]
    for steps in met:
        begins = [k for k in steps if first <= k < end and k - 1 not in steps]
        if len(begins) >= CYCLES + 1:
            return begins[0], begins[-1]
    return first, end


def _stretches(counts: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """Yield each run of consecutive steps that count."""
    end = 0
    for counted, group in itertools.groupby(counts):
        first, end = end, end + len(list(group))
        if counted:
            yield first, end


def _moment(read: Any) -> int:
    return int(read if isinstance(read, int) else read.at)


def _path(frame: FrameType) -> tuple[Frame, ...]:
    """Return the program's path to the call that ends a step, outermost first."""
    frames = [(f.f_code, f.f_lineno) for f in outward(frame)]
    inner = next((k for k, (code, _) in enumerate(frames) if not is_ours(code.co_filename)), len(frames))
    return of_program(frames[inner:][::-1])
