"""Stand-ins for `open` and `io.open_code`, which open files without `os.open`."""

from __future__ import annotations

import contextlib
import io
import os
from typing import Any

from syncscan.scratch.redirect.functions import PathFunctions, named

_FLAGS = {"w": os.O_WRONLY | os.O_CREAT | os.O_TRUNC, "x": os.O_WRONLY | os.O_CREAT | os.O_EXCL,
          "a": os.O_WRONLY | os.O_CREAT | os.O_APPEND, "r": 0}  # fmt: skip


class FileOpen:
    """`open` of a view."""

    def __init__(self, functions: PathFunctions) -> None:
        self._functions = functions
        self._open, self._open_code = io.open, io.open_code

    def open(
        self, file: Any, mode: str = "r", buffering: int = -1, encoding: str | None = None, errors: str | None = None,
        newline: str | None = None, closefd: bool = True, opener: Any = None,
    ) -> Any:  # fmt: skip
        """Open a file of the view: `io.open`."""
        with named(file):
            file_object = self._open(
                self.at(file, mode, opener), mode, buffering, encoding, errors, newline, closefd, opener
            )
        if not isinstance(file, int):
            _named_as_given(file_object, file)
        return file_object

    def open_code(self, path: str) -> Any:
        """Open a Python file: `io.open_code`."""
        with named(path):
            return self._open_code(self.at(path, "rb", None))

    def at(self, file: Any, mode: str, opener: Any) -> Any:
        """Return what is to be opened in place of a path; a descriptor and a path for an opener as they are."""
        if isinstance(file, int) or opener is not None:
            return file
        tree = self._functions.tree
        kind = next((letter for letter in mode if letter in _FLAGS), "r") if isinstance(mode, str) else "r"
        flags = _FLAGS[kind] | (os.O_RDWR if "+" in mode else 0)
        return self._functions.opened(tree.path(file), flags)


def _named_as_given(opened: Any, file: Any) -> None:
    """Let a file object have the name that the program gave."""
    raw = getattr(opened, "buffer", opened)
    raw = getattr(raw, "raw", raw)
    with contextlib.suppress(AttributeError):
        raw.name = os.fspath(file)
