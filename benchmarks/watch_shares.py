"""Is a watched share the true one, and what does a watch cost? `python -m benchmarks.watch_shares`, on a GPU.

Each program's waiting lines stand between two clocks. So the part of the time that each of them takes is known, and
stands here beside what the watch says of the line. The samples are more frequent than a watch's usual ones (97 a
second), as a program runs for seconds here and not for hours. The cost is that of usual samples: blocks of steps with a
watch and without, in turn; the mean of the ratios with twice its standard error. At last a sync comes into a program at
a step, and the step is printed at which it was alarmed.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from syncscan.watching.watch import Watch
from syncscan.watching.watch_file import read

Spent = dict[str, float]
Program = Callable[[Spent], None]
clock = time.perf_counter
RATE = 97


def device_bound() -> Program:
    """A step of large products whose loss is read."""
    a = torch.randn(4096, 4096, device="cuda")

    def step(spent: Spent) -> None:
        b = a
        for _ in range(8):
            b = torch.tanh(b @ a)
        loss = b.mean()
        began = clock()
        loss.item()  # item
        spent["item"] += clock() - began

    return step


def host_bound() -> Program:
    """Many small ops, and a read that finds the device idle."""
    a = torch.randn(64, 64, device="cuda")

    def step(spent: Spent) -> None:
        b = a
        for _ in range(150):
            b = b * 1.01 + 0.1
        began = clock()
        b.mean().item()  # item
        spent["item"] += clock() - began

    return step


def python_then_read() -> Program:
    """Python that never lets go of the interpreter's lock, then a read: what a thread's samples err by most."""
    a = torch.randn(2048, 2048, device="cuda")

    def step(spent: Spent) -> None:
        b = a @ a
        for _ in range(4):
            b = b @ a
        total = 0
        for k in range(60_000):
            total += k * k
        b = b @ a @ a @ a
        began = clock()
        float(b.sum())  # float
        spent["float"] += clock() - began

    return step


def four_waits() -> Program:
    """A mask's size, its truth, a copy to the host and a synchronization."""
    a = torch.randn(3000, 3000, device="cuda")

    def step(spent: Spent) -> None:
        b = a @ a
        began = clock()
        (b[:64] > 50).nonzero()  # nonzero
        spent["nonzero"] += clock() - began
        b = b @ a
        loss = b.sum()
        began = clock()
        if torch.isnan(loss).any():  # any
            return
        spent["any"] += clock() - began
        b = b @ a @ a
        began = clock()
        b[0].cpu()  # cpu
        spent["cpu"] += clock() - began
        b = b @ a @ a @ a
        began = clock()
        torch.cuda.synchronize()  # synchronize
        spent["synchronize"] += clock() - began

    return step


def training() -> Program:
    """A model's forward, backward and optimizer, and the loss read for the log."""
    model = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(8)]).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.randn(2048, 2048, device="cuda")

    def step(spent: Spent) -> None:
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        began = clock()
        loss.item()  # item
        spent["item"] += clock() - began

    return step


PROGRAMS = {make.__name__: make for make in (device_bound, host_bound, python_then_read, four_waits, training)}


def line_of(program: str, mark: str) -> int:
    """The line of a program that is marked so."""
    first = PROGRAMS[program].__code__.co_firstlineno
    lines = Path(__file__).read_text().splitlines()
    return next(n for n, text in enumerate(lines, start=1) if n > first and text.endswith(f"  # {mark}"))


def shares(name: str, seconds: float) -> list[dict[str, Any]]:
    """The watched and the measured share of each waiting line."""
    step, spent = PROGRAMS[name](), defaultdict[str, float](float)
    for _ in range(10):
        step(spent)
    spent.clear()
    with tempfile.TemporaryDirectory() as folder:
        watch = Watch(folder, interval=1e6, rate=RATE, hook=False).start()
        began = clock()
        while clock() - began < seconds:
            step(spent)
            watch.step()
        total = clock() - began
        watch.stop()
        assert watch.path is not None
        window = read(watch.path).windows[-1]
    rows = []
    for mark, took in spent.items():
        number = line_of(name, mark)
        lines = [line for line in window.lines if line.line == number]
        rows.append(
            {
                "program": name,
                "line": mark,
                "measured": took / total,
                "share": sum(line.share for line in lines),
                "waiting": sum(line.waiting for line in lines),
                "samples": window.samples,
                "steps": watch.steps,
            }
        )
    return rows


