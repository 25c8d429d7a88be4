"""Time calls: with device events if there is a device, else with the host's clock.

Nothing waits between two calls. The host records an event before the first block of calls and one behind each, runs
ahead as it would in a real loop, and synchronizes once at the end; a block's time is the distance of its two events.
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
"""Approximate duration of a block of short calls, which keeps reading the clock below a percent of it: an event between
calls costs a host 1 to 2 µs, and 10 on virtual machines with an H200 (a product of 64² took 14.5 µs in a row, 15.0
with an event after every twentieth)."""


class Stopwatch(Protocol):
    """Times calls on one kind of clock."""

    clock: Clock

    def blocks(self, call: Call, blocks: int, block: int) -> list[float]:
        """Run `blocks` times `block` calls without a pause; return the mean time of a call in each block, in µs."""
        ...

    def drain(self) -> None:
        """Wait until the device has finished everything; a no-op for a host."""
        ...

    def clean(self) -> None:
        """Release the memory that a call left behind when it ran out of it."""
        ...


class HostStopwatch:
    """The host's monotonic clock: right where the host itself does the work."""

    clock = Clock.HOST

    def blocks(self, call: Call, blocks: int, block: int) -> list[float]:
        """Implement `Stopwatch.blocks`."""
        marks = [time.perf_counter_ns()]
        for _ in range(blocks):
            for _ in range(block):
                call()
            marks.append(time.perf_counter_ns())
        return [(b - a) / block / 1e3 for a, b in itertools.pairwise(marks)]

    def drain(self) -> None:
        """Do nothing: a host's call is over when it returns."""

    def clean(self) -> None:
        """Do nothing: the host's allocator holds nothing back from later calls."""


class DeviceStopwatch:
    """Events on the current stream of an accelerator.

    Args:
        backend: torch's module for it (`torch.cuda`, `torch.xpu`).
    """

    clock = Clock.DEVICE

    def __init__(self, backend: Any) -> None:
        self._backend = backend

    def blocks(self, call: Call, blocks: int, block: int) -> list[float]:
        """Implement `Stopwatch.blocks`."""
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
        """Release the cached blocks of torch's allocator to the device."""
        self._backend.empty_cache()


def in_a_row(watch: Stopwatch, call: Call, once: float) -> int:
    """Return how many calls a block needs; short ones are timed in a row, lest the clock's cost count as theirs.

    Args:
        watch: takes the times.
        call: the call to time; a long one isn't called.
        once: the time of one call in a block of its own, in µs.
    """
    if once < BLOCK_US:
        began = time.perf_counter_ns()
        seen = statistics.median(watch.blocks(call, 10, 10))
        once = max(seen, (time.perf_counter_ns() - began) / 1e3 / 100)  # events don't see what other streams do
    return max(1, min(10_000, int(BLOCK_US / max(once, 0.01) + 0.5)))


def alone(watch: Stopwatch, call: Call, times: int) -> list[float]:
    """Return times of calls that each start on an idle device and are awaited, in µs of the host's clock."""
    taken = []
    for _ in range(times):
        watch.drain()
        began = time.perf_counter_ns()
        call()
        watch.drain()
        taken.append((time.perf_counter_ns() - began) / 1e3)
    return taken


def unsynchronized(watch: Stopwatch, call: Call, times: int) -> list[float]:
    """Return times measured around each call without waiting for the device, in µs: the time of the launches."""
    taken = []
    watch.drain()
    for _ in range(times):
        began = time.perf_counter_ns()
        call()
        taken.append((time.perf_counter_ns() - began) / 1e3)
    watch.drain()
    return taken
