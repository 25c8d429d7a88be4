"""Sample the functions and resource use of the step's thread, in steps without other instrumentation.

They are the last steps of a capture, after its cycles. Before the cycles they would eat the steps of a short script
that the recording needs, and how many are left nobody knows: a script that ends while it is sampled would leave no
trace at all. Here it leaves a whole trace that lacks the tree. What a cycle switches on is off by then, and a step
takes as long as before it. The trace is written first and gets the tree added, so that nothing that happens meanwhile
can cost it.

The timed steps come long before and stay without a sampler, so their time is undisturbed. The sampled ones are timed by
the same clock: the cost of sampling follows from both.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Sequence

from syncscan.capture.device import StepTimer
from syncscan.capture.stack_frames import TickStacks, naming, of_program
from syncscan.capture.stack_timer import NotSampled, Row, Ticks
from syncscan.capture.sync_lines import Interned, Json
from syncscan.capture.thread_usage import Meter, Read, UsageDifference, ran
from syncscan.capture.thread_usage import between as spans
from syncscan.facts.program_phases import Frame, name_of
from syncscan.model.libraries import is_library
from syncscan.model.step_times import StepTimes

RATE = 193
"""Samples per second. Each costs 40 to 60 µs (2 cores, a virtual machine), together 0.7 to 1.1 % of a step; five
seconds of them determine a share of 50 % to within 3.2 points and one of 5 % to within 1.4 (twice the binomial
deviation). A prime, so that no step's length is a multiple of its period."""
RATES = (RATE, 139, 97, 67)
"""Rates to choose from: the highest at which the samples' own work takes at most `COST` of the time, else the lowest.
On a host that handles signals slowly, 193 samples would lengthen a step by several percent; 67 determine a share of
50 % to within 5.5 points in five seconds."""
COST = 0.01
SETTLE = 3
"""Uncounted steps at first: the device ran dry while the trace was written."""
LEAST_STEPS = 3
LONGEST_S = 10.0
"""Sampling time from which one whole step is enough."""
LEAST_SAMPLES = 100
"""Least samples; with fewer, a share of a half is known no better than to ±10 points."""
TIMED = 40
"""First sampled steps that are timed one by one. An event at a step's end makes steps 65 to 100 µs longer on the host
of an H100 (12 % of 0.54 ms), half of it outside of the capture's own code; without, they are as long as in a plain run.
"""
MOST_NODES = 20_000
"""Most nodes; with endless recursion, deeper frames count for the callers."""

MOST_PLACES = 20
"""Most places of another thread that are kept, most frequent first."""

Place = tuple[str, str, int]
"""File, function, line."""
Node = list[int]
"""Parent, frame, line, samples, ns that the thread was stopped by others, pages that it touched first, ns in system
code meanwhile."""


class Sampling:
    """Samples the thread that creates it, the main one: a few steps to settle, then steps for `seconds`.

    These are at least so long, from a step's end to a step's end. `stack_ns` is how long the thread is busy with the
    stack of a sample, as far as known.
    """

    def __init__(self, seconds: float, stack_ns: float = 0.0) -> None:
        self._seconds = seconds
        self._meter = Meter()
        self.rate = rate_of(stack_ns + self._meter.cost_ns())
        self._ticks = Ticks(self.rate, self._meter.read)
        self._clock = StepTimer(TIMED, begin=False)
        self._times: StepTimes | None = None
        self._settle = SETTLE
        self._steps = -1
        self._began = 0.0
        self._first: Read | None = None
        self._ended = 0
        self.rows: list[Row] = []
        """The samples, once sampling is over."""
        self.spent = self._ticks.spent
        """When each tick came, and how long the thread was busy with it, as in `Ticks`."""

    @property
    def period_ns(self) -> int:
        return 1_000_000_000 // self.rate

    def step(self) -> bool:
        """Handle the end of a step; return whether the next one is sampled too."""
        if self._settle:
            self._settle -= 1
        if self._settle:
            return True
        self._steps += 1
        if self._times is None:
            self._clock.mark()
            if self._steps == TIMED:
                self._times = self._clock.end()
        self._ended = time.monotonic_ns()
        if self._steps:
            self._meter.follow()
        if not self._steps:
            self._first = self._meter.start()
            self._began = time.perf_counter()
            self._ticks.start()
            return True
        took = time.perf_counter() - self._began
        return took < self._seconds or (self._steps < LEAST_STEPS and took < LONGEST_S)

    def finish(self, between: Callable[[Sequence[Row]], Container[int]] = lambda rows: ()) -> Json:
        """End sampling, and return its table, stored under "host" in the capture's metadata; `NotSampled` if too short.

        It has `rate` (samples per second), `steps`, `samples`, `step_us` (the median time of a sampled step), `frames`
        ([file, function]) and `nodes`, callers first: [parent, frame, line, samples in this function itself, ns that
        the thread was off its core while others ran, pages that it touched first, ns in the system's code where it
        touched some], where parent is an index into `nodes`, -1 for none, and frame one into `frames`; `used`, what all
        samples together saw of the thread, and `threads`, the others that ran.

        `between` tells of all that was sampled which moments are no step's, but of a phase between steps.
        """
        self.rows = self._ticks.stop()
        if self._steps < 1 or self._first is None:
            raise NotSampled("the program ended before a step was sampled.")
        rows, without = list(_until(self._ended, self.period_ns, self.rows)), between(self.rows)
        times = self._times or self._clock.end()
        whole = zip(rows, spans([self._first, *(read for *_, read in rows)]), strict=True)
        pairs = [(row, part) for row, part in whole if row[2].at not in without]
        samples, parts = [row for row, _ in pairs], [part for _, part in pairs]
        frames, nodes = tree(_stacks(samples, parts))
        count = sum(node[3] for node in nodes)
        if count < LEAST_SAMPLES:
            raise NotSampled(f"{count} samples are too few; {LEAST_SAMPLES} are needed. Let it run longer.")
        return {
            "rate": self.rate,
            "steps": self._steps,
            "samples": count,
            "step_us": round(times.typical, 3),
            "frames": frames,
            "nodes": nodes,
            "used": self._thread_use(parts),
            "threads": _threads(self._meter.names, samples, parts),
        }

    def _thread_use(self, parts: Sequence[UsageDifference]) -> Json:
        """Return what the thread used from the first sample to the last.

        That is `wall_ns`, `off_ns` (off its core), `delayed_ns` (of that waiting for a core, null where that isn't
        known), `faults` (pages touched first), `fault_ns` (what one costs on this machine, null where none is counted)
        and `huge` (huge pages that were made meanwhile for any process, null where that isn't known).
        """
        return {
            "wall_ns": sum(part.wall for part in parts),
            "off_ns": sum(part.off for part in parts),
            "delayed_ns": self._meter.delayed_ns(),
            "faults": sum(part.faults for part in parts),
            "huge": self._meter.huge_pages(),
            "fault_ns": self._meter.fault_ns(),
        }

    def close(self) -> None:
        self._ticks.close()


