"""Files that a program has written or removed in a view.

An overlay's upper layer holds whole files, a character device 0/0 for what was removed ("whiteout"), and folders whose
attribute `opaque` says that nothing of the same folder below is seen any more (overlayfs, "whiteouts and opaque
directories").
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from syncscan.scratch.kernel import NOTES
from syncscan.scratch.redirect.redirected_tree import COPIES, MARK, REMOVED

_OPAQUE = ("trusted.overlay.opaque", "user.overlay.opaque")


def in_copies(folder: Path) -> dict[str, Path | None]:
    """Return the files that a program has written or removed in a view by Python's functions, as `in_layers`."""
    files: dict[str, Path | None] = {}
    copies, removed = str(folder / COPIES), str(folder / REMOVED)
    for mark in _files(Path(removed)):
        files.update((file, None) for file in _files(Path(mark[len(removed) : -len(MARK)])))
    files.update((copy[len(copies) :], Path(copy)) for copy in _files(Path(copies)))
    return files


def in_layers(folder: Path) -> dict[str, Path | None]:
    """Return the files that a program has written or removed in a view by the kernel, whose first folder this is.

    By the path that the program used, links resolved: the file that it left, None where it left none.
    """
    if not (folder / NOTES).exists():
        return {}
    notes = json.loads((folder / NOTES).read_text())
    files: dict[str, Path | None] = {}
    for layer, path in notes["layers"].items():
        files.update(_overlaid(Path(layer), Path(path)))
    for layer, path in notes["copies"].items():
        files.update((p, left) for p, left in _copied(Path(layer), Path(path)) if p not in notes["shown"])
    return files


def _overlaid(upper: Path, lower: Path) -> Iterator[tuple[str, Path | None]]:
    """Yield what differs between an upper layer and what it lies over."""
    if _is_opaque(upper):
        hidden = (path for path in _files(lower) if not os.path.lexists(upper / Path(path).relative_to(lower)))
        yield from ((path, None) for path in hidden)
    for entry in os.scandir(upper):
        path, status = lower / entry.name, entry.stat(follow_symlinks=False)
        if entry.is_dir(follow_symlinks=False):
            if not path.is_dir() or path.is_symlink():
                yield from ((p, None) for p in _files(path))
            yield from _overlaid(Path(entry.path), path)
        elif stat.S_ISCHR(status.st_mode) and status.st_rdev == 0:
            yield from ((removed, None) for removed in _files(path))
        else:
            yield str(path), Path(entry.path)


def _copied(copies: Path, originals: Path) -> Iterator[tuple[str, Path | None]]:
    """Yield what differs between a folder and the copies of its files that a program worked with."""
    names = {entry.name for entry in os.scandir(copies) if not entry.is_dir(follow_symlinks=False)}
    for name in sorted(names | {e.name for e in os.scandir(originals) if e.is_file(follow_symlinks=False)}):
        copy, original = copies / name, originals / name
        if name not in names:
            yield str(original), None
        elif not _is_same(copy, original):
            yield str(original), copy


def _is_same(copy: Path, original: Path) -> bool:
    if not os.path.lexists(original):
        return False
    a, b = copy.lstat(), original.lstat()
    if stat.S_ISLNK(a.st_mode) and stat.S_ISLNK(b.st_mode):
        return copy.readlink() == original.readlink()
    return stat.S_IFMT(a.st_mode) == stat.S_IFMT(b.st_mode) and (a.st_size, a.st_mtime_ns) == (b.st_size, b.st_mtime_ns)


def _files(path: Path) -> Iterator[str]:
    """Yield a file's path, or those of all files in a folder."""
    if path.is_symlink() or not path.is_dir():
        if os.path.lexists(path):
            yield str(path)
        return
    for top, _, names in os.walk(path):
        yield from (os.path.join(top, name) for name in names)


def _is_opaque(folder: Path) -> bool:
    for name in _OPAQUE:
        try:
            return os.getxattr(folder, name) in (b"y", b"x")
        except OSError:
            continue
    return False
