"""From the paths that a user names to the Python sources in them: files, folders, notebooks and standard input."""

from __future__ import annotations

import ast
import json
import os
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from functools import cached_property
from io import BytesIO
from pathlib import Path

import msgspec

MAX_BYTES = 2_000_000
"""No source that somebody wrote is longer; generated ones are."""
SUFFIXES = (".py", ".ipynb")
LEFT_OUT = frozenset(
    "node_modules __pycache__ build dist venv env site-packages dist-packages site wandb lightning_logs".split()
)
"""Folders that are looked into only where they are named themselves; hidden ones and virtual environments too."""


class Unreadable(Exception):
    """A file that can't be looked at; its text is the sentence that says why."""


_LINE_ENDS = re.compile("\r\n|\r|\n")
"""What ends a line for Python; form feeds and the like, which `str.splitlines` takes too, don't."""


class Source(msgspec.Struct, frozen=True, dict=True):
    """The text of one file, and of a notebook where its cells begin."""

    file: str
    text: str
    cells: tuple[tuple[int, int], ...] = ()
    """First line in `text` and number, for each code cell of a notebook."""

    @cached_property
    def lines(self) -> list[str]:
        """The lines of `text`, as Python counts them."""
        return _LINE_ENDS.split(self.text)

    def place(self, line: int) -> tuple[int | None, int]:
        """The cell, in a notebook, and the line in it, of a line of `text`."""
        number, first = None, 1
        for begins, cell in self.cells:
            if begins <= line:
                number, first = cell, begins
        return number, line - first + 1


def files_in(paths: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Each file once, as a path, and whether it was named itself; a folder's files in the order of their names."""
    seen: set[str] = set()
    for path in paths:
        inside = _walked(path) if path != "-" and Path(path).is_dir() else iter([path])
        for file in inside:
            if file not in seen:
                seen.add(file)
                yield file, file == path


def _walked(folder: str) -> Iterator[str]:
    for here, folders, files in os.walk(folder):
        folders[:] = sorted(f for f in folders if not _left_out(here, f))
        for name in sorted(files):
            if name.endswith(SUFFIXES) and not name.startswith("."):
                yield str(Path(here, name))


def _left_out(parent: str, folder: str) -> bool:
    name = folder.lower()
    hidden = name.startswith(".") or name in LEFT_OUT or name.endswith(".egg-info")
    return hidden or Path(parent, folder, "pyvenv.cfg").exists()


def read(file: str) -> Source:
    """The text of a file.

    Raises:
        Unreadable: it isn't there, is too long, or isn't text.
    """
    data = _bytes_of(file)
    if len(data) > MAX_BYTES:
        raise Unreadable(f"{file} is longer than {MAX_BYTES // 1_000_000} MB: it was left out.")
    return _notebook(file, data) if file.endswith(".ipynb") else Source(file, _decoded(file, data))


def _bytes_of(file: str) -> bytes:
    try:
        if file == "-":
            return sys.stdin.buffer.read(MAX_BYTES + 1)
        with open(file, "rb") as stream:
            return stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as e:
        raise Unreadable(f"{file} can't be read: {getattr(e, 'strerror', None) or e}.") from None


def _decoded(file: str, data: bytes) -> str:
    """By the file's own declaration of its encoding, or as UTF-8."""
    try:
        encoding, _ = tokenize.detect_encoding(BytesIO(data).readline)
        return data.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError):
        raise Unreadable(f"{file} is no text in UTF-8, nor in the encoding that it declares.") from None


def _notebook(file: str, data: bytes) -> Source:
    """The code cells of a notebook one below the other; magics are blanked."""
    try:
        cells = json.loads(data)["cells"]
        texts = [
            (number, "".join(cell["source"])) for number, cell in enumerate(cells, 1) if cell["cell_type"] == "code"
        ]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Unreadable(f"{file} is no notebook: it isn't JSON with cells.") from None
    lines: list[str] = []
    begins = []
    for number, text in texts:
        begins.append((len(lines) + 1, number))
        own = text.splitlines()
        magic = bool(own) and own[0].lstrip().startswith("%%")
        lines += ["" if magic or line.lstrip().startswith(("%", "!", "?")) else line for line in own]
    return Source(file, "\n".join(lines), tuple(begins))


def parsed(source: Source) -> ast.Module:
    """The tree of a source.

    Raises:
        Unreadable: it is no Python, as this Python understands it.
    """
    try:
        return ast.parse(source.text)
    except SyntaxError as e:
        cell, line = source.place(e.lineno or 1)
        where = f"line {line}" if cell is None else f"cell {cell}, line {line}"
        raise Unreadable(f"{source.file}, {where}: {e.msg}; it is no Python that Python {_version()} reads.") from None
    except (ValueError, RecursionError, MemoryError):
        raise Unreadable(f"{source.file} holds null bytes, or is nested too deeply to be read.") from None


def _version() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


__all__ = ["Source", "Unreadable", "files_in", "parsed", "read"]
