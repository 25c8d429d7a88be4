"""Describe the exception that ended a program as its author needs it: type, first line, and the author's own frame."""

from __future__ import annotations

import linecache
import traceback
from collections.abc import Callable

import msgspec

from syncscan.fixing.source_text import shown_path

MOST = 200
"""Characters of a message's first line."""


class Raised(msgspec.Struct, frozen=True):
    """An exception that ended a program."""

    type: str
    """`ValueError`, `torch.OutOfMemoryError`."""
    message: str
    """The first line."""
    file: str = ""
    """The file of the innermost frame in the user's code; empty where there is none."""
    line: int = 0
    code: str = ""
    """That line's code."""

    @property
    def text(self) -> str:
        """Type and message, without a place."""
        return f"{self.type}: {self.message}" if self.message else self.type

    @property
    def at_line(self) -> str:
        """The exception and its line: `ValueError: no data (train.py:12)`."""
        return f"{self.text} ({shown_path(self.file)}:{self.line})" if self.file else self.text

    @property
    def at_code(self) -> str:
        """The exception and the code of its line, for a version of the file that nobody sees."""
        return f"{self.text}, in `{self.code}`" if self.code else self.text


def raised(error: BaseException, is_users: Callable[[str], bool]) -> Raised:
    """Describe an exception.

    Args:
        error: as it was caught.
        is_users: says whether a file is the user's own.
    """
    frames = [f for f in traceback.extract_tb(error.__traceback__) if is_users(f.filename)]
    first = next(iter(_message(error).strip().splitlines()), "").strip()[:MOST]
    if not frames:
        return Raised(_name(type(error)), first)
    file, line = frames[-1].filename, frames[-1].lineno or 0
    return Raised(_name(type(error)), first, file, line, linecache.getline(file, line).strip()[:MOST])


def _name(kind: type[BaseException]) -> str:
    """Return a type's name as a traceback has it."""
    bare = kind.__module__ in ("builtins", "__main__")
    return kind.__qualname__ if bare else f"{kind.__module__}.{kind.__qualname__}"


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return ""
