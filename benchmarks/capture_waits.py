"""How true the waits of a recording are: `python -m benchmarks.capture_waits`, on a GPU.

Three steps that read values back while their host is the limit. Each read is timed around the Python call: without a
profiler, under a full recording, and under a light one (device activities and runtime calls, no ops). From both
recordings the synchronizes themselves are taken too, by the order of the reads. A wait without a profiler is the read's
time less that of a read on an idle device.
"""

import argparse
import contextlib
import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

from benchmarks.capture_steps import Step, encoder, mean_ms

STEPS = 9
SYNCS = ("cudaStreamSynchronize", "cuStreamSynchronize")


def guard() -> Step:
    """A check of each gradient for NaN: 72 reads on a device that has little queued."""
    model, optimizer, x = encoder()

    def step() -> None:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        for p in model.parameters():
            if (p.grad[0].sum() != p.grad[0].sum()).item():
                raise RuntimeError("nan")
        optimizer.step()

    return step


def schedule() -> Step:
    """A denoising loop that reads its time from the device before each of 20 passes of a small network."""
    layers = [b for _ in range(6) for b in (nn.Conv2d(128, 128, 3, padding=1), nn.SiLU())]
    net = nn.Sequential(nn.Conv2d(4, 128, 3, padding=1), nn.SiLU(), *layers, nn.Conv2d(128, 4, 3, padding=1))
    net = net.cuda().half()
    times = torch.linspace(999, 0, 20, device="cuda").long()

    @torch.no_grad()
    def step() -> None:
        x = torch.randn(8, 4, 64, 64, device="cuda", dtype=torch.half)
        for k in range(20):
            times[k].item()
            x = (x - 0.1 * net(x)) * 0.1

    return step


def logged() -> Step:
    """Three values read at the end of a training step of many small layers."""
    model = nn.Sequential(*[b for _ in range(24) for b in (nn.Linear(256, 256), nn.LayerNorm(256), nn.GELU())]).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, foreach=True)
    x = torch.randn(512, 256, device="cuda")

    def step() -> None:
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()
        (loss * 2).item()
        loss.sqrt().item()

    return step


@contextlib.contextmanager
def timed_reads(into: list[float]) -> Iterator[None]:
    original = torch.Tensor.item

    def item(self: torch.Tensor) -> Any:
        if not self.is_cuda:  # an optimizer's own count of steps
            return original(self)
        began = time.perf_counter_ns()
        value = original(self)
        into.append((time.perf_counter_ns() - began) / 1e3)
        return value

    torch.Tensor.item = item  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        torch.Tensor.item = original  # type: ignore[method-assign]


def by_order(values: list[float]) -> list[float]:
    """The median of each read of a step over the steps; the first step isn't counted."""
    reads = len(values) // STEPS
    return [statistics.median(values[k + reads :: reads]) for k in range(reads)]


def run(step: Step) -> tuple[list[float], float]:
    reads: list[float] = []
    with timed_reads(reads):
        lasts = mean_ms(step, STEPS)
    return by_order(reads), lasts


def recorded(step: Step, activities: list[ProfilerActivity]) -> tuple[list[float], list[float], float]:
    with profile(activities=activities) as built:
        step()
        torch.cuda.synchronize()
        reads, lasts = run(step)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.json"
        built.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    syncs = sorted((e["ts"], e["dur"]) for e in events if e.get("ph") == "X" and e["name"] in SYNCS)
    return reads, by_order([dur for _, dur in syncs[-len(reads) * STEPS :]]), lasts


def idle_read() -> float:
    x = torch.ones(1, device="cuda")
    reads: list[float] = []
    with timed_reads(reads):
        for _ in range(200):
            torch.cuda.synchronize()
            x.item()
    return statistics.median(reads)


def error(waits: list[float], truth: list[float]) -> float:
    return statistics.mean(abs(a - b) for a, b in zip(waits, truth, strict=True))


def measure() -> None:
    idle = idle_read()
    print(f"a read on an idle device: {idle:.1f} us. Per step: waits in us, and their mean error per read")
    for make in (guard, schedule, logged):
        step = make()
        for _ in range(20):
            step()
        plain, lasts = run(step)
        truth = [max(0.0, read - idle) for read in plain]
        print(
            f"{make.__name__}: {len(truth)} reads, {lasts:.2f} ms; waits {sum(truth):.0f}, the longest {max(truth):.0f}"
        )
        for name, kinds in (
            ("full", [ProfilerActivity.CPU, ProfilerActivity.CUDA]),
            ("light", [ProfilerActivity.CUDA]),
        ):
            reads, syncs, under = recorded(step, kinds)
            print(
                f"  {name:5s} {under:.2f} ms, {under / lasts:.2f} x; reads {sum(reads):.0f};"
                f" {len(syncs)} synchronizes {sum(syncs):.0f}, error {error(syncs, truth):.1f}"
            )


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("this measures on a GPU, and there is none.")
    measure()


if __name__ == "__main__":
    main()
