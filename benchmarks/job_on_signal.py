"""Does a job that captures on signal run as fast as without syncscan? `python -m benchmarks.job_on_signal [ROUNDS]`.

On a GPU, better two. Each round has two fresh processes at the same moment, each on a core and, where there are two, a
GPU of its own: a job of 2,000 steps that is sent three signals, and the same job without a session. A step counts by
how many times a loop of Python it takes that runs beside it, as in `after_capture`; those under the profiler don't
count. Printed is the job with captures as a part of the one without: the rounds' mean with twice its standard error.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import statistics
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

import syncscan
from benchmarks.after_capture import loop_s, side_by_side, told_with_spread
from benchmarks.capture_cost import transformer

STEPS = 2000
SIGNALS = (500, 1000, 1500)
"""Steps at which one is sent."""
WARM = 50


@dataclass(frozen=True, slots=True)
class Job:
    """A job's steps outside of captures: in loops their mean and median, and their mean in ms."""

    mean: float
    median: float
    ms: float
    captured: int
    """Steps under the profiler."""
    traces: int


def job(captures: bool, core: int, gpu: int, report: Any) -> None:
    """A process's part."""
    os.sched_setaffinity(0, {core})
    torch.cuda.set_device(gpu)
    step = transformer()
    for _ in range(WARM):
        step()
    with tempfile.TemporaryDirectory() as folder:
        session = None
        if captures:
            session = syncscan.profile(folder, on_signal=signal.SIGUSR2, notify=lambda _: None).__enter__()
        loops, ms, busy, before = [], [], [], loop_s()
        for number in range(STEPS):
            if session is not None and number in SIGNALS:
                os.kill(os.getpid(), signal.SIGUSR2)
            capturing = session is not None and session.profiling
            began = time.perf_counter()
            step()
            if session is not None:
                session.step()
            taken, after = time.perf_counter() - began, loop_s()
            busy.append(capturing or (session is not None and session.profiling))
            loops.append(2 * taken / (before + after))
            ms.append(taken * 1e3)
            before = after
        if session is not None:
            session.close()
        free = [number for number in range(STEPS) if not busy[number]]
        stored = [loops[number] for number in free]
        mean_ms = statistics.mean(ms[number] for number in free)
        traces = len(list(Path(folder).glob("*.json*")))
        report.put((captures, Job(statistics.mean(stored), statistics.median(stored), mean_ms, sum(busy), traces)))


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rounds", nargs="?", type=int, default=20, metavar="ROUNDS")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="store each job's times as JSON")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no round after so long")
    arguments = parser.parse_args()
    if torch.cuda.device_count() == 0:  # asked of NVML: asking CUDA would keep forked processes from using it
        parser.error("this measures on a GPU, and there is none.")
    matches: list[tuple[Job, Job]] = []
    until = time.monotonic() + arguments.seconds
    while len(matches) < arguments.rounds and time.monotonic() < until:
        matches.append(side_by_side(job, len(matches)))
    with_captures, without = zip(*matches, strict=True)
    print(f"{len(matches)} rounds, a step takes {statistics.median(one.ms for one in without):.2f} ms")
    print(f"each job wrote {min(one.traces for one in with_captures)} traces, in {with_captures[0].captured} steps")
    for what in ("mean", "median"):
        ratios = [math.log(getattr(a, what) / getattr(b, what)) for a, b in matches]
        print(f"steps outside of captures, {what}: {told_with_spread(ratios)} of those of a job without syncscan")
    if arguments.keep is not None:
        arguments.keep.write_text(json.dumps([list(map(asdict, pair)) for pair in matches]))


if __name__ == "__main__":
    main()
