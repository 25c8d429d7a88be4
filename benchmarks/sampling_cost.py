"""Measure the cost of sampling a step, and the error of its tree: `python -m benchmarks.sampling_cost [ROUNDS]`.

For two host-bound steps, a transformer's and one of much Python, it prints

- by how much a step with the sampler running is longer, by the clock and in CPU time of its own process, which others
  on the machine's cores disturb less: blocks take turns, each sampled one is compared with the mean of its neighbours,
  and the median of these ratios counts, with the middle half of them;
- each part of the step as a share of it, as sampled in a capture and as timed by `perf_counter_ns` around it in runs
  without any sampler before and after; the largest difference among parts above 5 % is the error.

It takes about a minute with 14 rounds.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import tempfile
import time
from collections.abc import Callable

import torch
from torch import nn

from syncscan import api
from syncscan.capture.sampling import RATE
from syncscan.capture.session import profile
from syncscan.capture.stack_timer import NotSampled, Ticks
from syncscan.capture.thread_usage import Meter
from syncscan.model.host import SampledHost

BLOCK_S = 0.4
TRUTH_S = 2.0
SAMPLE_S = 10.0
"""1,930 samples: twice the deviation of a share of a half is 2.3 points."""
SEEN = 0.05
"""Parts below are left out of the error."""
PARTS = ("data", "forward", "loss", "backward", "optimizer", "logging")


class Program:
    """A training step of named parts; each is a method, by which the tree is asked for it."""

    def __init__(self, python: int) -> None:
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        layers = [nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, dropout=0.0) for _ in range(4)]
        self.model = nn.Sequential(*layers).to(self.device)
        self.adam = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.python = python
        self.words = [f"word{i % 97}" for i in range(python)]
        self.numbers = list(range(64 * 64))

    def step(self, timed: Callable[[str], None] = lambda part: None) -> None:
        """One step; `timed` is told each part when it is over."""
        batch = self.data()
        timed("data")
        output = self.forward(batch)
        timed("forward")
        loss = self.loss(output)
        timed("loss")
        self.backward(loss)
        timed("backward")
        self.optimizer()
        timed("optimizer")
        self.logging()
        timed("logging")

    def data(self) -> torch.Tensor:
        return torch.tensor(self.numbers, dtype=torch.float32).reshape(1, 64, 64).to(self.device) / 4096

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor = self.model(batch)
        return output

    def loss(self, output: torch.Tensor) -> torch.Tensor:
        loss = output.square().mean()
        for _ in range(20):
            loss = loss * 1.001 + 0.001
        return loss

    def backward(self, loss: torch.Tensor) -> None:
        loss.backward()

    def optimizer(self) -> None:
        self.adam.step()
        self.adam.zero_grad()

    def logging(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for word in self.words:
            counts[word] = counts.get(word, 0) + len(word)
        return counts


def drain() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def block(program: Program, seconds: float) -> tuple[float, float]:
    """The mean time of a step in ms, over so many seconds: by the clock, and of this process on its cores."""
    drain()
    began, cpu, steps = time.perf_counter(), time.process_time(), 0
    while time.perf_counter() - began < seconds:
        program.step()
        steps += 1
    drain()
    return (time.perf_counter() - began) / steps * 1e3, (time.process_time() - cpu) / steps * 1e3


def cost(program: Program, rounds: int) -> tuple[float, list[float], list[float]]:
    """A step's time in ms, and how many times as long it takes while it is sampled, in each round: by both clocks."""
    plain, sampled = [block(program, BLOCK_S)], []
    for _ in range(rounds):
        meter = Meter()
        ticks = Ticks(RATE, meter.read)
        meter.start()
        ticks.start()
        try:
            sampled.append(block(program, BLOCK_S))
        finally:
            ticks.close()
        plain.append(block(program, BLOCK_S))
    turns = list(zip(sampled, itertools.pairwise(plain), strict=True))
    wall, cpu = ([2 * s[k] / (a[k] + b[k]) for s, (a, b) in turns] for k in (0, 1))
    return statistics.median(block[0] for block in plain), wall, cpu


def told(ratios: list[float]) -> str:
    """Their median, and the middle half."""
    low, _, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return f"{statistics.median(ratios):.4f} ({low:.4f} to {high:.4f})"


def truth(program: Program, seconds: float) -> dict[str, float]:
    """Return each part's share of a step, by a clock around it."""
    total = dict.fromkeys(PARTS, 0)
    last = began = time.perf_counter_ns()

    def timed(part: str) -> None:
        nonlocal last
        now = time.perf_counter_ns()
        total[part] += now - last
        last = now

    while last - began < seconds * 1e9:
        program.step(timed)
    return {part: ns / sum(total.values()) for part, ns in total.items()}


def sampled(program: Program, folder: str) -> SampledHost:
    """The tree of a whole capture: timed steps, the recording, sampled steps."""
    messages: list[str] = []
    with profile(folder, "step", sample=SAMPLE_S, notify=messages.append) as prof:
        while not prof.done:
            program.step()
            prof.step()
    result = api.analyze(prof.paths[-1]).host_time.sampled
    if result is None:
        raise NotSampled(" ".join(messages))
    return result


def shares(host: SampledHost) -> dict[str, float]:
    """Return each part's share of a step, by the tree."""
    us = dict.fromkeys(PARTS, 0.0)
    for node in host.nodes:
        part = node.function.rpartition(".")[2]
        if part in us and node.file == __file__:
            us[part] += node.us
    return {part: value / host.step_us for part, value in us.items()}


def measure(rounds: int) -> None:
    for name, python in (("transformer", 500), ("much Python", 40_000)):
        program = Program(python)
        for _ in range(20):
            program.step()
        ms, wall, cpu = cost(program, rounds)
        print(f"{name}: a step of {ms:.2f} ms takes {told(wall)} times as long while it is sampled,")
        print(f"  {told(cpu)} times as much CPU")
        before = truth(program, TRUTH_S)
        with tempfile.TemporaryDirectory() as folder:
            host = sampled(program, folder)
        after = truth(program, TRUTH_S)
        timed = {part: (before[part] + after[part]) / 2 for part in PARTS}
        seen = shares(host)
        for part in PARTS:
            both = f"({before[part]:.1%}, {after[part]:.1%})"
            print(f"  {part:10s} timed {timed[part]:6.1%} {both:15s} sampled {seen[part]:6.1%}")
        worst = max(abs(seen[part] - timed[part]) for part in PARTS if timed[part] > SEEN)
        whole = f"{host.overhead:+.1%}" if host.overhead is not None else "unknown"
        print(f"  error at most {100 * worst:.1f} points")
        print(f"  {host.samples} samples in {host.steps} steps, {whole} longer than the capture's timed ones")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rounds", nargs="?", type=int, default=14, metavar="ROUNDS")
    rounds = parser.parse_args().rounds
    if rounds < 2:
        parser.error("two rounds at least.")
    try:
        measure(rounds)
    except NotSampled as reason:
        parser.error(f"nothing could be sampled: {reason}")


if __name__ == "__main__":
    main()