def cost(name: str, pairs: int, seconds: float) -> tuple[float, float, float]:
    """The ratio of a step's mean time with a watch to that without, twice its standard error, and the step in ms."""
    step, spent = PROGRAMS[name](), defaultdict[str, float](float)
    for _ in range(10):
        step(spent)
    ratios, plain = [], []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(pairs):
            means = {}
            for watched in random.sample((True, False), 2):
                watch = Watch(folder, hook=False).start() if watched else None
                began, count = clock(), 0
                while clock() - began < seconds:
                    step(spent)
                    count += 1
                    if watch is not None:
                        watch.step()
                means[watched] = (clock() - began) / count
                if watch is not None:
                    watch.stop()
            ratios.append(math.log(means[True] / means[False]))
            plain.append(means[False])
    error = 2 * statistics.stdev(ratios) / math.sqrt(len(ratios)) if len(ratios) > 1 else math.nan
    return math.exp(statistics.mean(ratios)), error, statistics.median(plain) * 1e3


def alarmed(at: int, most: int, products: int = 16) -> dict[str, Any]:
    """Return the step at which a read that begins at step `at` is alarmed, None for none until `most`.

    Beside it stand a step's time before and after, the part of the time that the read takes by clocks, and the part
    that the watch saw in its last whole window. A watch learns for 15 s before its first alarm; so long take the steps
    before.
    """
    a = torch.randn(2048, 2048, device="cuda")
    waited, ends = 0.0, [clock()]
    with tempfile.TemporaryDirectory() as folder:
        watch = Watch(folder, hook=False, interval=1.0).start()
        for number in range(most):
            b = a
            for _ in range(products):
                b = torch.tanh(b @ a)
            total = 0
            for k in range(20_000):
                total += k
            loss = b.mean()
            if number >= at:
                began = clock()
                loss.item()
                waited += clock() - began
            watch.step()
            ends.append(clock())
            if watch.alarms:
                break
        watch.stop()
        assert watch.path is not None
        seen = read(watch.path).windows[-2].waiting
    before, after = ends[at] - ends[0], ends[-1] - ends[at]
    return {
        "alarm_at": at,
        "alarmed": watch.alarms[0].total_steps if watch.alarms else None,
        "line": watch.alarms[0].line if watch.alarms else None,
        "step_ms": before / at * 1e3,
        "after_ms": after / max(1, len(ends) - 1 - at) * 1e3,
        "measured": waited / after if after else 0.0,
        "seen": seen,
    }


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0, help="of each program by each sampler")
    parser.add_argument("--pairs", type=int, default=20, help="of blocks with a watch and without")
    parser.add_argument("--block", type=float, default=2.0, help="seconds of a block")
    parser.add_argument("--only", nargs="*", choices=list(PROGRAMS), default=list(PROGRAMS), metavar="NAME")
    parser.add_argument("--alarm-at", type=int, default=5000, metavar="STEP", help="0 leaves it out")
    parser.add_argument("--alarm-products", type=int, default=16, metavar="COUNT", help="that a step has on the device")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="store each row as JSON, as it is measured")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("this measures on a GPU, and there is none.")
    rows: list[dict[str, Any]] = []

    def keep(**row: Any) -> None:
        rows.append(row)
        if arguments.keep is not None:
            arguments.keep.write_text(json.dumps(rows, indent=1))

    for name in arguments.only:
        for row in shares(name, arguments.seconds):
            keep(**row)
            print(
                f"  {name:18} {row['line']:12} measured {row['measured']:6.1%}  watched {row['share']:6.1%}"
                f"  as waiting {row['waiting']:6.1%}  ({row['samples']} samples, {row['steps']} steps)",
                flush=True,
            )
    if arguments.alarm_at:
        row = alarmed(arguments.alarm_at, arguments.alarm_at + 1500, arguments.alarm_products)
        keep(**row)
        print(
            "a sync of {measured:.1%} of the step (watched {seen:.1%}) from step {alarm_at} on was alarmed at step"
            " {alarmed}; a step took {step_ms:.2f} ms before and {after_ms:.2f} ms since".format(**row),
            flush=True,
        )
    for name in arguments.only if arguments.pairs else ():
        ratio, error, ms = cost(name, arguments.pairs, arguments.block)
        keep(cost=name, ratio=ratio, error=error, step_ms=ms)
        print(f"cost {name:18} {ratio:.4f} ± {error:.4f} of a step of {ms:.2f} ms", flush=True)


if __name__ == "__main__":
    main()
