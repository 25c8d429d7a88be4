"""Is a process as fast after a capture as before? `python -m benchmarks.after_capture [ROUNDS]`, on a GPU.

A host that others share drifts by a third within seconds, with captures and without. So each step is timed together
with a loop of Python beside it, on the one core that the process keeps to, and counts by how many of that loop's times
it took; and of each round's two fresh processes, at the same moment and each on a GPU of its own where there are two,
one captures twice and the other runs plain steps instead. Printed is, for each program, what became of the step after
one capture and after two, and how much of it plain steps don't have: the rounds' mean with twice its standard error.
A third row sets both captures' own unprofiled steps beside the plain ones around them.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import math
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch

import syncscan
from benchmarks.capture_cost import read_backs, small_ops, transformer
from benchmarks.capture_steps import Step, mean_ms


class Phase(NamedTuple):
    """A median step in loops and in ms, and the median loop in ms."""

    loops: float
    ms: float
    loop_ms: float


@dataclass(frozen=True, slots=True)
class Run:
    """A process: its phases before, after one and after two captures, and what it timed in those, of those around."""

    before: Phase
    after: tuple[Phase, Phase]
    between: tuple[float, float]


PROGRAMS: dict[str, Callable[[], Step]] = {make.__name__: make for make in (transformer, read_backs, small_ops)}
STEPS = 100
"""Timed before, between and after captures."""
LOOP = 12_000
"""Turns of the loop, some 1 ms."""
CALIBRATED, OTHERS = 40, 11
"""Steps that a capture times, and those that it settles, waits, warms up and records in besides."""


def loop_s() -> float:
    """How long a loop takes that keeps nothing: how memory lies, which a capture changes, is nothing to it."""
    began = time.perf_counter()
    total = 0
    for k in range(LOOP):
        total += k * k
    return time.perf_counter() - began


def phase(step: Step) -> Phase:
    """Time some steps, each between two loops."""
    loops, ms, alone = [], [], []
    before = loop_s()
    for _ in range(STEPS):
        torch.cuda.synchronize()
        began = time.perf_counter()
        step()
        torch.cuda.synchronize()
        taken = time.perf_counter() - began
        after = loop_s()
        loops.append(2 * taken / (before + after))
        ms.append(taken * 1e3)
        alone.append(after * 1e3)
        before = after
    return Phase(*map(statistics.median, (loops, ms, alone)))


def capture(step: Step, folder: str) -> float:
    """Capture steps; the unprofiled time of one, ms."""
    with syncscan.profile(folder, calibrate=CALIBRATED, notify=lambda _: None) as session:
        while not session.done:
            step()
            session.step()
    if session.step_us is None or not session.paths:
        raise RuntimeError(f"nothing was captured: {session.failed}")
    return session.step_us / 1e3


def plain(step: Step) -> float:
    """Run as many steps as a capture; what one takes, ms."""
    return mean_ms(step, CALIBRATED + OTHERS)


def one(program: str, captures: bool, core: int, gpu: int, report: Any) -> None:
    """A process's part."""
    os.sched_setaffinity(0, {core})
    torch.cuda.set_device(gpu)
    step = PROGRAMS[program]()
    for _ in range(20):
        step()
    phases, between = [phase(step)], []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(2):
            between.append(capture(step, folder) if captures else plain(step))
            phases.append(phase(step))
    of_around = [ms / math.sqrt(a.ms * b.ms) for ms, (a, b) in zip(between, itertools.pairwise(phases), strict=True)]
    report.put((captures, Run(phases[0], (phases[1], phases[2]), (of_around[0], of_around[1]))))


def rounds(programs: list[str], count: int, until: float) -> dict[str, list[tuple[Run, Run]]]:
    """Program → of each round the process with captures and the one without.

    No round begins after `until` (`time.monotonic`).
    """
    result: dict[str, list[tuple[Run, Run]]] = {program: [] for program in programs}
    for number in range(count):
        if time.monotonic() > until:
            break
        for program in programs:
            result[program].append(side_by_side(functools.partial(one, program), number))
    return result


def side_by_side(run: Callable[[bool, int, int, Any], None], number: int) -> tuple[Any, Any]:
    """Measure a process with captures and one without at the same moment, each on a core and a GPU.

    Args:
        run: given whether it captures, its core, its GPU and a queue, it puts there whether it captures and the rest.
        number: of the round; what differs between GPUs and cores falls on both alike.
    """
    fork = multiprocessing.get_context("fork")  # torch is imported once; no process has used a GPU before
    gpus = 2 if torch.cuda.device_count() > 1 else 1
    cores, report = sorted(os.sched_getaffinity(0)), fork.SimpleQueue()
    pair = []
    for k, captures in enumerate((True, False)):
        lane = (k + number) % 2
        core = cores[(1 + lane * len(cores) // 2) % len(cores)]
        pair.append(fork.Process(target=run, args=(captures, core, lane % gpus, report)))
    for process in pair:
        process.start()
        if gpus == 1:
            process.join()
    for process in pair:
        process.join()
    if any(process.exitcode for process in pair):
        raise SystemExit("A process failed, see above.")
    run_of = dict((report.get(), report.get()))
    return run_of[True], run_of[False]


def told_with_spread(values: list[float]) -> str:
    """The mean of logarithms as a ratio, with twice its standard error."""
    error = 2 * statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return f"{math.exp(statistics.mean(values)):.3f} ± {error:.3f}"


def table(result: dict[str, list[tuple[Run, Run]]]) -> None:
    """A line for each program and each capture."""
    for program, pairs in result.items():
        ms = statistics.median(run.before.ms for run, _ in pairs)
        print(f"{program}: {len(pairs)} rounds, a step takes {ms:.2f} ms")
        for k, name in enumerate(("one", "two")):
            with_captures, without = (
                [math.log(run.after[k].loops / run.before.loops) for run in runs] for runs in zip(*pairs, strict=True)
            )
            beyond = [a - b for a, b in zip(with_captures, without, strict=True)]
            print(
                f"  after {name}: {told_with_spread(with_captures)} of before, without a capture"
                f" {told_with_spread(without)}: the capture's own {told_with_spread(beyond)}"
            )
        first, second = ([math.log(run.between[k]) for run, _ in pairs] for k in range(2))
        print(
            f"  the unprofiled step beside the plain ones around it: first {told_with_spread(first)},"
            f" second {told_with_spread(second)}"
        )


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rounds", nargs="?", type=int, default=12, metavar="ROUNDS")
    parser.add_argument("--only", nargs="+", choices=list(PROGRAMS), default=list(PROGRAMS), metavar="NAME")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="store each process's times as JSON")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no round after so long")
    arguments = parser.parse_args()
    if torch.cuda.device_count() == 0:  # asked of NVML: asking CUDA would keep forked processes from using it
        parser.error("this measures on a GPU, and there is none.")
    result = rounds(arguments.only, arguments.rounds, time.monotonic() + arguments.seconds)
    table(result)
    if arguments.keep is not None:
        runs = {program: [list(map(asdict, pair)) for pair in pairs] for program, pairs in result.items()}
        arguments.keep.write_text(json.dumps(runs))


if __name__ == "__main__":
    main()
