"""Measure the cost of a dry run: a small transformer's training step, plain and on the simulated device, time and
memory.

    python -m benchmarks.dryrun

Prints both times (the best of the rounds, in turn), their ratio, and the peak of the process's memory for each in a
process of its own.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable

ROUNDS, STEPS = 5, 5


def build(device: str) -> Callable[[], float]:
    """A training step of a transformer of two layers, 128 wide."""
    import torch

    layer = torch.nn.TransformerEncoderLayer(128, 4, 512, batch_first=True)
    net = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).to(device)
    optimizer = torch.optim.AdamW(net.parameters())
    x = torch.randn(8, 64, 128, device=device)

    def step() -> float:
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        return float(loss.item())

    return step


def best_ms(step: Callable[[], float]) -> float:
    """The best of some steps, ms."""
    times = []
    for _ in range(STEPS):
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
    return min(times) * 1e3


def peak_mb(how: str) -> float:
    """The peak of a process that runs the steps one way, MB."""
    command = [sys.executable, "-m", "benchmarks.dryrun", "--only", how]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout)


def run(how: str) -> None:
    """Run the steps one way and print the peak of this process, MB."""
    import syncscan

    if how == "plain":
        step = build("cpu")
        for _ in range(ROUNDS * STEPS):
            step()
    else:
        with syncscan.pretend_gpu():
            step = build("cuda")
            for _ in range(ROUNDS * STEPS):
                step()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def main() -> None:
    """Print the comparison."""
    import syncscan

    plain, pretended = [], []
    for _ in range(ROUNDS):
        plain.append(best_ms(build("cpu")))
        with syncscan.pretend_gpu():
            pretended.append(best_ms(build("cuda")))
    ratio = min(pretended) / min(plain)
    print(f"plain {min(plain):.1f} ms, pretended {min(pretended):.1f} ms a step: {ratio:.2f} times")
    before, after = peak_mb("plain"), peak_mb("pretended")
    print(f"plain {before:.0f} MB, pretended {after:.0f} MB at the peak: {after / before:.2f} times")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["plain", "pretended"], help="run the steps one way and print the peak")
    only = parser.parse_args().only
    run(only) if only else main()
