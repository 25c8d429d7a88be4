"""Measure the wall and processor time of an analysis's stages."""

from __future__ import annotations

import sys
import time

import msgspec


class StageClock(msgspec.Struct):
    """Measures each stage from the end of the previous one."""

    costs: list[tuple[str, float, float]] = msgspec.field(default_factory=list)
    """Each stage with its seconds, and its seconds on all processors, including finished child processes."""
    _since: tuple[float, float] = msgspec.field(default_factory=lambda: (time.perf_counter(), cpu_seconds()))

    def over(self, stage: str) -> None:
        """Attribute the time since the last stage to this one."""
        (wall, cpu), now = self._since, (time.perf_counter(), cpu_seconds())
        self.costs.append((stage, now[0] - wall, now[1] - cpu))
        self._since = now


def cpu_seconds() -> float:
    """Return the processor time of this process, with finished children where the system reports it."""
    if sys.platform == "win32":
        return time.process_time()
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(usage.ru_utime + usage.ru_stime for usage in used)
