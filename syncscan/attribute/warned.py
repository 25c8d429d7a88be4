"""From the lines that torch's debug mode warned of in one step to the sync points of every step, by their order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from syncscan.model.capture import Frame
from syncscan.model.finding import SyncPoint
from syncscan.model.runtime_calls import copies_and_waits, is_stream_synchronize
from syncscan.model.trace import Trace

_ENGINE = "autograd/graph.py"


class WarnedLines:
    """Looks up sync points in the warnings of a torch that doesn't call back at a synchronise.

    The debug mode warns of blocking copies and stream synchronises, in the order in which a thread makes them, and of
    those in backward when `backward()` returns. The warnings carry no time: they are believed of a step in which just
    as many such calls were made on the step's thread.
    """

    def __init__(self, trace: Trace, points: Iterable[SyncPoint]) -> None:
        stacks = _warned(trace)
        self._lines: dict[SyncPoint, tuple[Frame, ...]] = {}
        if not stacks:
            return
        steps: dict[int, list[SyncPoint]] = defaultdict(list)
        for point in sorted(points, key=lambda p: p.ts):
            for step in trace.steps:
                if step.ts <= point.ts < step.end and point.track == step.track and _warns(point):
                    steps[step.number].append(point)
        for made in steps.values():
            if len(made) == len(stacks):
                self._lines.update(zip(made, stacks, strict=True))

    def __bool__(self) -> bool:
        """Whether the warnings tell of any sync point."""
        return bool(self._lines)

    def of(self, point: SyncPoint) -> tuple[Frame, ...]:
        """The stack of a sync point, outermost frame first; empty where the warnings don't tell."""
        return self._lines.get(point, ())


def _warns(point: SyncPoint) -> bool:
    """Whether the debug mode sees the call: memcpy_and_sync and stream_synchronize (c10/cuda/CUDAFunctions.h)."""
    return len(point.calls) > 1 or is_stream_synchronize(point.api) or copies_and_waits(point.api)


def _warned(trace: Trace) -> list[tuple[Frame, ...]]:
    lines = trace.info.capture.lines
    stacks = [lines.stack(sync.stack) for sync in lines.warned if lines.source == "warnings"]
    return [stack for stack in stacks if stack and _ENGINE not in stack[-1].file]
