"""Match the lines that torch's sync debug mode warned of in one step with the sync points of every step, by order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from syncscan.model.capture import Frame
from syncscan.model.finding import SyncPoint
from syncscan.model.runtime_calls import copies_and_waits, is_stream_synchronize
from syncscan.model.trace import Trace

_ENGINE = "autograd/graph.py"


class WarnedLines:
    """Looks up sync points in sync warnings, for versions of torch without a callback on synchronize calls.

    The debug mode warns of blocking copies and stream synchronizes in the order in which a thread makes them; those in
    backward come when `backward()` returns. Warnings carry no time, so they are used only for steps whose thread made
    exactly as many such calls.
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
        for candidates in steps.values():
            if len(candidates) == len(stacks):
                self._lines.update(zip(candidates, stacks, strict=True))

    def __bool__(self) -> bool:
        """Return whether the warnings locate any sync point."""
        return bool(self._lines)

    def of(self, point: SyncPoint) -> tuple[Frame, ...]:
        """Return the stack of a sync point, outermost frame first; empty if the warnings don't locate it."""
        return self._lines.get(point, ())


def _warns(point: SyncPoint) -> bool:
    """Return whether the debug mode warns of the call (memcpy_and_sync and stream_synchronize in CUDAFunctions.h)."""
    return len(point.calls) > 1 or is_stream_synchronize(point.api) or copies_and_waits(point.api)


def _warned(trace: Trace) -> list[tuple[Frame, ...]]:
    lines = trace.info.capture.lines
    stacks = [lines.stack(sync.stack) for sync in lines.warned if lines.source == "warnings"]
    return [stack for stack in stacks if stack and _ENGINE not in stack[-1].file]
