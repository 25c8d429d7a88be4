"""Decide what `syncscan X` means for an X that is no command: what is run is profiled, what was recorded analyzed.

Rooms say which other words are theirs, such as a process or a job's folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from syncscan import features
from syncscan.errors import TraceNotFound

_RECORDED = (".json", ".json.gz", ".json.zst", ".json.xz", ".json.bz2", ".zip", ".sqlite", ".nsys-rep")
_RUN = (".py", ".pyw", ".pyz", ".ipynb")


def meant(word: str, commands: Iterable[str]) -> list[str]:
    """Return the command that a word means, which is none itself; empty where it means none.

    Raises:
        TraceNotFound: it looks like a path, and nothing is there.
    """
    path = Path(word)
    if word.endswith(_RUN):
        return ["profile"]
    if names_recording(word):
        return ["analyze"]
    for room in features.rooms().values():
        if room.opens and (command := features.imported(room.opens)(word)):
            return list(command)
    if path.is_dir():
        return ["analyze"]
    if path.is_file():
        return ["profile"] if os.access(path, os.X_OK) else ["analyze"]
    if os.sep in word:
        raise TraceNotFound(f"{word} doesn't exist.", "Give a trace, a folder, a script or a process's id.")
    return ["profile"] if not nearest(word, commands) and _is_program(word) else []


def nearest(word: str, commands: Iterable[str]) -> list[str]:
    """Return the command that a word is probably a misspelling of."""
    import difflib

    return difflib.get_close_matches(word, commands, 1)


def names_recording(word: str) -> bool:
    """Return whether a word is a recording's by its name, or standard input."""
    return word == "-" or word.lower().endswith(_RECORDED)


def _is_program(word: str) -> bool:
    from syncscan.capture.commands import is_pythons

    return is_pythons(word)
