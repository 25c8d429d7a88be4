"""How far a host wanders by itself, and whether what a capture says of its steps is as sure as it says.

    python -m benchmarks.wandering record FILE [PROCESSES] [--seconds S]     on a GPU: times of fresh processes
    python -m benchmarks.wandering table FILE                                anywhere: what they tell

Processes that capture twice and processes that only time their steps take turns, one transformer's step in all of them.
Each times blocks of steps before, between and after, as anyone would, and forty single steps five times: by captures or
as captures do. Printed are the ratios of both kinds of processes; how often the median of the next forty steps lies
where the one before said; and how often `syncscan diff` would call two recordings of this one step a change.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import torch

import syncscan
from benchmarks.after_capture import told_with_spread
from benchmarks.capture_cost import transformer
from benchmarks.capture_steps import Step, mean_ms
from syncscan.capture.device import StepTimer
from syncscan.gate.differences import Spread
from syncscan.gate.state_diff import NORMAL, _host_again, difference
from syncscan.load import load
from syncscan.model.step_times import StepTimes

STEPS, BLOCKS, BLOCK = 40, 25, 10
"""Single steps that are timed at once; blocks, and the steps of one."""
Steps = Sequence[float]


class Process(msgspec.Struct, frozen=True):
    """The times of one process, µs."""

    captures: bool
    blocks: tuple[float, float, float]
    """The lower quartile of the blocks before, between and after, a step."""
    single: tuple[tuple[float, ...], ...]
    """Five times the single steps, of which the second and the fourth are the captures' own."""

    @property
    def ratios(self) -> tuple[float, float, float]:
        """After one capture, after two, and the second's unprofiled time of the first's."""
        before, one, two = self.blocks
        return one / before, two / before, statistics.median(self.single[3]) / statistics.median(self.single[1])


def blocks(step: Step) -> float:
    """The lower quartile of blocks of steps, µs a step."""
    return statistics.quantiles([1e3 * mean_ms(step, BLOCK) for _ in range(BLOCKS)], n=4)[0]


def plain(step: Step) -> tuple[float, ...]:
    """Single steps, timed as a capture does."""
    calibration = StepTimer(STEPS)
    for _ in range(STEPS):
        step()
        calibration.mark()
    return calibration.end().each


def process(captures: bool, report: Any) -> None:
    """One of them."""
    step, matches, single = transformer(), [], list[Any]()
    for _ in range(20):
        step()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(3):
            matches.append(blocks(step))
            single.append(plain(step))
            if number == 2:
                break
            if not captures:
                single.append(plain(step))
                time.sleep(2)  # about what a capture writes
                continue
            with syncscan.profile(folder, calibrate=STEPS, notify=lambda _: None) as session:
                while not session.done:
                    step()
                    session.step()
            single.append(session.paths[0])
        read = [load(one).info.capture.unprofiled_steps_us if isinstance(one, Path) else one for one in single]
    report.put(msgspec.to_builtins(Process(captures, (matches[0], matches[1], matches[2]), tuple(map(tuple, read)))))


def record(file: Path, count: int, seconds: float) -> None:
    """Run so many processes of each kind, none begun after so many seconds; what is known is kept after each."""
    fork, until, samples = multiprocessing.get_context("fork"), time.monotonic() + seconds, list[Any]()
    for number in range(2 * count):
        if time.monotonic() > until:
            break
        report = fork.SimpleQueue()
        child = fork.Process(target=process, args=(number % 2 == 0, report))
        child.start()
        child.join()
        if child.exitcode:
            raise SystemExit("A process failed, see above.")
        samples.append(report.get())
        file.write_text(json.dumps(samples))


def differ(a: Steps, b: Steps) -> float:
    """By what the medians of two times forty steps differ, µs."""
    return abs(statistics.median(a) - statistics.median(b))


def claimed(a: Steps, b: Steps, within: Callable[[StepTimes], float]) -> float:
    """Within what both say that difference lies, µs."""
    return math.hypot(*(within(StepTimes(0.0, tuple(steps), "")) for steps in (a, b)))


def by_spread(times: StepTimes) -> float:
    """Return the error of the mean if each step were independent of the one before, µs."""
    quartiles = times.quartiles
    return times._of_steps(*quartiles) if quartiles else math.inf


def by_all(times: StepTimes) -> float:
    """Return the error that a capture states, µs."""
    return (times.uncertainty or 0.0) * times.typical


def margin(a: Steps, b: Steps, *, wanders: bool) -> float:
    """Return the margin of `diff` for a step that its host bounds, µs; also without wandering hosts."""
    again = [(_host_again(steps) if wanders else _host_again(())) * statistics.fmean(steps) for steps in (a, b)]
    return math.hypot(difference(Spread.of(a), Spread.of(b)), NORMAL * math.hypot(*again))


def share(pairs: Iterable[tuple[Steps, Steps]], beyond: Callable[[Steps, Steps], float]) -> str:
    """How many of the pairs differ by more, of how many."""
    matches = [differ(a, b) > beyond(a, b) for a, b in pairs]
    return f"{statistics.fmean(matches):.0%} of {len(matches)}"


def _any_two(column: Sequence[Steps]) -> Iterable[tuple[Steps, Steps]]:
    return itertools.combinations(column, 2)


def table(processes: Sequence[Process]) -> None:
    """Return the results as a table."""
    print("| | processes | after one capture | after two | second unprofiled time, of the first | largest of them |")
    print("|---|--:|--:|--:|--:|--:|")
    for captures, name in ((True, "with captures"), (False, "without any")):
        matches = [one.ratios for one in processes if one.captures is captures]
        logs = [[math.log(ratio) for ratio in column] for column in zip(*matches, strict=True)]
        messages = [f"{told_with_spread(column)} ({statistics.stdev(column):.2f})" for column in logs]
        largest = math.exp(statistics.fmean(max(row) for row in zip(*logs, strict=True)))
        print(f"| {name} | {len(matches)} | {' | '.join(messages)} | {largest:.2f} |")
    following = [pair for one in processes for pair in itertools.pairwise(one.single)]
    print()
    for name, within in (("by their spread alone", by_spread), ("as a capture says", by_all)):
        claim = statistics.median(
            within(StepTimes(0.0, steps, "")) / statistics.median(steps) for one in processes for steps in one.single
        )
        missed = share(following, lambda a, b, within=within: claimed(a, b, within))  # type: ignore[misc]
        print(f"forty steps {name}: ±{claim:.1%} in the middle; the next forty lie elsewhere in {missed}")
    alike = list(zip(*(one.single for one in processes), strict=True))  # what each timed as its first, as its second, …
    for name, paired in (("one after the other", itertools.pairwise), ("any two", _any_two)):
        pairs = [pair for column in alike for pair in paired(column)]
        independent, now = (
            share(pairs, lambda a, b, wanders=wanders: margin(a, b, wanders=wanders))  # type: ignore[misc]
            for wanders in (False, True)
        )
        print(f"two processes, {name}: called a change in {now}; as if hosts didn't wander in {independent}")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("record", "table"))
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("processes", nargs="?", type=int, default=26, metavar="PROCESSES", help="of each kind")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no process after so long")
    arguments = parser.parse_args()
    if arguments.what == "record":
        if torch.cuda.device_count() == 0:  # asked of NVML: asking CUDA would keep forked processes from using it
            parser.error("this measures on a GPU, and there is none.")
        record(arguments.file, arguments.processes, arguments.seconds)
    table(msgspec.json.decode(arguments.file.read_bytes(), type=list[Process]))


if __name__ == "__main__":
    main()
