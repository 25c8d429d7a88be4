"""Record the program's path to each wait and to each step's end, from the running frames."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple

from syncscan.facts.program_phases import Frame

_HERE = str(Path(__file__).parent)
_PRETENCE = str(Path(__file__).parent.parent / "pretend.py")
RUNNER = str(Path(__file__).parent.parent / "capture" / "main_script.py")
_STARTERS = ("<frozen runpy>", "runpy.py")

Way = tuple[tuple[CodeType, int, int], ...]
"""Function, line and instruction of each of the program's frames, outermost first."""


class WaitOnThread(NamedTuple):
    """A wait on the program's own thread: its number among all, when it began and ended, and the way to it."""

    number: int
    begin: int
    end: int
    way: Way


class Ways:
    """The program's ways to its waits and to its steps' ends.

    `ends` are the times at which a step began or ended, on the recording's clock; `backwards` the first time that the
    backward pass was called by each way, before the first of these, and `scopes` that a `record_function` range began;
    `entered` is the line of the block that is watched, where that isn't a script.
    """

    def __init__(self) -> None:
        self.met: list[WaitOnThread] = []
        self.ends: list[int] = []
        self.backwards: dict[int, Way] = {}
        self.scopes: dict[int, Way] = {}
        self._paths: Counter[Way] = Counter()
        self.entered: Frame | None = None
        self._outside = 0
        self._known: dict[Way, Way] = {}
        self._passed: set[Way] = set()

    def enter(self, frame: FrameType | None) -> None:
        """Watch from this frame on: those around it aren't the program's.

        Args:
            frame: the frame of the function that asks for it.
        """
        if frame is None:
            return
        self.entered = frame.f_code, frame.f_lineno
        self._outside = len(_frames(frame)) - 1

    def wait(self, number: int, begin: int, end: int) -> None:
        """Keep the way to a wait that the program's own thread has just made.

        Args:
            number: the number of the wait, among all.
            begin, end: on the recording's clock.
        """
        self.met.append(WaitOnThread(number, begin, end, self._now()))

    def backward(self, at: int) -> None:
        """Keep the way to a call of the backward pass before the first step's end.

        Args:
            at: on the recording's clock.
        """
        self._first_time(self.backwards, at)

    def scope(self, at: int) -> None:
        """Keep the way to the begin of a `record_function` range before the first step's end.

        Args:
            at: on the recording's clock.
        """
        self._first_time(self.scopes, at)

    def _first_time(self, known: dict[int, Way], at: int) -> None:
        if not self.ends and (way := self._now()) not in self._passed:
            self._passed.add(way)
            known[at] = way

    def step(self, at: int, *, last: bool) -> None:
        """Keep the way to the begin of a step, where another one may end.

        Args:
            at: on the recording's clock.
            last: it is only an end.
        """
        self.ends.append(at)
        if not last:
            self._paths[self._now()] += 1

    @property
    def path(self) -> Way:
        """Return the way that most steps begin by."""
        return max(self._paths, key=lambda way: self._paths[way], default=())

    def _now(self) -> Way:
        frames = _frames(sys._getframe(1))[::-1]
        first = max((k + 1 for k, (code, _, _) in enumerate(frames) if code.co_filename == RUNNER), default=-1)
        if first < 0:
            first = self._outside
        while first < len(frames) and frames[first][0].co_filename in _STARTERS:
            first += 1
        way = tuple(frames[first:])
        return self._known.setdefault(way, way)


def _frames(frame: FrameType | None) -> list[tuple[CodeType, int, int]]:
    """Return the program's frames, innermost first."""
    frames = []
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_HERE) and file != _PRETENCE:
            frames.append((frame.f_code, frame.f_lineno, frame.f_lasti))
        frame = frame.f_back
    return frames
