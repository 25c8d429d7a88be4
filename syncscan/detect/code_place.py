"""Answer rules' questions about the scopes and Python frames around a call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, cached_property, partial
from itertools import takewhile

import numpy as np

from syncscan.facts.paths import Path, frames_around
from syncscan.facts.recorded_stacks import RecordedStacks
from syncscan.model.capture import Frame
from syncscan.model.finding import SyncPoint
from syncscan.model.libraries import in_package, is_library, passes_on, path_in_package
from syncscan.model.slice_names import frame_parts
from syncscan.model.trace import NONE, Trace


class CodePlace:
    """A place in code; calls made there share the object.

    Annotations around a call are without the profiler's steps. Frames are empty if neither profiler nor capture
    recorded any.
    """

    def __init__(self, scopes: tuple[str, ...], frames: tuple[str, ...]) -> None:
        self.scopes, self.frames = scopes, frames

    def in_scope(self, *parts: str) -> bool:
        """Return whether the name of any annotation contains one of these texts."""
        return any(part in scope for scope in self.scopes for part in parts)

    def scope_that(self, predicate: Callable[[str], bool]) -> str:
        return next(filter(predicate, self.scopes), "")

    def directly_in_scope(self, name: str) -> bool:
        return self.scopes[-1:] == (name,)

    @cached_property
    def has_frames(self) -> bool:
        return bool(self.frames)

    @cached_property
    def has_python_frames(self) -> bool:
        return any(map(frame_parts, reversed(self.frames)))

    def called(self, *methods: str) -> bool:
        """Return whether the innermost frame is a C function or method of one of these names."""
        if not self.builtin:
            return False
        kinds = (f"<built-in {kind}" for m in methods for kind in (f"method {m} ", f"function {m}>"))
        return self.builtin.startswith(tuple(kinds))

    def in_frame(self, *packages: str) -> bool:
        return _lies_in(self.python_frames, packages)

    def in_function(self, *names: str) -> bool:
        """Return whether the function of any Python frame has, or begins with, one of these names."""
        return _runs(self.python_frames, names)

    def in_library(self, *packages: str) -> bool:
        return self._in_library(packages)

    @cached_property
    def _in_library(self) -> Callable[[tuple[str, ...]], bool]:
        return cache(partial(_lies_in, self.frames_in_libraries))

    def in_library_function(self, *names: str) -> bool:
        return _runs(self.frames_in_libraries, names)

    def in_library_function_of(self, *names: str, files: tuple[str, ...] = ("",)) -> bool:
        """Unlike `in_library_function`, take whole names only."""
        return any(
            frame.function in names and any(text in frame.file for text in files) for frame in self.frames_in_libraries
        )

    def functions_in_library(self, package: str) -> tuple[str, ...]:
        return tuple(frame.function for frame in self.frames_in_libraries if in_package(frame.file, package))

    def decided_in(self, package: str) -> bool:
        return self.decider is not None and in_package(self.decider.file, package)

    @cached_property
    def deciding_path(self) -> frozenset[str]:
        """Folders and name of the deciding frame's file, in no order; empty without one."""
        return frozenset(self.decider.file.replace("\\", "/").split("/")) if self.decider else frozenset()

    @cached_property
    def deciding_function(self) -> str | None:
        """Function of the deciding frame, or None.

        Comprehensions, generators and lambdas have frames of their own; their function is the one around them.
        """
        decider = self.decider
        if decider is None:
            return None
        around = (frame.function for frame in reversed(self.frames_in_libraries) if frame.file == decider.file)
        return next((name for name in around if not name.startswith("<")), decider.function)

    @cached_property
    def stands_in(self) -> str:
        """Function of a library other than torch that makes the call, as `covar_dist of gpytorch`; else empty."""
        package = path_in_package(self.decider.file).partition("/")[0].removesuffix(".py") if self.decider else "torch"
        return "" if self.decider is None or package == "torch" else f"{self.decider.function} of {package}"

    @cached_property
    def builtin(self) -> str:
        """The innermost frame if it is a C function or method, without its object's address; else empty."""
        innermost = self.frames[-1] if self.frames else ""
        return innermost.partition(" object at ")[0] if innermost.startswith("<built-in ") else ""

    @cached_property
    def python_frames(self) -> tuple[Frame, ...]:
        """The Python frames of `frames`, without C functions and modules, outermost first."""
        return tuple(Frame(*parts) for parts in map(frame_parts, self.frames) if parts)

    @cached_property
    def frames_in_libraries(self) -> tuple[Frame, ...]:
        """Library frames between the program's own innermost frame and the call, outermost first."""
        inwards = (Frame(*parts) for parts in map(frame_parts, reversed(self.frames)) if parts)
        return tuple(takewhile(lambda frame: is_library(frame.file), inwards))[::-1]

    @cached_property
    def decider(self) -> Frame | None:
        """The innermost of `frames_in_libraries` that doesn't merely forward the call, or None."""
        return next((f for f in reversed(self.frames_in_libraries) if not passes_on(f.file)), None)


def places_of(trace: Trace, points: Sequence[SyncPoint], paths: Sequence[Path]) -> list[CodePlace]:
    """Return the places of these calls, given the ops and scopes around each, as one object for equal places."""
    place = cache(CodePlace)
    return [place(path.names.scopes, frames) for path, frames in zip(paths, _frames(trace, points, paths), strict=True)]


def _frames(trace: Trace, points: Sequence[SyncPoint], paths: Sequence[Path]) -> list[tuple[str, ...]]:
    """Return the Python frames around each call: the profiler's, else those that capture recorded for the call."""
    if len(trace.frames):
        times = np.array([(point.track, point.ts, point.end) for point in points], np.int64).reshape(-1, 3)
        return frames_around(trace, *times.T)
    first, last = (np.array([point.calls[at] for point in points], np.int64) for at in (0, -1))
    outermost = np.array([path.ops[0] if path.ops else NONE for path in paths], np.int64)
    recorded = trace.cached(RecordedStacks).of_each(first, last, outermost)
    return [stack.texts if stack and not stack.borrowed else () for stack in recorded]


def _lies_in(frames: tuple[Frame, ...], packages: tuple[str, ...]) -> bool:
    return any(in_package(frame.file, package) for frame in frames for package in packages)


def _runs(frames: tuple[Frame, ...], names: tuple[str, ...]) -> bool:
    return bool(frames) and any(frame.function.startswith(names) for frame in frames)


__all__ = ["CodePlace", "places_of"]
