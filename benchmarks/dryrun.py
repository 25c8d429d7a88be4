"""Measure the cost of a dry run: steps of small programs, plain and on the simulated device, time and memory.

    python -m benchmarks.dryrun

Prints for each program both times of its thread (the best of the rounds, in turn), their ratio and the time per op,
then the peak of the process's memory in a process of its own for each way. The loop of a program without an optimizer
is looked for meanwhile, as `syncscan dryrun` does. The smaller the ops, the larger is the ratio: torch's own modes,
which a dry run needs, take 15 µs an op, as much as an op of a few numbers itself.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable

ROUNDS, STEPS = 5, 5
Step = Callable[[], None]


def transformer(device: str) -> Step:
    """A training step of a transformer of two layers, 128 wide."""
    import torch

    layer = torch.nn.TransformerEncoderLayer(128, 4, 512, batch_first=True)
    net = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).to(device)
    optimizer = torch.optim.AdamW(net.parameters())
    x = torch.randn(8, 64, 128, device=device)

    def step() -> None:
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        loss.item()

    return step


def tokens(device: str) -> Step:
    """Ten tokens of an endless generation, of ops on a few numbers each."""
    import torch

    net = torch.nn.Sequential(torch.nn.Embedding(100, 64), torch.nn.Linear(64, 64), torch.nn.ReLU()).to(device)
    head = torch.nn.Linear(64, 100).to(device)

    @torch.no_grad()
    def step() -> None:
        token = torch.zeros(1, dtype=torch.long, device=device)
        for _ in range(10):
            token = torch.multinomial(head(net(token)).softmax(-1), 1)[0]
            token.item()

    return step


def recurrent(device: str) -> Step:
    """A training step without an optimizer: a cell called character by character, 128 wide."""
    import torch

    cell = torch.nn.RNNCell(57, 128).to(device)
    line = torch.randn(10, 1, 57, device=device)

    def step() -> None:
        hidden = torch.zeros(1, 128, device=device)
        for character in line:
            hidden = cell(character, hidden)
        hidden.sum().backward()
        for parameter in cell.parameters():
            parameter.data.add_(parameter.grad, alpha=-0.005)
            parameter.grad = None

    return step


def adversaries(device: str) -> Step:
    """A training step of two small convolutional networks, with an optimizer each."""
    import torch
    from torch.nn import Conv2d, ConvTranspose2d, LeakyReLU, Sequential

    judge = Sequential(Conv2d(3, 32, 4, 2, 1), LeakyReLU(0.2), Conv2d(32, 64, 4, 2, 1), Conv2d(64, 1, 8)).to(device)
    maker = Sequential(ConvTranspose2d(50, 64, 8), LeakyReLU(0.2), ConvTranspose2d(64, 3, 4, 4)).to(device)
    optimizers = [torch.optim.Adam(net.parameters()) for net in (judge, maker)]

    def step() -> None:
        for net, optimizer in zip((judge, maker), optimizers, strict=True):
            net.zero_grad()
            loss = judge(maker(torch.randn(16, 50, 1, 1, device=device))).mean()
            loss.backward()
            optimizer.step()
            loss.item()

    return step


PROGRAMS = {"transformer": transformer, "tokens": tokens, "recurrent": recurrent, "adversaries": adversaries}


def best_ms(step: Step) -> float:
    """The best of some steps, ms of the thread."""
    times = []
    for _ in range(STEPS):
        begin = time.thread_time()
        step()
        times.append(time.thread_time() - begin)
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
        step = transformer("cpu")
        for _ in range(ROUNDS * STEPS):
            step()
    else:
        with syncscan.pretend_gpu():
            step = transformer("cuda")
            for _ in range(ROUNDS * STEPS):
                step()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def compare(name: str) -> str:
    """A program's times and their ratio."""
    import syncscan

    plain, pretended, ops = [], [], 0
    for _ in range(ROUNDS):
        plain.append(best_ms(PROGRAMS[name]("cpu")))
        with syncscan.pretend_gpu() as dry:
            rounds = dry.watch_rounds(lambda: None)
            step = PROGRAMS[name]("cuda")
            step()
            before = dry._pretence.session.seen
            pretended.append(best_ms(step))
            ops = (dry._pretence.session.seen - before) // STEPS
            rounds.close()
    a, b = min(plain), min(pretended)
    each = (b - a) / ops * 1e3
    return (
        f"{name:12} plain {a:6.1f} ms, pretended {b:6.1f} ms a step: {b / a:.2f} times; {ops} ops, {each:.0f} µs each"
    )


def main() -> None:
    """Print the comparison."""
    import torch

    torch.set_num_threads(1)
    for name in PROGRAMS:
        print(compare(name), flush=True)
    before, after = peak_mb("plain"), peak_mb("pretended")
    print(f"plain {before:.0f} MB, pretended {after:.0f} MB at the peak: {after / before:.2f} times")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["plain", "pretended"], help="run the steps one way and print the peak")
    only = parser.parse_args().only
    run(only) if only else main()
