"""Entries of a folder in a view, as `os.scandir` gives them."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from typing import Any


class FolderEntry:
    """An entry of a folder, as `os.DirEntry`."""

    def __init__(self, look: Callable[..., os.stat_result], folder: str, name: str, given: Any) -> None:
        self._look, self._path = look, os.path.join(folder, name)
        shown = os.path.join(os.fsdecode(given), name) if not isinstance(given, int) else name
        self.name: Any = os.fsencode(name) if isinstance(given, bytes) else name
        self.path: Any = os.fsencode(shown) if isinstance(given, bytes) else shown

    def __fspath__(self) -> Any:
        return self.path

    def __repr__(self) -> str:
        return f"<DirEntry {self.name!r}>"

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        return self._look(self._path, follow_symlinks=follow_symlinks)

    def inode(self) -> int:
        return self.stat(follow_symlinks=False).st_ino

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return stat.S_ISDIR(self._mode(follow_symlinks))

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        return stat.S_ISREG(self._mode(follow_symlinks))

    def is_symlink(self) -> bool:
        return stat.S_ISLNK(self._mode(False))

    def is_junction(self) -> bool:
        return False

    def _mode(self, follow: bool) -> int:
        try:
            return self.stat(follow_symlinks=follow).st_mode
        except OSError:
            return 0


class FolderEntries(Iterator[FolderEntry]):
    """The entries of a folder, as `os.scandir` returns them: an iterator that can be closed."""

    def __init__(self, look: Callable[..., os.stat_result], folder: str, given: Any, names: Sequence[str]) -> None:
        self._entries = (FolderEntry(look, folder, name, given) for name in names)

    def __next__(self) -> FolderEntry:
        return next(self._entries)

    def __enter__(self) -> FolderEntries:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the iteration."""
        self._entries.close()
