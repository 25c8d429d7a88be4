"""Measure what looking for races adds to a dry run: pairs of runs with it and without, in turn.

    python -m benchmarks.race_cost [--pairs 5]

Without it no op's uses of memory are noted, and everything else runs as it does. Two programs: one on the default
stream, as most are, and one with a stream of its own, where reads, regions and lines are noted too. Printed is the
median of the ratios of the processor's time, on one thread: those of a pool spin while they wait for the next op.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import syncscan

torch: Any = importlib.import_module("torch")
dispatch_mode: Any = importlib.import_module("syncscan.dryrun.dispatch_mode")
STEPS = 4


class NoUses:
    """Notes nothing of what ops do to memory."""

    def __init__(self, *args: object) -> None:
        """Take what the real one takes."""

    def of_device(self, *args: object) -> None:
        """Note nothing."""

    def of_host(self, *args: object) -> None:
        """Note nothing."""


def train(side: Any = None) -> None:
    """Train an encoder for a few steps, each with a batch from pinned memory."""
    model = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(32, 2, 64, batch_first=True), 4).cuda()
    optimizer, host = torch.optim.AdamW(model.parameters()), torch.rand(2, 8, 32).pin_memory()
    for _ in range(STEPS):
        if side is None:
            batch = host.to("cuda", non_blocking=True)
        else:
            with torch.cuda.stream(side):
                batch = host.to("cuda", non_blocking=True)
            torch.cuda.current_stream().wait_stream(side)
            batch.record_stream(torch.cuda.current_stream())
        model(batch).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.synchronize()


def on_two_streams() -> None:
    """Train with a stream for the copies."""
    train(torch.cuda.Stream())


@contextlib.contextmanager
def without_races() -> Iterator[None]:
    """Note no op's uses of memory."""
    with mock.patch.object(dispatch_mode, "UsesOfOps", NoUses):
        yield


def seconds(program: Callable[[], None]) -> float:
    """Return the processor's seconds of a dry run."""
    with syncscan.pretend_gpu():
        begin = time.process_time()
        program()
        return time.process_time() - begin


def ratio(program: Callable[[], None], pairs: int) -> float:
    """Return how many times as long a program takes where races are looked for."""
    seconds(program)
    ratios = []
    for _ in range(pairs):
        looking = seconds(program)
        with without_races():
            ratios.append(looking / seconds(program))
    return statistics.median(ratios)


def main() -> None:
    """Print both ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=5, help="pairs of runs")
    pairs = parser.parse_args().pairs
    torch.set_num_threads(1)
    for name, program in (("one stream", train), ("two streams", on_two_streams)):
        print(f"{name:>12}: {ratio(program, pairs):.2f} of the time without looking for races", flush=True)


if __name__ == "__main__":
    main()
