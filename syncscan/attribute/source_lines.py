"""Pick the user's line, the framework's line and the enclosing modules from Python frames."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from syncscan.model.capture import Frame
from syncscan.model.finding import Source
from syncscan.model.libraries import in_package, is_library, passes_on
from syncscan.model.slice_names import frame_parts

_MODULE = "nn.Module: "
_LOOPS = frozenset("fit train learn run fine_tune fit_one_cycle evaluate validate test predict".split())
"""Library methods that run a whole training or evaluation: `Trainer.train` and `evaluate` in transformers and TRL,
`fit`, `validate`, `test` and `predict` in Lightning, `Engine.run` in ignite, `Learner.fine_tune` and `fit_one_cycle` in
fastai, `learn` in stable_baselines3 (source: their documentation)."""


class PickedLines(msgspec.Struct, frozen=True):
    """The user's line, the framework's line inside it, and the owner of the sync: `user`, `framework` or `unknown`."""

    user: Source | None
    framework: Source | None
    owner: str
    in_loop: bool = False
    """Whether the user's line only starts a framework's loop, such as `Trainer(…).train()`, and so is the same for
    every sync."""


def pick(frames: Sequence[Frame], exact: bool) -> PickedLines:
    """Return the innermost user frame and the framework frame below it that made the call.

    Frames come outermost first. They are `exact` if they have the executed line (capture) instead of that of the `def`
    (profiler).
    """
    inner: list[Frame] = []
    for frame in reversed(frames):
        if not is_library(frame.file):
            return PickedLines(_source(frame, exact), _decides(inner, exact), _owner(inner), _in_loop(inner))
        if not frame.file.startswith("<"):
            inner.append(frame)
    return PickedLines(None, _decides(inner, exact), "framework" if _owner(inner) == "framework" else "unknown")


def _decides(inner: Sequence[Frame], exact: bool) -> Source | None:
    """Return the first framework frame, innermost first, that doesn't merely forward the call; else the innermost."""
    frame = next((f for f in inner if not passes_on(f.file)), inner[0] if inner else None)
    return _source(frame, exact) if frame else None


def _owner(inner: Sequence[Frame]) -> str:
    return "user" if all(passes_on(f.file) for f in inner) else "framework"


def _in_loop(inner: Sequence[Frame]) -> bool:
    """Return whether the outermost framework frame is a training loop; `Module.train` isn't one."""
    entry = next((f for f in reversed(inner) if not passes_on(f.file)), None)
    return entry is not None and entry.function in _LOOPS and not in_package(entry.file, "torch")


def _source(frame: Frame, exact: bool) -> Source:
    return Source(frame.file, frame.line, frame.function, exact)


def parse(names: Sequence[str]) -> tuple[Frame, ...]:
    """Return the frames among recorded names `file.py(LINE): function`, without built-ins and modules."""
    return tuple([Frame(*parts) for parts in map(frame_parts, names) if parts])


def modules(names: Sequence[str]) -> tuple[str, ...]:
    return tuple([n.removeprefix(_MODULE) for n in names if n.startswith(_MODULE)])


_DRIVE = re.compile(r"[A-Za-z]:/")


def program_root(stacks: Iterable[tuple[Frame, ...]]) -> str:
    """Return the folder of the file in which most stacks begin, that is, of the program's script.

    The entry file identifies a program. The folder common to all files doesn't, since imports differ from run to run.
    If the entry file has no absolute path (a notebook's cell, a script named relative to the working directory), return
    the folder common to the user's files that have one, or an empty string if none has. Stacks come outermost first.
    """
    entries: Counter[str] = Counter()
    counted = Counter(stacks)
    for stack, times in counted.items():
        entry = next((frame.file for frame in stack if not is_library(frame.file)), "")
        if _is_absolute(_posix(entry)):
            entries[posixpath.dirname(_posix(entry))] += times
    if entries:
        return max(entries, key=lambda folder: (entries[folder], folder))
    users = {_posix(frame.file) for stack in counted for frame in stack if not is_library(frame.file)}
    return _common_folder(set(filter(_is_absolute, users)))


def path_in_program(file: str, root: str) -> str:
    """Return the file relative to the program's root, with forward slashes; unchanged if its path isn't absolute.

    A file outside of the root is reached by `..`, so that the path doesn't depend on where the project is checked out.
    """
    path = _posix(file)
    if not root or not _is_absolute(path) or _drive(path) != _drive(root):
        return path
    return posixpath.relpath(path, root)


def _common_folder(files: set[str]) -> str:
    if not files or len({_drive(file) for file in files}) > 1:
        return ""
    return posixpath.commonpath([posixpath.dirname(file) for file in files])


def _posix(file: str) -> str:
    return file.replace("\\", "/")


def _is_absolute(path: str) -> bool:
    return path.startswith("/") or _drive(path) != ""


def _drive(path: str) -> str:
    return path[:2].lower() if _DRIVE.match(path) else ""
