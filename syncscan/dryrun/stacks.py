"""Read the program's stack and the path of the module around it from the current Python frames."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from syncscan.dryrun.recording import Frame, Stack
from syncscan.model.entry_script import only_starts
from syncscan.model.libraries import is_library

_HERE = str(Path(__file__).parent)
_PRETENCE = str(Path(__file__).parent.parent / "pretend.py")
_ENGINE = ("_engine_run_backward", "torch/autograd/graph.py")
_WRAPPER = str(Path("torch", "_dynamo", "eval_frame.py"))
"""Frames that torch puts around a dispatch mode's own function."""
_RUNNER = str(Path(__file__).parent.parent / "capture" / "main_script.py")
INNERMOST, OUTERMOST = 48, 16
"""Number of frames stored of a deeper stack, as in capture."""


class Stacks:
    """Reads stacks; caches the names of modules below their roots."""

    def __init__(self) -> None:
        self._call = importlib.import_module("torch").nn.Module._call_impl.__code__
        self._names: dict[int, tuple[Any, dict[int, str]]] = {}

    def now(self, *, backward: bool = False) -> tuple[Stack, str, bool]:
        """Return the stack, innermost frame first, the module's path, and whether the stack is borrowed.

        Args:
            backward: a node of the backward pass runs. Its own frames are those inside of autograd's engine; it borrows
                those of the caller of `backward()` where it has none.
        """
        frames: list[Frame] = []
        module, root = None, None
        innermost_own: int | None = None
        ours = True
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            code = frame.f_code
            file = code.co_filename
            if file == _RUNNER:
                break
            if code is self._call:
                root = frame.f_locals.get("self")
                module = root if module is None else module
            if (
                backward
                and innermost_own is None
                and code.co_name == _ENGINE[0]
                and file.replace("\\", "/").endswith(_ENGINE[1])
            ):
                innermost_own = len(frames)
            skipped = file.startswith(_HERE) or file == _PRETENCE or (ours and file.endswith(_WRAPPER))
            if not skipped:
                frames.append((file, frame.f_lineno, code.co_name))
            ours = skipped
            frame = frame.f_back
        if innermost_own:
            return trimmed(frames[:innermost_own]), self._path(module, root), False
        return trimmed(frames), self._path(module, root), innermost_own is not None

    def _path(self, module: Any, root: Any) -> str:
        """Return the outermost module's class and the names below it."""
        if module is None:
            return ""
        if id(root) not in self._names:
            self._names[id(root)] = (root, {id(child): name for name, child in root.named_modules()})
        name = self._names[id(root)][1].get(id(module))
        if name is None:
            return type(module).__name__
        return "/".join([type(root).__name__, *name.split(".")] if name else [type(root).__name__])


def is_programs_own(file: str) -> bool:
    """Return whether a file is the program's rather than a library's or the dry run's."""
    return not file.startswith(_HERE) and file not in (_PRETENCE, _RUNNER) and not is_library(file)


def trimmed(frames: list[Frame]) -> Stack:
    """Return a stack without the frames that started Python, and without the middle of a very deep one."""
    while frames and only_starts(frames[-1][0]):
        frames.pop()
    return tuple(frames if len(frames) <= INNERMOST + OUTERMOST else frames[:INNERMOST] + frames[-OUTERMOST:])