def rate_of(work_ns: float) -> int:
    """Return how many samples a second are taken where each takes so many ns of the thread."""
    return next((rate for rate in RATES if rate * work_ns <= COST * 1e9), RATES[-1])


def _until(end: int, period_ns: int, rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the rows up to a time: what the program does after its last step belongs to no step."""
    for count, stack, read in rows:
        late = max(0, read.at - end) // period_ns
        if late < count:
            yield count - late, stack, read


def tree(samples: Iterable[tuple[Sequence[int], Sequence[Frame]]]) -> tuple[list[list[str]], list[Node]]:
    """Return the frames and nodes of these samples, as in `Sampling.finish`, without those of the capture itself.

    A sample is a stack, outermost first, with the numbers that are added up in its node: how often it was met, and what
    else there is to count.
    """
    frames: Interned[tuple[str, str]] = Interned()
    nodes: dict[tuple[int, int, int], int] = {}
    self_counts: list[list[int]] = []
    named = naming()
    for counts, stack in samples:
        at = -1
        for code, line in of_program(stack):
            key = (at, frames[named(code.co_filename), name_of(code)], line)
            if key not in nodes and len(nodes) >= MOST_NODES:
                break
            at = nodes.setdefault(key, len(nodes))
            self_counts += [[0] * len(counts) for _ in range(len(nodes) - len(self_counts))]
        if at >= 0:
            self_counts[at] = [a + b for a, b in zip(self_counts[at], counts, strict=True)]
    return [list(frame) for frame in frames], [[*key, *n] for key, n in zip(nodes, self_counts, strict=True)]


def _stacks(samples: Sequence[Row], parts: Sequence[UsageDifference]) -> list[tuple[list[int], tuple[Frame, ...]]]:
    """Return each distinct stack, outermost first, with the totals of its node."""
    frames = TickStacks()
    counts: dict[tuple[Frame, ...], list[int]] = {}
    for (count, stack, _), part in zip(samples, parts, strict=True):
        totals = counts.setdefault(tuple(frames(stack)), [0, 0, 0, 0])
        for k, more in enumerate((count, part.stopped, part.faults, part.touching)):
            totals[k] += more
    return [(numbers, stack) for stack, numbers in counts.items()]


def _threads(names: dict[int, str], samples: Sequence[Row], parts: Sequence[UsageDifference]) -> list[Json]:
    """Return the other threads that ran, busiest first.

    Each has `name`, `ran_ns`, `beside_ns` (of that, while the step's thread was off its core) and `places` ([file,
    function, line, how often it was met there]): the program's innermost function where there is one.
    """
    frames, met = TickStacks(), defaultdict[int, Counter[Place]](Counter)
    for _, _, read in samples:
        for thread, stack in read.stacks.items():
            met[thread][_innermost(frames(stack))] += 1
    files = naming()
    return [
        {
            "name": names.get(thread, ""),
            "ran_ns": ns,
            "beside_ns": beside,
            "places": [[files(file), *place, n] for (file, *place), n in met[thread].most_common(MOST_PLACES)],
        }
        for thread, (ns, beside) in sorted(ran(parts).items(), key=lambda item: -item[1][0])
        if ns
    ]


def _innermost(stack: Sequence[Frame]) -> Place:
    """Return the program's innermost place, else the innermost of all."""
    code, line = next((frame for frame in reversed(stack) if not is_library(frame[0].co_filename)), stack[-1])
    return code.co_filename, name_of(code), line
