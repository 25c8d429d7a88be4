"""Find the batch size with the most samples per second.

The size doubles until it runs out of memory, then the last interval is bisected. Every size gets a time of its own, so
the most samples per second is seen where it is, which needn't be at the largest size.
"""

from __future__ import annotations

import gc
import importlib
import statistics
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from syncscan.capture.stopwatch import Stopwatch, in_a_row
from syncscan.errors import UsageError
from syncscan.model.timing import BatchTime, Clock, Throughput

PLATEAU, PATIENCE_S = 3, 15.0
"""Doublings in a row without a gain after which the search ends, once it has lasted this long."""
GAIN = 1.02
"""Factor over the previous best that counts as a gain."""
TIE, ENOUGH = 0.99, 0.95
"""Fractions of the most samples per second: sizes within the first are as good; the smallest within the second is
enough."""
BISECTIONS = 4
"""Bisections between the largest size that ran and the smallest that didn't: down to 1/16 of it."""


@dataclass(slots=True)
class Search:
    """One search for a batch size.

    Args:
        make: from a batch size to the call to be timed; may run out of memory itself.
        watch: takes the times.
        seconds: how long each size is timed.
        budget_s: how long the whole search may take.
        patience_s: how long it goes on after samples per second have stopped growing, to see memory run out.
        max_batch: the largest size to try.
    """

    make: Callable[[int], Callable[[], Any]]
    watch: Stopwatch
    seconds: float = 0.3
    budget_s: float = 120.0
    patience_s: float = PATIENCE_S
    max_batch: int = 1 << 20
    tried: dict[int, float | None] = field(default_factory=dict)

    def run(self) -> Throughput:
        """Double, bisect, and summarize.

        Raises:
            UsageError: not even a batch of one ran.
        """
        ended = self._double()
        if not self._ran:
            raise UsageError("Not even a batch of 1 fits into memory.", "Time a smaller model or input.")
        failed = [b for b, us in self.tried.items() if us is None]
        if failed:
            self._bisect(max(self._ran), min(failed))
        return self._summary(ended)

    @property
    def _ran(self) -> dict[int, float]:
        return {b: b / us for b, us in self.tried.items() if us is not None}

    def _double(self) -> str:
        began, batch, best, losses = time.monotonic(), 1, 0.0, 0
        while batch <= self.max_batch:
            rss = _resident()
            if not self._try(batch):
                return f"a batch of {batch} runs out of memory"
            rate, spent = self._ran[batch], time.monotonic() - began
            losses = 0 if rate > GAIN * best else losses + 1
            best = max(best, rate)
            if losses >= PLATEAU and spent > self.patience_s:
                return f"{losses} doublings in a row brought no more samples per second"
            if self.watch.clock is Clock.HOST and _too_big(rss):
                return "the next doubling may not fit into host memory"
            if spent > self.budget_s:
                return f"the time limit of {self.budget_s:.0f} s was reached"
            batch *= 2
        return f"the largest allowed batch is {self.max_batch}"

    def _bisect(self, low: int, high: int) -> None:
        for _ in range(BISECTIONS):
            middle = (low + high) // 2
            if middle in (low, high):
                return
            if self._try(middle):
                low = middle
            else:
                high = middle

    def _try(self, batch: int) -> bool:
        """Time this size; return False if it runs out of memory, and release that memory."""
        try:
            self.tried[batch] = self._time(batch)
            return True
        except Exception as error:
            if not out_of_memory(error):
                raise
            self.tried[batch] = None
            traceback.clear_frames(error.__traceback__)
        gc.collect()
        self.watch.clean()
        return False

    def _time(self, batch: int) -> float:
        self.watch.clean()
        call = self.make(batch)
        first = sum(self.watch.blocks(call, 1, 1))
        warm = self.watch.blocks(call, _calls(self.seconds / 3, first, 1), 1)
        block = in_a_row(self.watch, call, statistics.median(warm))
        taken = self.watch.blocks(call, _calls(self.seconds, block * first, 3), block)
        return statistics.median(taken)

    def _summary(self, ended: str) -> Throughput:
        times = tuple(BatchTime(b, self.tried[b]) for b in sorted(self.tried))
        rates = self._ran
        top = max(rates.values())
        best = next(t for t in reversed(times) if rates.get(t.batch, 0.0) >= TIE * top)
        enough = next(t for t in times if rates.get(t.batch, 0.0) >= ENOUGH * top)
        return Throughput(times, best, enough, max(rates), all(t.us is not None for t in times), ended)


def out_of_memory(error: BaseException) -> bool:
    """Return whether this error says that memory ran out: torch's own class, or messages of libraries and the host."""
    torch = importlib.import_module("torch")
    own = getattr(torch, "OutOfMemoryError", None) or torch.cuda.OutOfMemoryError
    words = ("out of memory", "can't allocate memory", "ALLOC_FAILED", "not enough memory")
    return isinstance(error, own | MemoryError) or (
        isinstance(error, RuntimeError) and any(w in str(error) for w in words)
    )


def _calls(seconds: float, call_us: float, least: int) -> int:
    return max(least, min(100, int(seconds * 1e6 / max(call_us, 1.0))))


def _resident() -> int:
    """Return the peak memory of this process in bytes; 0 where unknown."""
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _too_big(before: int) -> bool:
    """Return whether twice the memory that this size added would exhaust the host (Linux; else False)."""
    meminfo = Path("/proc/meminfo")
    grown = _resident() - before
    if grown <= 0 or not meminfo.exists():
        return False
    free = next((line for line in meminfo.read_text().splitlines() if line.startswith("MemAvailable:")), "")
    return bool(free) and 2 * grown > int(free.split()[1]) * 1024 * 0.8
