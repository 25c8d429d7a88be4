"""Find the folder that a program was started in, and paths relative to it."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterable

from syncscan.model.capture import Frame
from syncscan.model.libraries import is_library

_DRIVE = re.compile(r"[A-Za-z]:/")


def program_root(stacks: Iterable[tuple[Frame, ...]]) -> str:
    """Return the folder of the file in which most stacks begin, that is, of the program's script.

    The entry file identifies a program. The folder common to all files doesn't, since imports differ from run to run.
    If the entry file has no absolute path (a notebook's cell, a script named relative to the working directory), return
    the folder common to the user's files that have one, or an empty string if none has.

    Args:
        stacks: frames of the program and its libraries, outermost first.
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
