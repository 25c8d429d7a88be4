"""Programs that a user names: a script with its arguments, or a function of a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from syncscan.errors import UsageError


@dataclass(frozen=True, slots=True)
class ComparedProgram:
    """One of two programs.

    `name` is what a report calls it, `path` where its file is, `function` empty for a script. `folder` is where it
    runs; `moved` leads from a folder of the user's to the one that replaces it, for a program at a revision.
    `patched` are files of the user's, each with one whose text takes its place in what the program sees.
    """

    name: str
    path: Path
    function: str
    arguments: tuple[str, ...]
    folder: Path
    moved: tuple[Path, Path] | None = None
    patched: tuple[tuple[Path, Path], ...] = ()


def program(spec: str, arguments: Sequence[str] = ()) -> ComparedProgram:
    """Return the program that `train.py` or `file.py:function` names.

    Raises:
        UsageError: the file doesn't exist, or a function was given arguments.
    """
    path, function = split(spec)
    if not path.is_file():
        raise UsageError(f"There is no script at {path}.", "Write train.py, or file.py:function for a function.")
    if function and arguments:
        raise UsageError(
            f"{spec} is a function, and is called without arguments: it can't take {arguments[0]}.",
            "Let it create its own inputs, or give two scripts.",
        )
    return ComparedProgram(spec, path.absolute(), function, tuple(arguments), Path.cwd())


def split(spec: str) -> tuple[Path, str]:
    """Return file and function of `file.py:function`; no function if the whole is a file's name."""
    script, colon, name = spec.rpartition(":")
    if colon and name.isidentifier() and not os.path.exists(spec):  # noqa: PTH110  (a name may be too long to be asked for)
        return Path(script), name
    return Path(spec), ""
