"""How much longer does a watch make a step? `python -m benchmarks.watch_cost`, on a GPU.

One process trains a small transformer, whose steps keep the host busy, in blocks without a watch and with one. A watch
begins before its block's clock does. The order of a round's blocks is drawn.
Printed are the means of the ratios within rounds, with twice their standard error.

The direct account beside it is the processor time of the watch's two threads, which is the most that they can keep the
interpreter's lock for.

A second estimate is free of drift: samples come at fixed times. A step into which one falls, and the step after it, are
compared with those that hold the times in the middle between two samples. Times the rate, that is what sampling costs;
what a watch does once a second is in the first estimate alone.
"""

from __future__ import annotations

import argparse
import bisect
import itertools
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

from benchmarks.watched_programs import Recorded
from syncscan.watching.sampler import RATE
from syncscan.watching.thread_position import PositionLookup

SETTLES_S = 1.0
"""Time from a watch's start to its block's clock."""
WINDOW_S = 5.0
"""Seconds of a window: more windows than usual."""
POSITIONS = PositionLookup()
"""Positions that the watches of all blocks have looked up: that is done once, and a watch runs for weeks."""
KINDS = ("none", "thread")


def trainer(layers: int, width: int = 128) -> Callable[[], None]:
    """Return the step of a small transformer, whose loss is read."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    layer = torch.nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.randn(4, 32, width, device=device)
    losses = []

    def step() -> None:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        del losses[:-100]

    return step


def sized(ms: float) -> tuple[Callable[[], None], float]:
    """Return a trainer with as many layers as make a step of so many ms, and its step in ms."""
    taken = {}
    for layers in (2, 4):
        step = trainer(layers)
        taken[layers] = mean_ms(step, 40)
    each = max(1e-3, (taken[4] - taken[2]) / 2)
    step = trainer(max(1, round(2 + (ms - taken[2]) / each)))
    return step, mean_ms(step, 40)


def mean_ms(step: Callable[[], None], count: int) -> float:
    """Return the median time of a step."""
    for _ in range(10):
        step()
    times = []
    for _ in range(count):
        began = time.perf_counter()
        step()
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1e3


def block(step: Callable[[], None], kind: str, seconds: float, rate: int) -> dict[str, Any]:
    """Run steps for some seconds, and return the end of each, and when samples were due (ns)."""
    with tempfile.TemporaryDirectory() as folder:
        watch = None
        if kind != "none":
            watch = Recorded(folder, interval=WINDOW_S, hook=False, rate=rate).start()
            watch._places = POSITIONS
        until = time.monotonic() + SETTLES_S
        while time.monotonic() < until:
            step()
            if watch is not None:
                watch.step()
        before = account(watch) if watch is not None else (0, 0)
        ends = [time.monotonic_ns()]
        while ends[-1] - ends[0] < seconds * 1e9:
            step()
            if watch is not None:
                watch.step()
            ends.append(time.monotonic_ns())
        after = account(watch) if watch is not None else (0, 0)
        if watch is not None:
            watch.stop()
    ticks = watch.ticks if watch is not None else []
    due = [at - late for at, _, late, *_ in ticks]
    busy = [b - a for a, b in zip(before, after, strict=True)]
    return {"kind": kind, "ends": ends, "due": due, "ticks": ticks, "busy": busy}


def account(watch: Any) -> tuple[int, int]:
    """Return the processor time so far, in ns, of a watch's sampler and of the thread that counts its samples."""
    return processor_time(watch._sampler._thread), processor_time(watch._thread)


def processor_time(thread: Any) -> int:
    """Return a thread's processor time in ns, by Linux."""
    return int(Path(f"/proc/self/task/{thread.native_id}/schedstat").read_text().split()[0])


