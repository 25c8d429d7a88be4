"""Calls go in, their times come out: by the device's own events where there is a device, else by the host's clock.

Nothing waits between two calls. The host records an event before the first block of calls and one behind each, runs
ahead as it would in a real loop, and synchronises once at the end; a block's time is the distance of its two events.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable
from typing import Any, Protocol

from syncscan.model.timing import Clock

Call = Callable[[], Any]
BLOCK_US = 2000.0
"""A block of short calls lasts about this long, so that reading the clock stays below a percent of it: an event between
calls costs a host 1 to 2 µs, and 10 on virtual machines with an H200 (a product of 64² took 14.5 µs in a row,
15.0 with an event behind every twentieth)."""


class Stopwatch(Protocol):
    """Times calls on one kind of clock."""

    clock: Clock

    def blocks(self, call: Call, blocks: int, block: int) -> list[float]:
        """Run `blocks` times `block` calls without a pause; the mean time of a call in each block, in µs."""
        ...

    def drain(self) -> None:
        """Wait until the device has done everything; nothing to do for a host."""
        ...

    def clean(self) -> None:
        """Give back the memory that a call which ran out of it has left behind."""
        ...


class HostStopwatch:
    """The host's monotonic clock: right where the host itself does the work."""

    clock = Clock.HOST

    def blocks(self, call: Call, blocks: int, block: int) -> list[float]:
        """As `Stopwatch.blocks`."""
        marks = [time.perf_counter_ns()]
        for _ in range(blocks):
            for _ in range(block):
                call()
            marks.append(time.perf_counter_ns())
        return [(b - a) / block / 1e3 for a, b in itertools.pairwise(marks)]

    def drain(self) -> None:
        """Nothing to do: a host's call is over when it returns."""

    def clean(self) -> None:
        """Nothing to do: the host's allocator keeps nothing back that a later call can't have."""


class DeviceStopwatch:
    """Events on the current stream of an accelerator.

    Args:
        backend: torch's module for it (`torch.cuda`, `torch.xpu`).
    """

    clock = Clock.DEVICE

    def __init__(self, backend: Any) -> None:
        self._backend = backend

    def blocks(self, call: Call, blocks: int, block: int) -> list[float]:
        """As `Stopwatch.blocks`."""
        events = [self._backend.Event(enable_timing=True) for _ in range(blocks + 1)]
        self.drain()
        events[0].record()
        for event in events[1:]:
            for _ in range(block):
                call()
            event.record()
        self.drain()
        return [a.elapsed_time(b) * 1e3 / block for a, b in itertools.pairwise(events)]

    def drain(self) -> None:
        """Wait for all streams of the current device."""
        self._backend.synchronize()

    def clean(self) -> None:
        """Give the cached blocks of torch's allocator back to the device."""
        self._backend.empty_cache()


def in_a_row(watch: Stopwatch, call: Call, once: float) -> int:
    """How many calls a block has to have; short ones are timed in a row for it, or the clock's own cost were theirs.

    Args:
        watch: takes the times.
        call: what is to be timed; a long one isn't called.
        once: what one takes in a block by itself, in µs.
    """
    if once < BLOCK_US:
        began = time.perf_counter_ns()
        seen = statistics.median(watch.blocks(call, 10, 10))
        once = max(seen, (time.perf_counter_ns() - began) / 1e3 / 100)  # events don't see what other streams do
    return max(1, min(10_000, int(BLOCK_US / max(once, 0.01) + 0.5)))


def alone(watch: Stopwatch, call: Call, times: int) -> list[float]:
    """Times of calls that each find the device idle and are waited for, in µs of the host's clock."""
    taken = []
    for _ in range(times):
        watch.drain()
        began = time.perf_counter_ns()
        call()
        watch.drain()
        taken.append((time.perf_counter_ns() - began) / 1e3)
    return taken


def unsynchronised(watch: Stopwatch, call: Call, times: int) -> list[float]:
    """What `time.time()` around each call says when nobody waits for the device, in µs: the time of the launches."""
    taken = []
    watch.drain()
    for _ in range(times):
        began = time.perf_counter_ns()
        call()
        taken.append((time.perf_counter_ns() - began) / 1e3)
    watch.drain()
    return taken
