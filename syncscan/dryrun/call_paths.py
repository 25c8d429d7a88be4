"""Read where the program is from the running frames: its stack, and its path to each wait and to each step's end."""

from __future__ import annotations

import importlib
import sys
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

from syncscan.capture.stack_frames import RUNNER, outward
from syncscan.dryrun.recording import Frame, Stack
from syncscan.facts.program_frames import ModulePaths, shortened
from syncscan.model.libraries import is_library

_HERE = str(Path(__file__).parent)
_STARTERS = ("<frozen runpy>", "runpy.py")
_ENGINE = ("_engine_run_backward", "torch/autograd/graph.py")
_WRAPPER = str(Path("torch", "_dynamo", "eval_frame.py"))
"""Frames that torch puts around a dispatch mode's own function."""

CallPath = tuple[tuple[CodeType, int, int], ...]
"""Function, line and instruction of each of the program's frames, outermost first."""


class WaitOnThread(NamedTuple):
    """A wait on the program's own thread: its number among all, when it began and ended, and the path to it."""

    number: int
    begin: int
    end: int
    path: CallPath


class CallPaths:
    """The program's paths to its waits and to its steps' ends; all times are on the recording's clock.

    `ends` are the times at which a step began or ended; `backwards` the first time that the backward pass was called by
    each path, before the first of these, and `scopes` that a `record_function` range began; `entered` is the line of
    the block that is watched, where that isn't a script.
    """

    def __init__(self) -> None:
        self.met: list[WaitOnThread] = []
        self.ends: list[int] = []
        self.backwards: dict[int, CallPath] = {}
        self.scopes: dict[int, CallPath] = {}
        self.entered: tuple[CodeType, int] | None = None
        self._to_steps: Counter[CallPath] = Counter()
        self._outside = 0
        self._known: dict[CallPath, CallPath] = {}
        self._passed: set[CallPath] = set()

    def enter(self, frame: FrameType) -> None:
        """Watch from this frame on, which asks for it: those around it aren't the program's."""
        self.entered = frame.f_code, frame.f_lineno
        self._outside = len(_program_frames(frame)) - 1

    def wait(self, number: int, begin: int, end: int) -> None:
        """Keep the path to a wait that the program's own thread has just made."""
        self.met.append(WaitOnThread(number, begin, end, self._now()))

    def first_time(self, known: dict[int, CallPath], at: int) -> None:
        """Keep the path to a call that is one of `backwards` or `scopes`, before the first step's end."""
        if not self.ends and (path := self._now()) not in self._passed:
            self._passed.add(path)
            known[at] = path

    def step(self, at: int, *, last: bool) -> None:
        """Keep the path to the begin of a step, where another one may end; the last is only an end."""
        self.ends.append(at)
        if not last:
            self._to_steps[self._now()] += 1

    @property
    def to_steps(self) -> CallPath:
        return max(self._to_steps, key=lambda path: self._to_steps[path], default=())

    def _now(self) -> CallPath:
        frames = _program_frames(sys._getframe(1))[::-1]
        first = max((k + 1 for k, (code, _, _) in enumerate(frames) if code.co_filename == RUNNER), default=-1)
        if first < 0:
            first = self._outside
        while first < len(frames) and frames[first][0].co_filename in _STARTERS:
            first += 1
        path = tuple(frames[first:])
        return self._known.setdefault(path, path)


def _program_frames(frame: FrameType) -> list[tuple[CodeType, int, int]]:
    return [(f.f_code, f.f_lineno, f.f_lasti) for f in outward(frame) if not _is_ours(f.f_code.co_filename)]


def _is_ours(file: str) -> bool:
    return file.startswith(_HERE)


class Stacks:
    """Reads stacks, with the path of the module around them."""

    def __init__(self) -> None:
        self._call = importlib.import_module("torch").nn.Module._call_impl.__code__
        self._path_of = ModulePaths()

    def now(self, *, backward: bool = False) -> tuple[Stack, str, bool]:
        """Return the stack, innermost frame first, the module's path, and whether the stack is borrowed.

        A node of the backward pass has those frames of its own that are inside of autograd's engine; it borrows those
        of the caller of `backward()` where it has none.
        """
        frames: list[Frame] = []
        module: Any = None
        root: Any = None
        inside: int | None = None
        ours = True
        for frame in outward(sys._getframe(1)):
            code, file = frame.f_code, frame.f_code.co_filename
            if file == RUNNER:
                break
            if code is self._call:
                root = frame.f_locals.get("self")
                module = root if module is None else module
            in_engine = code.co_name == _ENGINE[0] and file.replace("\\", "/").endswith(_ENGINE[1])
            if backward and inside is None and in_engine:
                inside = len(frames)
            ours = _is_ours(file) or (ours and file.endswith(_WRAPPER))
            if not ours:
                frames.append((file, frame.f_lineno, code.co_name))
        path = "" if module is None else self._path_of(root, module)
        return tuple(shortened(frames[:inside] if inside else frames)), path, inside == 0


def is_programs_own(file: str) -> bool:
    """Return whether a file is the program's rather than a library's or the dry run's."""
    return not _is_ours(file) and file != RUNNER and not is_library(file)