def by_samples(blocks: list[dict[str, Any]], rate: int) -> tuple[float, float]:
    """Return the part of the time that samples take, and twice its standard error."""
    beyond, all_ns, count = [], 0, 0
    for block_row in blocks:
        ends = block_row["ends"]
        all_ns += ends[-1] - ends[0]
        count += len(ends) - 1
        for due in block_row["due"]:
            hit, other = (two_steps(ends, at) for at in (due, due + 500_000_000 // rate))
            if hit is not None and other is not None:
                beyond.append(hit - other)
    if len(beyond) < 2 or not count:
        return math.nan, math.nan
    # A step as long as a garbage collection or an interruption says nothing of a sample: the middle 98 % count.
    beyond.sort()
    middle = beyond[len(beyond) // 100 : len(beyond) - len(beyond) // 100]
    scale = rate / 1e9
    return statistics.mean(middle) * scale, 2 * statistics.stdev(middle) / math.sqrt(len(middle)) * scale


def two_steps(ends: list[int], at: int) -> int | None:
    """Return the time of the step that holds a time and of the next one; None outside of the block."""
    k = bisect.bisect_left(ends, at)
    return ends[k + 1] - ends[k - 1] if 1 <= k < len(ends) - 1 else None


def ratio(with_watch: list[float], without: list[float]) -> tuple[float, float]:
    """Return by what part steps take longer, and twice its standard error."""
    logs = [math.log(a / b) for a, b in zip(with_watch, without, strict=True)]
    error = 2 * statistics.stdev(logs) / math.sqrt(len(logs)) if len(logs) > 1 else math.nan
    return math.expm1(statistics.mean(logs)), error


def table(blocks: list[dict[str, Any]], rate: int) -> None:
    """Print both estimates of all rounds so far."""
    means: dict[str, list[float]] = defaultdict(list)
    medians: dict[str, list[float]] = defaultdict(list)
    for block_row in blocks:
        ends = block_row["ends"]
        means[block_row["kind"]].append((ends[-1] - ends[0]) / (len(ends) - 1))
        medians[block_row["kind"]].append(statistics.median(b - a for a, b in itertools.pairwise(ends)))
    rounds = min(map(len, means.values()))
    for kind in [kind for kind in KINDS[1:] if kind in means]:
        of_mean, of_median = (ratio(v[kind][:rounds], v["none"][:rounds]) for v in (means, medians))
        rows = [block_row for block_row in blocks if block_row["kind"] == kind]
        sampled = by_samples(rows, rate)
        elapsed = sum(row["ends"][-1] - row["ends"][0] for row in rows)
        samples, counts = (sum(row["busy"][k] for row in rows) / elapsed for k in (0, 1))
        print(
            f"  {kind:6} {rounds} rounds: mean step {of_mean[0]:+.2%} ± {of_mean[1]:.2%}, median step"
            f" {of_median[0]:+.2%} ± {of_median[1]:.2%}, by its samples {sampled[0]:+.3%} ± {sampled[1]:.3%},"
            f" busy with samples {samples:.3%} ({samples / rate * 1e6:.0f} µs each) and with counting {counts:.3%}",
            flush=True,
        )


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=8, help="of blocks")
    parser.add_argument("--block", type=float, default=20.0, help="seconds of a block")
    parser.add_argument("--ms", type=float, default=9.0, help="of a step")
    parser.add_argument("--rate", type=int, default=RATE, help="samples a second")
    parser.add_argument("--kinds", nargs="+", choices=KINDS[1:], default=list(KINDS[1:]), help="samplers")
    parser.add_argument("--until", type=float, default=math.inf, help="begin no round after so many seconds")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="store each block's steps and samples as JSON")
    parser.add_argument("--cpu", action="store_true", help="measure without a GPU: of no use but to try this")
    arguments = parser.parse_args()
    if not torch.cuda.is_available() and not arguments.cpu:
        parser.error("this measures on a GPU, and there is none.")
    began = time.monotonic()
    step, ms = sized(arguments.ms)
    print(f"a step takes {ms:.2f} ms", flush=True)
    block(step, "thread", min(5.0, arguments.block), arguments.rate)  # looks up what the program's lines are
    blocks: list[dict[str, Any]] = []
    for number in range(arguments.rounds):
        if time.monotonic() - began > arguments.until:
            break
        kinds = ["none", *arguments.kinds]
        blocks += [
            {"round": number, **block(step, kind, arguments.block, arguments.rate)}
            for kind in random.sample(kinds, len(kinds))
        ]
        print(f"round {number + 1}, after {time.monotonic() - began:.0f} s")
        table(blocks, arguments.rate)
        if arguments.keep is not None:
            arguments.keep.write_text(json.dumps(blocks))


if __name__ == "__main__":
    main()
