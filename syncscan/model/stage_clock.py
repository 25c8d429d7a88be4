"""From the ends of an analysis' stages to what each of them took, by the clock and of the processors."""

from __future__ import annotations

import sys
import time

import msgspec


class StageCost(msgspec.Struct, frozen=True):
    """What one stage took."""

    name: str
    seconds: float
    cpu_seconds: float
    """Of all processors, and of processes that it started and that are over."""


class StageClock(msgspec.Struct):
    """Told when a stage is over, it knows what that took: from the end of the stage before."""

    costs: list[StageCost] = msgspec.field(default_factory=list)
    _since: tuple[float, float] = msgspec.field(default_factory=lambda: (time.perf_counter(), cpu_seconds()))

    def over(self, stage: str) -> None:
        """Count the time since the last stage for this one."""
        (wall, cpu), now = self._since, (time.perf_counter(), cpu_seconds())
        self.costs.append(StageCost(stage, now[0] - wall, now[1] - cpu))
        self._since = now


def cpu_seconds() -> float:
    """What this process has used of processors so far, its ended children included where the system tells."""
    if sys.platform == "win32":
        return time.process_time()
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(usage.ru_utime + usage.ru_stime for usage in used)
