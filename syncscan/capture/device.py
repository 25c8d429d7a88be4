"""The machine's accelerator, if any: which it is, its clocks, and the time of steps that run without a profiler.

It isn't drained between timed steps: that would part what host and device do at the same time across steps, and
throughput is what counts. Instead an event is recorded at each step's end, and read only when all are over; the
distance of two such events is the period of one step. That holds where the device is the limit (its own clock says when
it was done with each step, though the host had long gone on), where the host is (the last kernel ends a constant while
after its launch), and where a sync makes them equal. The host's clock would do in the last two alone.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import itertools
import sys
import time
from collections.abc import Sequence
from typing import Any

from syncscan.model.step_times import StepTimes


def vendor() -> str | None:
    """Return the name of torch's module for the accelerator (`cuda`, also for ROCm, or `xpu`), or None.

    A dry run's simulated device doesn't count.
    """
    import torch

    for name in ("cuda", "xpu"):
        module = getattr(torch, name, None)
        if module is not None and not hasattr(module.is_available, "pretended") and module.is_available():
            return name
    return None


def backend() -> Any:
    """Return torch's module for the accelerator (`torch.cuda` or `torch.xpu`), or None."""
    import torch

    name = vendor()
    return getattr(torch, name) if name is not None else None


def used() -> bool:
    """Return whether this process has used its device; False without torch."""
    if "torch" not in sys.modules:
        return False
    module = backend()
    return module is not None and bool(module.is_initialized())


def drain() -> None:
    """Wait until the current device has finished all launched work; a no-op before its first use."""
    if used():
        backend().synchronize()


def clocks() -> dict[str, float] | None:
    """Return the device's power draw and limit (W) from NVML; None without `nvidia-ml-py` or a device."""
    module = backend()
    if module is None or not module.is_initialized() or not hasattr(module, "power_draw"):
        return None
    with contextlib.suppress(Exception):
        return {"power_w": module.power_draw() / 1000, **_power_limit(module)}
    return None


def _power_limit(module: Any) -> dict[str, float]:
    """Return the device's power limit (W), which sustained work runs into; empty where NVML doesn't report it."""
    with contextlib.suppress(Exception):
        nvml = importlib.import_module("pynvml")
        handle = module._get_pynvml_handler()
        return {"power_limit_w": nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000}
    return {}


UNSEEN = 0.1
"""Least fraction of the time until the device was drained that events must cover; with less, work ran on other streams.
"""


class StepTimer:
    """Times steps from its creation, or its first `mark`, until `end`.

    Of more than `steps`, only the mean is known. With `begin`, the first step begins now, and not at the first `mark`.
    """

    def __init__(self, steps: int, *, begin: bool = True) -> None:
        self._events = _events(steps + 1)
        drain()
        self._host: list[int] = []
        if begin:
            self.mark()

    def mark(self) -> None:
        """Record the end of a step; takes a few µs of the host."""
        if len(self._host) < len(self._events):
            self._events[len(self._host)].record()
        self._host.append(time.perf_counter_ns())

    def end(self) -> StepTimes:
        """Wait for the device, and return the steps' times."""
        drain()
        steps = len(self._host) - 1
        total = (time.perf_counter_ns() - self._host[0]) / 1e3
        if not used():
            return StepTimes(total / steps, tuple((b - a) / 1e3 for a, b in itertools.pairwise(self._host)), "host")
        distances = _distances(self._events[: steps + 1])
        if sum(distances) < (1 - UNSEEN) * total:
            return StepTimes(total / steps, (), "host")
        return StepTimes(total / steps, distances, "device")


def _events(count: int) -> list[Any]:
    """Return timing events that were recorded once, as the first recording creates them; empty without a device."""
    if not used():
        return []
    try:
        events = [backend().Event(enable_timing=True) for _ in range(count)]
        for event in events:
            event.record()
    except (TypeError, RuntimeError):  # older torches can't time on an XPU
        return []
    return events


def _distances(events: Sequence[Any]) -> tuple[float, ...]:
    """Return the times between consecutive events in µs; empty where they are on different devices."""
    try:
        return tuple(float(a.elapsed_time(b)) * 1e3 for a, b in itertools.pairwise(events))
    except (RuntimeError, ValueError):
        return ()


def prefetched() -> int:
    """Return how many batches loader workers have ready for a program that was paused.

    They continue to fill their queues while it is paused, so that its first steps afterwards don't wait for them.
    """
    loader = sys.modules.get("torch.utils.data.dataloader")
    kind = getattr(loader, "_MultiProcessingDataLoaderIter", None)
    if kind is None:
        return 0
    return max((_queue(o) for o in gc.get_objects() if issubclass(type(o), kind)), default=0)


def _queue(loader: Any) -> int:
    return int(getattr(loader, "_prefetch_factor", None) or 2) * int(getattr(loader, "_num_workers", 0))
