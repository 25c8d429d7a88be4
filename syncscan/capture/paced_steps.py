"""Pause a program at step ends between requests, and time the steps of each request.

So two running programs take turns: while one is paused, the other timed.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator
from typing import Any

from syncscan.capture import device
from syncscan.capture.calibration import StepTimer

WARMUP = 10
"""Steps before the first request: kernels are loaded, algorithms chosen, memory allocated."""
SLOW_S, SLOW_WARMUP = 0.5, 3
"""Step time from which fewer warm-up steps must do, and their number."""
LEAD = 2
"""Steps of a turn before the timed ones, until the device has queued work again."""


class Channel:
    """Lines of JSON to and from the process that compares programs, over two pipes."""

    def __init__(self, orders: int, answers: int) -> None:
        for number in (orders, answers):
            os.set_inheritable(number, False)
        self._orders, self._answers = os.fdopen(orders, "rb"), os.fdopen(answers, "wb")

    def send(self, message: dict[str, Any]) -> None:
        """Write a line; a missing reader is no error of the program's."""
        with contextlib.suppress(OSError, ValueError):
            self._answers.write(json.dumps(message).encode() + b"\n")
            self._answers.flush()

    def receive(self) -> dict[str, Any] | None:
        """Return the next request; None when there are no more."""
        line = self._orders.readline()
        order: dict[str, Any] | None = json.loads(line) if line else None
        return order if order and order.get("steps") else None

    def close(self) -> None:
        self._answers.close()


class Pacer:
    """Pauses and times one program. `step` returns False when there are no more requests, and the program is to end."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._course = self._run()
        next(self._course)

    def step(self, returned: Any = None) -> bool:
        return next(self._course, False)

    def forget(self) -> None:
        """Ignore that a rarer optimizer marks steps from here: those before were warm-up."""

    def _run(self) -> Iterator[bool]:
        yield from self._warm_up()
        lead = LEAD + prefetched()
        self._channel.send({"ready": True, "lead": lead})
        while (order := self._channel.receive()) is not None:
            times = StepTimer(order["steps"], begin=False)
            for _ in range(lead):
                yield True
            times.mark()
            for _ in range(order["steps"]):
                yield True
                times.mark()
            taken = times.end()
            mean = statistics.fmean(taken.each) if taken.each else taken.mean
            self._channel.send({"mean_us": mean, "clock": taken.clock})

    def _warm_up(self) -> Iterator[bool]:
        yield True  # the first step begins when the program does: what comes before it isn't the step's
        began = time.perf_counter()
        for done in range(1, WARMUP):
            yield True
            spent = (time.perf_counter() - began) / done
            if done + 1 >= SLOW_WARMUP and spent > SLOW_S:
                break


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


def device_name() -> str:
    """Return the device that the program computes on, as a report names it."""
    torch = importlib.import_module("torch")
    return str(device.backend().get_device_name()) if device.used() else f"CPU, {torch.get_num_threads()} threads"
