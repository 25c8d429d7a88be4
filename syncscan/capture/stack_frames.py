"""Read the program's frames from running stacks and from those of ticks, and name their files as the profiler does."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from syncscan.facts.program_phases import Frame
from syncscan.model.libraries import LIBRARIES, is_library, only_starts

_HERE = Path(__file__).parent
RUNNER = str(_HERE / "main_script.py")


def outward(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield a frame and its callers."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def line_of(code: CodeType, at: int) -> int:
    """Return the line of an instruction; the function's first where it has none."""
    for begin, end, line in code.co_lines():
        if begin <= at < end and line is not None:
            return line
    return code.co_firstlineno


def is_ours(file: str) -> bool:
    """Return whether a file is of the capture itself."""
    return file.startswith(str(_HERE))


def of_program(frames: Sequence[Frame]) -> tuple[Frame, ...]:
    """Return the frames from the program's first on, outermost first; empty where the capture was at work."""
    first = 1 + max((k for k, (code, _) in enumerate(frames) if code.co_filename == RUNNER), default=-1)
    while first < len(frames) and only_starts(frames[first][0].co_filename):
        first += 1
    own = frames[first:]
    return () if any(is_ours(code.co_filename) for code, _ in own) else tuple(own)


class TickStacks:
    """Converts stacks from ticks (code, instruction, …, innermost first) to functions and lines, outermost first."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], Frame] = {}  # by the code's id: its hash is slow

    def __call__(self, stack: Sequence[Any]) -> list[Frame]:
        return [self._frame(code, at) for code, at in zip(stack[-2::-2], stack[-1::-2], strict=True)]

    def _frame(self, code: CodeType, at: int) -> Frame:
        frame = self._known.get((id(code), at))
        if frame is None:
            frame = self._known[id(code), at] = code, line_of(code, at)
        return frame


def naming() -> Callable[[str], str]:
    """Return a function that names a file like the profiler, `pyro/infer/util.py`, if only its module shows it.

    `pip install --target`, `PYTHONPATH` and editable installs put libraries into folders of any name. By its path alone
    such a file is the program's; by the module that was imported from it, it is the library's. What lies in an
    environment keeps its path, and so does what the program brings in its own folder.
    """
    folders = _folders()

    @lru_cache(None)
    def name(file: str) -> str:
        folder = next((folder for folder in folders if file.startswith(f"{folder}{os.sep}")), None)
        return file if folder is None else Path(file).relative_to(folder.parent).as_posix()

    return name


def _folders() -> list[Path]:
    """Return the folders of imported library packages that aren't in usual installation folders."""
    packages = [sys.modules[name] for name in LIBRARIES - {"syncscan"} if name in sys.modules]
    folders = {Path(path) for package in packages for path in getattr(package, "__path__", ())}
    own = Path(sys.path[0] if sys.path else "").resolve()
    return sorted(folder for folder in folders if not is_library(str(folder)) and folder.parent.resolve() != own)
