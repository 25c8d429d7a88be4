"""Tell by a file's path whether it only starts the program, as the script of a package's entry point does."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

_LONGEST = 2000
"""Bytes; what pip, uv and setuptools write takes 200 to 900."""
_CALLS = re.compile(rb"^\s*sys\.exit\((?:[\w.]+|load_entry_point\([^)]*\)|importlib_load_entry_point\([^)]*\))\(", re.M)
"""How such a script ends (pip's `distlib/scripts.py`, setuptools' `script.tmpl`, uv's `script.rs`)."""


@lru_cache(256)
def only_starts(file: str) -> bool:
    """Return whether a file has none of the program's lines: it is Python's for modules, or that of an entry point.

    The latter is made when a package is installed. A script that a package brings along ready-made has its own lines.
    """
    if file in ("<frozen runpy>", "runpy.py"):
        return True
    path = Path(file)
    if path.parent.suffix == ".exe":  # on Windows it is an archive behind a program
        return path.name == "__main__.py"
    if path.suffix in (".py", ".pyw", ".ipynb") or file.startswith("<"):
        return False
    try:
        with path.open("rb") as script:
            text = script.read(_LONGEST + 1)
    except (OSError, ValueError):
        return False
    return len(text) <= _LONGEST and text.startswith(b"#!") and _CALLS.search(text) is not None


__all__ = ["only_starts"]
