"""The view that Python's functions are redirected to: copies of what was written, and marks of what was removed.

Both lie on the disk, so that processes that a program starts share them. Only the functions of `os` that were there
before any redirection are called current.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

COPIES, REMOVED = "copies", "removed"
"""Folders of a scratch folder: both hold the user's paths from the root on, and of a removed one an empty file."""
MARK = "\x01"
"""End of the name of such a file."""
_REMEMBERED = 10_000
_LINKS = 40
"""Links that a path may lead through, as on Linux."""
_OPEN = ("/dev", "/proc", "/sys")
"""Devices and the kernel's own interfaces work as before."""
_MEMORY = "/dev/shm"
"""Files in memory, which are a user's."""


class Originals:
    """The functions of `os` as they are before any is replaced."""

    def __init__(self) -> None:
        self.by_name: dict[str, Callable[..., Any]] = {
            name: value for name, value in vars(os).items() if callable(value) and not isinstance(value, type)
        }

    def __getattr__(self, name: str) -> Callable[..., Any]:
        try:
            return self.by_name[name]
        except KeyError:
            raise AttributeError(name) from None


class Tree:
    """Knows where each path of the user's is, and where it is written."""

    def __init__(self, folder: Path, passed: Sequence[Path], system: Originals) -> None:
        self.os = system
        self._copies, self._removed = str(folder / COPIES), str(folder / REMOVED)
        self._passed = tuple(map(str, (folder, *passed)))
        self.paused = False
        """Whether nothing is part of the view for now."""
        self._folders: dict[str, str] = {}
        """Folders with their links followed; forgotten when links or folders move."""

    # paths

    def path(self, name: Any, dir_fd: int | None = None, *, follow: bool = True) -> str:
        """Return the absolute path of a name in the view, without links in it; `follow` also follows a last one.

        A relative name begins at the open folder `dir_fd`.
        """
        text = os.fsdecode(name)
        if not text:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), text)
        base = self.cwd() if dir_fd is None else self.of_descriptor(dir_fd)
        joined = os.path.join(base, text)
        above, name = os.path.split(joined)
        if name in ("", ".", ".."):
            return self._without_links(joined, follow)
        at = os.path.join(self._folder(above), name)
        return self._without_links(at, True) if follow and self._is_link(self.where(at)) else at

    def forget_links(self) -> None:
        """Look anew at what each folder leads to."""
        self._folders.clear()

    def _folder(self, path: str) -> str:
        folder = self._folders.get(path)
        if folder is None:
            if len(self._folders) > _REMEMBERED:
                self._folders.clear()
            folder = self._folders[path] = self._without_links(path, True)
        return folder

    def cwd(self) -> str:
        return self.users(self.os.getcwd())

    def users(self, path: str) -> str:
        """Return the user's path of a copy; of any other path itself."""
        return path[len(self._copies) :] or "/" if _within(path, self._copies) else path

    def of_descriptor(self, number: int) -> str:
        return self.users(self.os.readlink(f"/proc/self/fd/{number}"))

    def _without_links(self, path: str, follow: bool) -> str:
        done, left, links = "/", [part for part in path.split("/") if part not in ("", ".")], 0
        while left:
            part = left.pop(0)
            if part == "..":
                done = os.path.dirname(done)
                continue
            current = os.path.join(done, part)
            if (left or follow) and self._is_link(self.where(current)):
                links += 1
                if links > _LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
                target = os.fsdecode(self.os.readlink(self.where(current)))
                left[:0] = [piece for piece in target.split("/") if piece not in ("", ".")]
                done = "/" if target.startswith("/") else done
            else:
                done = current
        return done

    def _is_link(self, path: str) -> bool:
        try:
            return stat.S_ISLNK(self.os.lstat(path).st_mode)
        except OSError:
            return False

    # reading

    def passes(self, path: str) -> bool:
        """Return whether a path isn't part of the view."""
        if self.paused or any(_within(path, outer) for outer in self._passed):
            return True
        return any(_within(path, outer) for outer in _OPEN) and not _within(path, _MEMORY)

    def where(self, path: str) -> str:
        """Return where what is at a path of the view really is; somewhere that doesn't exist if nothing is."""
        if self.passes(path):
            return path
        copy = self._copies + path
        return copy if (self._is(self._copies) and self._is(copy)) or self.is_removed(path) else path

    def is_removed(self, path: str) -> bool:
        """Return whether what the user has at a path is hidden, since it or a folder above it was removed."""
        while path != "/" and self._is(self._removed):
            if self._is(self._removed + path + MARK):
                return True
            path = os.path.dirname(path)
        return False

    def names(self, path: str) -> list[str]:
        """Return the names in a folder of the view; errors are those of `os.listdir`."""
        if self.passes(path):
            return list(self.os.listdir(path))
        copy, names = self._copies + path, set()
        self.os.listdir(self.where(path))  # the error of a folder that isn't one
        if not self.is_removed(path) and self._is_folder(path):
            names = {
                name for name in self.os.listdir(path) if not self._is(self._removed + os.path.join(path, name) + MARK)
            }
        if self._is_folder(copy):
            names |= set(self.os.listdir(copy))
        return sorted(names)

    def _is(self, path: str) -> bool:
        try:
            self.os.lstat(path)
        except OSError:
            return False
        return True

    def _is_folder(self, path: str) -> bool:
        try:
            return stat.S_ISDIR(self.os.stat(path).st_mode)
        except OSError:
            return False

    # writing

    def written(self, path: str, *, keep: bool = True) -> str:
        """Return where a path, which has no links, is written, with a copy of what is there.

        Without `keep`, an empty file takes the place of a file. An OSError says that the user may not write there, or
        that its folder doesn't exist.
        """
        at = self.where(path)
        copy = self._copies + path
        if self.passes(path) or (at == copy and self._is(copy)):
            return at
        exists = self._is(at)
        if exists and stat.S_ISREG(self.os.lstat(at).st_mode) and not self.os.access(at, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        if exists and not _is_kept(self.os.lstat(at).st_mode):
            return at  # a pipe or a socket
        self._above(path, exists=exists)
        if exists:
            self._copy(at, copy, keep)
        return copy

    def _above(self, path: str, *, exists: bool) -> None:
        """Make the folders above a path among the copies."""
        above = os.path.dirname(path)
        at = self.where(above)
        status = self.os.stat(at)
        if not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        if not exists and not self.os.access(at, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        if not self._is(self._copies + above):
            if above != "/":
                self._above(above, exists=True)
            self.os.mkdir(self._copies + above.rstrip("/"))
            self.os.chmod(self._copies + above, stat.S_IMODE(status.st_mode) | stat.S_IRWXU)

    def _copy(self, at: str, copy: str, keep: bool) -> None:
        status = self.os.lstat(at)
        if stat.S_ISLNK(status.st_mode):
            self.os.symlink(self.os.readlink(at), copy)
        elif stat.S_ISDIR(status.st_mode):
            self.os.mkdir(copy)
            self.os.chmod(copy, stat.S_IMODE(status.st_mode) | stat.S_IRWXU)
        else:
            self._copy_file(at, copy, status, keep)

    def _copy_file(self, at: str, copy: str, status: os.stat_result, keep: bool) -> None:
        target = self.os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            if keep:
                source = self.os.open(at, os.O_RDONLY)
                try:
                    with os.fdopen(os.dup(source), "rb") as old, os.fdopen(os.dup(target), "wb") as new:
                        shutil.copyfileobj(old, new, 1 << 20)
                finally:
                    self.os.close(source)
        finally:
            self.os.close(target)
        self.os.chmod(copy, stat.S_IMODE(status.st_mode))
        self.os.utime(copy, ns=(status.st_atime_ns, status.st_mtime_ns))

    def made(self, path: str) -> str:
        """Return where something new is made at a path; its folder is there then."""
        if self.passes(path):
            return path
        self._above(path, exists=False)
        return self._copies + path

    def copied_whole(self, path: str) -> str:
        """Return where a path is written, with copies of all that is in it."""
        copy = self.written(path)
        if not self.passes(path) and stat.S_ISDIR(self.os.lstat(copy).st_mode):
            for name in self.names(path):
                self.copied_whole(os.path.join(path, name))
        return copy

    def removed(self, path: str) -> None:
        """Hide what the user has at a path; its copy is gone already."""
        if self.passes(path) or self.is_removed(path) or not self._is(path):
            return
        mark = self._removed + path + MARK
        self.os.makedirs(os.path.dirname(mark), exist_ok=True)
        self.os.close(self.os.open(mark, os.O_WRONLY | os.O_CREAT, 0o600))

    def is_there(self, path: str) -> bool:
        """Return whether a path of the view leads to anything, if only to a link."""
        return self._is(self.where(path))


def _within(path: str, outer: str) -> bool:
    return path == outer or path.startswith(outer.rstrip("/") + "/")


def _is_kept(mode: int) -> bool:
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)
