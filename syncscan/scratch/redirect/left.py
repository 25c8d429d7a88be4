"""Files that a program has written or removed in a view by Python's functions."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from syncscan.scratch.redirect.redirected_tree import COPIES, MARK, REMOVED


def written(folder: Path) -> dict[str, Path | None]:
    """Return the files that a program has written or removed, by the user's path; None for those it removed.

    Args:
        folder: the scratch folder of the view.
    """
    files: dict[str, Path | None] = {}
    for mark in _files(folder / REMOVED):
        path = str(mark)[len(str(folder / REMOVED)) : -len(MARK)]
        files.update((str(file), None) for file in _files(Path(path)))
    for copy in _files(folder / COPIES):
        files[str(copy)[len(str(folder / COPIES)) :]] = copy
    return files


def _files(path: Path) -> Iterator[Path]:
    """Yield a file, or all files below a folder."""
    if path.is_symlink() or not path.is_dir():
        if os.path.lexists(path):
            yield path
        return
    for top, _, names in os.walk(path):
        yield from (Path(top, name) for name in names)
