"""Find the function whose loop repeats a sync, as dynamo meets it: from the network's own `forward` inward."""

from __future__ import annotations

import enum
from collections.abc import Sequence

import numpy as np

from syncscan.facts.frames import frames_around
from syncscan.facts.recorded_stacks import RecordedStacks
from syncscan.model.capture import Frame
from syncscan.model.finding import SyncPoint
from syncscan.model.libraries import calls_modules, is_library, passes_on
from syncscan.model.slice_names import frame_parts
from syncscan.model.trace import NONE, Trace

_MODULE = "nn.Module: "


class LoopHolder(enum.Enum):
    """The outermost function within a network that has a loop around a sync."""

    NONE = "none"
    """No loop is within the network: each call of it waits once."""
    NETWORK = "network"
    """The network's own `forward`, which is what would be compiled."""
    CALLED = "called"
    """A function or module that it calls."""
    UNKNOWN = "unknown"


class SyncLoops:
    """Finds the loops around syncs of a trace, by capture's stacks or the profiler's frames."""

    def __init__(self, trace: Trace) -> None:
        lines = trace.info.capture.lines
        self._trace = trace
        self._looped: frozenset[Frame] | None = None
        if lines.looped is not None:
            self._looped = frozenset(lines.frames[i] for i in lines.looped if 0 <= i < len(lines.frames))

    def holder(self, syncs: Sequence[SyncPoint]) -> LoopHolder:
        """Return which function has the loop that repeats these syncs of one line, ascending, in one call."""
        stack = self._recorded(syncs[0])
        if stack:
            return self._of_recorded(stack)
        return self._of_profiled(syncs)

    def _recorded(self, sync: SyncPoint) -> tuple[Frame, ...]:
        """Return the frames within the network that capture recorded, outermost first."""
        first, last, op = (np.array([n], np.int64) for n in (sync.calls[0], sync.calls[-1], (*sync.ops, NONE)[0]))
        (stack,) = self._trace.cached(RecordedStacks).of_each(first, last, op)
        frames = stack.frames if stack else ()
        call = next((at for at, frame in enumerate(frames) if calls_modules(frame.file)), len(frames))
        return tuple(frame for frame in frames[call:] if not _passes_on(frame.file))

    def _of_recorded(self, frames: Sequence[Frame]) -> LoopHolder:
        if self._looped is None:
            return LoopHolder.NETWORK if len(frames) == 1 else LoopHolder.UNKNOWN
        if frames[0] in self._looped:
            return LoopHolder.NETWORK
        return LoopHolder.CALLED if any(frame in self._looped for frame in frames) else LoopHolder.NONE

    def _of_profiled(self, syncs: Sequence[SyncPoint]) -> LoopHolder:
        """Return the holder by the profiler's frames: those around all rounds at once have the loop, or are around it.

        Without a loop of the network's there is none, as each call of it has frames of its own.
        """
        track, begin, end = (np.array([n], np.int64) for n in (syncs[0].track, syncs[0].ts, syncs[-1].end))
        if not any(name.startswith(_MODULE) for name in frames_around(self._trace, track, begin, begin)[0]):
            return LoopHolder.UNKNOWN
        (names,) = frames_around(self._trace, track, begin, end)
        modules = [at for at, name in enumerate(names) if name.startswith(_MODULE)]
        if not modules:
            return LoopHolder.NONE
        parts = [frame_parts(name) for name in names[modules[0] :]]
        inner = [part for part in parts if part and not _passes_on(part[0])]
        return LoopHolder.NETWORK if len(inner) <= 1 else LoopHolder.CALLED


def _passes_on(file: str) -> bool:
    return is_library(file) and passes_on(file)
