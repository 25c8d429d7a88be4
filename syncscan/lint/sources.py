"""Find and read the Python sources that a user names: files, folders, notebooks and standard input."""

from __future__ import annotations

import ast
import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from syncscan.source.text import Text, decoded

MAX_BYTES = 2_000_000
"""Size limit of sources, in bytes; only generated ones are longer."""
SUFFIXES = (".py", ".ipynb")
LEFT_OUT = frozenset(
    "node_modules __pycache__ build dist venv env site-packages dist-packages site wandb lightning_logs".split()
)
"""Folders that are searched only if named themselves; so are hidden ones and virtual environments."""


class Unreadable(Exception):
    """A file that can't be linted; its text is the sentence with the reason."""


class CheckedSource(Text, frozen=True, dict=True):
    """The text of one file, with the begins of a notebook's cells."""

    cells: tuple[tuple[int, int], ...] = ()
    """First line in `text` and number of each code cell of a notebook."""

    def place(self, line: int) -> tuple[int | None, int]:
        """Return the cell (in a notebook) and the line within it of a line of `text`."""
        number, first = None, 1
        for begins, cell in self.cells:
            if begins <= line:
                number, first = cell, begins
        return number, line - first + 1


def files_in(paths: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Yield each file once, as a path, and whether it was named itself; a folder's files in order of names."""
    seen: set[str] = set()
    for path in paths:
        inside = _walk(path) if path != "-" and Path(path).is_dir() else iter([path])
        for file in inside:
            if file not in seen:
                seen.add(file)
                yield file, file == path


def _walk(folder: str) -> Iterator[str]:
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(f for f in folders if not _left_out(parent, f))
        for name in sorted(files):
            if name.endswith(SUFFIXES) and not name.startswith("."):
                yield str(Path(parent, name))


def _left_out(parent: str, folder: str) -> bool:
    name = folder.lower()
    hidden = name.startswith(".") or name in LEFT_OUT or name.endswith(".egg-info")
    return hidden or Path(parent, folder, "pyvenv.cfg").exists()


def read(file: str) -> CheckedSource:
    """Return the text of a file; `Unreadable` if it isn't there, is too long, or isn't text."""
    data = _bytes_of(file)
    if len(data) > MAX_BYTES:
        raise Unreadable(f"{file} is larger than {MAX_BYTES // 1_000_000} MB and was skipped.")
    return _notebook(file, data) if file.endswith(".ipynb") else CheckedSource(file, _decode(file, data))


def _bytes_of(file: str) -> bytes:
    try:
        if file == "-":
            return sys.stdin.buffer.read(MAX_BYTES + 1)
        with open(file, "rb") as stream:
            return stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as e:
        raise Unreadable(f"{file} can't be read: {getattr(e, 'strerror', None) or e}.") from None


def _decode(file: str, data: bytes) -> str:
    """Return the text, decoded by the file's own encoding declaration, or as UTF-8."""
    try:
        return decoded(file, data).text
    except (SyntaxError, UnicodeDecodeError, LookupError):
        raise Unreadable(f"{file} is neither UTF-8 nor in the encoding that it declares.") from None


def _notebook(file: str, data: bytes) -> CheckedSource:
    """Return the code cells of a notebook joined, with magics blanked out."""
    try:
        cells = json.loads(data)["cells"]
        texts = [
            (number, "".join(cell["source"])) for number, cell in enumerate(cells, 1) if cell["cell_type"] == "code"
        ]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Unreadable(f"{file} is not a notebook: it isn't JSON with cells.") from None
    lines: list[str] = []
    begins = []
    for number, text in texts:
        begins.append((len(lines) + 1, number))
        own = text.splitlines()
        magic = bool(own) and own[0].lstrip().startswith("%%")
        lines += ["" if magic or line.lstrip().startswith(("%", "!", "?")) else line for line in own]
    return CheckedSource(file, "\n".join(lines), cells=tuple(begins))


def parsed(source: CheckedSource) -> ast.Module:
    """Return the tree of a source; `Unreadable` if it is no Python, as this Python understands it."""
    try:
        return ast.parse(source.text)
    except SyntaxError as e:
        cell, line = source.place(e.lineno or 1)
        where = f"line {line}" if cell is None else f"cell {cell}, line {line}"
        raise Unreadable(f"{source.path}, {where}: {e.msg}; Python {_version()} can't parse it.") from None
    except (ValueError, RecursionError, MemoryError):
        raise Unreadable(f"{source.path} contains null bytes, or is nested too deeply to be read.") from None


def _version() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


__all__ = ["CheckedSource", "Unreadable", "files_in", "parsed", "read"]
