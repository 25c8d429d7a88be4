"""Jobs of a few ranks in a few lines: in comes what each rank's step does, out its trace as its process writes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from syncscan import api
from syncscan.fleet.worker import rank_of
from syncscan.model.rank import RankAnalysis
from tests.builder import TraceBuilder

TOOK = 50.0
"""Time of a step's all-reduce once all ranks have arrived, µs."""


@dataclass(frozen=True)
class Step:
    """A rank's step: two kernels with an `.item()` between them or not, and what the host does then; µs."""

    first: float = 400
    second: float = 300
    item: bool = False
    host: float = 0
    """Behind the `.item()`, before the second kernel is launched."""
    load: float = 0
    """In the DataLoader, before the first."""


def traces(
    ranks: Sequence[Step], steps: int = 4, clocks: Sequence[float] = (), first: int = 2, world: int | None = None
) -> list[TraceBuilder]:
    """The traces of a job whose rank k does `ranks[k]` in each step, on a clock that is so many µs ahead."""
    built = [_Rank(k, rank, clocks[k] if clocks else 0.0, world or len(ranks)) for k, rank in enumerate(ranks)]
    free = 0.0
    for step in range(first, first + steps):
        free = max(rank.launch(step, free) for rank in built) + TOOK
        for rank in built:
            rank.meet(free, range(len(ranks)))
    return [rank.trace for rank in built]


class _Rank:
    """One rank on its way: its host runs ahead of its device, but where it reads a number back."""

    def __init__(self, number: int, step: Step, ahead: float, world: int) -> None:
        self.trace = TraceBuilder(distributedInfo={"rank": number, "world_size": world, "backend": "nccl"})
        self.step, self.ahead, self.host = step, ahead, 0.0

    def launch(self, number: int, free: float) -> float:
        """A step up to its collective, on a device that is free from then on; when it comes to that."""
        t, step, ahead, begin = self.trace, self.step, self.ahead, self.host
        at = begin + 5
        if step.load:
            t.scope("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at + ahead, at + ahead + step.load)
            at += step.load
        done = t.launch("first", at=at + ahead, lasts=step.first, begins=free + ahead) - ahead
        at += 5
        if step.item:
            t.sync("aten::item", at=at + ahead, wait=done - at)
            at = done + 10 + step.host
        came = t.launch("second", at=at + ahead, lasts=step.second) - ahead
        self.at, self.number, self.begin = at + 5, number, begin
        return came

    def meet(self, until: float, ranks: Sequence[int]) -> None:
        """The collective of this step, and its end on the host."""
        self.trace.collective(at=self.at + self.ahead, until=until + self.ahead, ranks=ranks)
        self.host = self.at + 5
        self.trace.step(self.begin + self.ahead, self.host + self.ahead, self.number)


def analyses(built: Sequence[TraceBuilder], step_ms: float | None = None) -> list[RankAnalysis]:
    """Each rank's own analysis; the step takes so long without the profiler."""
    return [rank_of(api.analyze_trace(t.trace(), step_ms=step_ms)) for t in built]
