"""From the files of a program's stacks to the folder that it was started from, and paths below that folder."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterable

from syncscan.model.capture import Frame
from syncscan.model.libraries import is_library

_DRIVE = re.compile(r"[A-Za-z]:/")


def program_root(stacks: Iterable[tuple[Frame, ...]]) -> str:
    """The folder of the file that most stacks begin in: the script's own, wherever on a disk it lies.

    A program is known by its entry: what it imports differs from run to run, and so would a folder common to all files.
    Where the entry has no absolute path (a notebook's cell, a script named relative to the working directory), it is
    the folder common to the user's files that have one; empty where none has.

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
    """The file as seen from the program's root, with forward slashes; as it stands where it has no absolute path.

    A file beside the root is reached by `..`, so that the path is the same wherever the whole project lies.
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
