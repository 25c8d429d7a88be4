"""Measure the time that each part of a capture adds to a step: `python -m benchmarks.capture_cost [ROUNDS]`, on a GPU.

Prints, for three steps, how many times as long a step takes under each part alone and under what a capture switches on,
and how long after everything is off again. The parts take turns in rounds, each after a plain block; the ratio is the
median over the rounds. Cores that others share run Python up to 1.8 times slower for seconds at a time, so a pair of
blocks counts only if a loop of Python takes as long around the one as around the other.
"""

import argparse
import contextlib
import gc
import statistics
import time
from collections.abc import Callable, Iterator

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

from benchmarks.capture_steps import Step, encoder, mean_ms
from syncscan.capture import sync_lines
from syncscan.capture.cupti import Attachment

STEPS = 6
ALIKE = 1.1
CPU, CUDA = ProfilerActivity.CPU, ProfilerActivity.CUDA


def transformer() -> Step:
    model, optimizer, x = encoder()

    def step() -> None:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        loss.item()

    return step


def read_backs() -> Step:
    net = nn.Sequential(*[b for _ in range(8) for b in (nn.Conv2d(64, 64, 3, padding=1), nn.SiLU())]).cuda().half()
    x = torch.randn(8, 64, 48, 48, device="cuda", dtype=torch.half)

    @torch.no_grad()
    def step() -> None:
        y = x
        for _ in range(20):
            y = net(y)
            y.sum().item()

    return step


def small_ops() -> Step:
    x = torch.randn(256, 256, device="cuda")

    def step() -> None:
        y = x
        for _ in range(600):
            y = y * 1.001 + 0.1
        y.sum().item()

    return step


@contextlib.contextmanager
def callbacks() -> Iterator[None]:
    sync_lines.begin()
    try:
        yield
    finally:
        sync_lines.end()


@contextlib.contextmanager
def without_gc() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextlib.contextmanager
def profiled(*activities: ProfilerActivity, uncorrelated: bool = False, **options: bool) -> Iterator[None]:
    config = torch._C._profiler._ExperimentalConfig(disable_external_correlation=True) if uncorrelated else None
    attachment = Attachment()
    built = profile(activities=list(activities), experimental_config=config, **options)
    built.start()
    try:
        yield
    finally:
        attachment.before_stop()
        built.stop()
        attachment.release()


def both(*contexts: Callable[[], contextlib.AbstractContextManager[None]]) -> contextlib.AbstractContextManager[None]:
    stack = contextlib.ExitStack()
    for context in contexts:
        stack.enter_context(context())
    return stack


def full(**options: bool) -> contextlib.AbstractContextManager[None]:
    return profiled(CPU, CUDA, **options)


PARTS: dict[str, Callable[[], contextlib.AbstractContextManager[None]]] = {
    "off again": contextlib.nullcontext,
    "callbacks": callbacks,
    "device and runtime calls": lambda: profiled(CUDA),
    "ops": lambda: profiled(CPU),
    "ops, device and runtime calls": full,
    "the same without external ids": lambda: full(uncorrelated=True),
    "a capture: all that, callbacks": lambda: both(full, callbacks),
    "a capture without external ids": lambda: both(lambda: full(uncorrelated=True), callbacks),
    "a capture without gc": lambda: both(full, callbacks, without_gc),
    "a capture with shapes": lambda: both(lambda: full(record_shapes=True), callbacks),
    "a capture with stacks": lambda: both(lambda: full(with_stack=True), callbacks),
}


def speed() -> float:
    """How long a loop of Python takes now, in µs."""
    best = []
    for _ in range(5):
        began = time.perf_counter()
        total = 0
        for k in range(4000):
            total += k * k
        best.append(time.perf_counter() - began)
    return min(best) * 1e6


def pair(step: Step, part: Callable[[], contextlib.AbstractContextManager[None]]) -> tuple[float, float, float]:
    """A plain block, one within the part, and how much slower Python ran around the second (1: as fast)."""
    first = speed()
    plain = taken(step, contextlib.nullcontext)
    second = speed()
    within = taken(step, part)
    third = speed()
    return plain, within, max(first, second, third) / min(first, second, third)


def taken(step: Step, context: Callable[[], contextlib.AbstractContextManager[None]]) -> float:
    """The time of a step in ms within the context, after two that aren't counted."""
    with context():
        for _ in range(2):
            step()
        return mean_ms(step, STEPS)


def row() -> tuple[float, float]:
    """A synchronize of an idle stream in µs, and one that is recorded."""

    def spent() -> float:
        began = time.perf_counter()
        for _ in range(2000):
            stream.synchronize()
        return (time.perf_counter() - began) / 2000 * 1e6

    stream = torch.cuda.current_stream()
    off, on = [], []
    for _ in range(5):
        off.append(spent())
        with callbacks():
            on.append(spent())
    return min(off), min(on)


def measure(rounds: int) -> None:
    columns = {make.__name__: make() for make in (transformer, read_backs, small_ops)}
    ratios: dict[str, dict[str, float]] = {part: {} for part in PARTS}
    counted = dict.fromkeys(PARTS, 0)
    plains = {}
    for name, step in columns.items():
        for _ in range(20):
            step()
        pairs = {part: [pair(step, context) for _ in range(rounds)] for part, context in PARTS.items()}
        plains[name] = statistics.median(plain for taken in pairs.values() for plain, _, _ in taken)
        for part, measured in pairs.items():
            alike = [within / plain for plain, within, unlike in measured if unlike < ALIKE]
            ratios[part][name] = statistics.median(alike or [within / plain for plain, within, _ in measured])
            counted[part] += len(alike)
    print(f"{'':34s}" + "".join(f"{name:>14s}" for name in columns))
    print(f"{'a step, ms':34s}" + "".join(f"{plains[name]:14.2f}" for name in columns))
    for part, values in ratios.items():
        print(f"{part:34s}" + "".join(f"{values[name]:14.2f}" for name in columns) + f"  ({counted[part]})")
    print("a synchronize takes {:.1f} us, recorded {:.1f}".format(*row()))


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rounds", nargs="?", type=int, default=7, metavar="ROUNDS")
    rounds = parser.parse_args().rounds
    if not torch.cuda.is_available():
        parser.error("this measures on a GPU, and there is none.")
    measure(rounds)


if __name__ == "__main__":
    main()
