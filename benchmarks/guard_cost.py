"""Measure the cost of an armed guard: `python -m benchmarks.guard_cost`, on a machine with a GPU.

Printed are the ratio of a step without syncs under a guard to the same step without (median of alternating blocks),
what single calls take longer, what a seen sync takes longer, and how long pageable copies to a busy device take by size
(`guarding.blocking_copies.STAGED_BYTES` is the largest that returned at once).
"""

from __future__ import annotations

import argparse
import statistics
import time
import timeit
from collections.abc import Callable
from typing import Any

import syncscan
from syncscan.guarding import blocking_copies

ROUNDS = 300
"""Bursts of each call, with a guard and without."""
BURST = 100


def step_ratio(blocks: int = 15, steps: int = 20) -> float:
    """A step of 1,200 small ops and 20 copies of pinned batches, under a guard and without, in turn."""
    import torch

    x = torch.randn(64, 64, device="cuda")
    batch = torch.empty(64, 64, pin_memory=True)

    def step() -> None:
        for k in range(600):
            x.add(1).mul_(2)
            if k % 30 == 0:
                batch.to("cuda", non_blocking=True)

    def timed() -> float:
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(steps):
            step()
        elapsed = time.perf_counter() - begin
        torch.cuda.synchronize()
        return elapsed

    timed()
    ratios = []
    for _ in range(blocks):
        without = timed()
        guard = syncscan.guard(limit=10**9)
        torch.cuda.synchronize()
        with guard:
            under = timed()
        ratios.append(under / without)
    return statistics.median(ratios)


def call_us() -> dict[str, float]:
    """Return the µs that a guard adds to calls that don't wait, and those of an allowed block and a step."""
    import torch

    x, y = torch.randn(8, device="cuda"), torch.randn(8, device="cuda")
    pinned = torch.empty(8, pin_memory=True)
    batch, on_device = torch.empty(2**20, pin_memory=True), torch.empty(2**20, device="cuda")
    event = torch.cuda.Event()
    calls: dict[str, Callable[[], Any]] = {
        "to(dtype)": lambda: x.to(torch.float32),
        "copy_ on the device": lambda: y.copy_(x),
        "pinned to the device": lambda: y.copy_(pinned, non_blocking=True),
        "a large pinned batch to the device": lambda: on_device.copy_(batch, non_blocking=True),
        "to the host": lambda: x.to("cpu", non_blocking=True),
        "event.record()": lambda: event.record(),
        "add": lambda: x.add(y),
    }
    longer = {name: _longer_us(call) for name, call in calls.items()}
    with syncscan.guard(limit=10**9) as guard:
        longer["guard.step()"] = _least_us(guard.step)
        longer["with allow"] = _least_us(_allowed)
    return longer


def sync_us() -> tuple[float, float]:
    """Return the µs of `.item()` on an idle device, without a guard and under one."""
    import torch

    x = torch.zeros((), device="cuda")
    without = _least_us(x.item, 2_000)
    with syncscan.guard(on_violation=lambda sync: None):
        return without, _least_us(x.item, 2_000)


def pageable_ms() -> dict[int, float]:
    """Bytes → how long a non-blocking pageable copy to a device that is busy for a tenth of a second takes, in ms."""
    import torch

    matches = {}
    for power in range(14, 29, 2):
        host = torch.ones(2**power // 4)
        host.to("cuda", non_blocking=True)
        torch.cuda.synchronize()
        torch.cuda._sleep(200_000_000)
        begin = time.perf_counter()
        host.to("cuda", non_blocking=True)
        matches[2**power] = (time.perf_counter() - begin) * 1e3
        torch.cuda.synchronize()
    return matches


def _allowed() -> None:
    with syncscan.allow("measured"):
        pass


def _longer_us(call: Callable[[], Any]) -> float:
    """Return the µs that a guard adds to a call: lower quartiles of short bursts, with and without in turn.

    Each burst begins with an idle device and ends before its queue is full: else the device's own time is measured.
    """
    without, under = [], []
    for _ in range(ROUNDS):
        without.append(_burst_us(call))
        with syncscan.guard(limit=10**9):
            under.append(_burst_us(call))
    return statistics.quantiles(under, n=4)[0] - statistics.quantiles(without, n=4)[0]


def _burst_us(call: Callable[[], Any]) -> float:
    import torch

    call()
    torch.cuda.synchronize()
    return timeit.timeit(call, number=BURST) / BURST * 1e6


def _least_us(call: Callable[[], Any], number: int = 20_000) -> float:
    call()
    return min(timeit.repeat(call, number=number, repeat=7)) / number * 1e6


def main() -> None:
    """Print all of it."""
    import torch

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("this measures on a GPU, and there is none.")
    print(f"a step of 1,200 ops and 20 copies without syncs, under a guard: {step_ratio():.3f} of its time")
    for name, us in call_us().items():
        print(f"{name:>38}  {us:+.3f} µs", flush=True)
    print(".item() on an idle device: {:.2f} µs, seen by a guard {:.2f} µs".format(*sync_us()))
    print(f"pageable to a busy device, by bytes (STAGED_BYTES is {blocking_copies.STAGED_BYTES}):")
    for size, ms in pageable_ms().items():
        print(f"{size:>12}  {ms:8.3f} ms")


if __name__ == "__main__":
    main()
