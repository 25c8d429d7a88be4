"""Stand-ins for the functions of `os` that take paths, which work on a view; arguments are as documented for `os`.

Each has the name and the parameters of the one that it replaces. A descriptor in place of a path is passed on, and so
is a path that isn't part of the view.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import io
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from syncscan.scratch.redirect.redirected_tree import Tree

READING = ("stat", "lstat", "access", "readlink", "statvfs", "pathconf", "getxattr", "listxattr", "chdir")
"""Functions that only look at what their first argument leads to."""
CHANGING = ("chmod", "lchmod", "chown", "lchown", "utime", "truncate", "setxattr", "removexattr", "chflags", "lchflags")
"""Functions that change what their first argument leads to."""
MAKING = ("mkdir", "mkfifo", "mknod")
OF_LINKS = ("lstat", "readlink", "lchmod", "lchown", "lchflags", *MAKING)
"""Functions whose path may be a link itself, as that of the others is where `follow_symlinks` is false."""
_FLAGS = {"w": os.O_WRONLY | os.O_CREAT | os.O_TRUNC, "x": os.O_WRONLY | os.O_CREAT | os.O_EXCL,
          "a": os.O_WRONLY | os.O_CREAT | os.O_APPEND, "r": 0}  # fmt: skip


class PathFunctions:
    """Stand-ins for the functions of `os`, by their names in `by_name`."""

    def __init__(self, tree: Tree) -> None:
        self.tree, self.os = tree, tree.os
        own = ("open", "listdir", "scandir", "rmdir", "unlink", "replace", "symlink", "link", "getcwd")
        stand_ins: dict[str, Callable[..., Any]] = {name: getattr(self, name) for name in own}
        stand_ins |= {"remove": self.unlink, "rename": self.replace, "getcwdb": lambda: os.fsencode(self.getcwd())}
        for names, place in ((READING, tree.where), (CHANGING, self._changed), (MAKING, self._new)):
            stand_ins |= {name: self._on_path(name, place) for name in names}
        stand_ins["access"] = functools.partial(_is_allowed, stand_ins["access"])
        self.by_name = {name: function for name, function in stand_ins.items() if name in self.os.by_name}

    def _on_path(self, name: str, place: Callable[[str], str]) -> Callable[..., Any]:
        """Return a function of `os` that works where `place` says that a path of the view is."""
        original = self.os.by_name.get(name)

        def on_path(path: Any, *rest: Any, dir_fd: int | None = None, **options: Any) -> Any:
            assert original is not None
            if isinstance(path, int):
                return original(path, *rest, **options)
            follow = name not in OF_LINKS and bool(options.get("follow_symlinks", True))
            with named(path):
                result = original(place(self.tree.path(path, dir_fd, follow=follow)), *rest, **options)
            return os.fsencode(result) if isinstance(path, bytes) and isinstance(result, str) else result

        return on_path

    def _changed(self, inner: str) -> str:
        self._exists(inner)
        return self.tree.written(inner)

    def getcwd(self) -> str:
        return self.tree.cwd()

    def listdir(self, path: Any = None) -> list[Any]:
        names = self.tree.names(self.folder(path))
        return [os.fsencode(name) for name in names] if isinstance(path, bytes) else names

    def scandir(self, path: Any = None) -> FolderEntries:
        folder = self.folder(path)
        return FolderEntries(self.by_name["stat"], folder, "." if path is None else path, self.tree.names(folder))

    def folder(self, path: Any) -> str:
        """Return the path of a folder that is named, open, or the working folder."""
        if path is None:
            return self.tree.path(".")
        return self.tree.of_descriptor(path) if isinstance(path, int) else self.tree.path(path)

    def open(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        with named(path):
            inner = self.tree.path(path, dir_fd, follow=not flags & getattr(os, "O_NOFOLLOW", 0))
            return int(self.os.open(self.opened(inner, flags), flags, mode))

    def opened(self, inner: str, flags: int) -> str:
        """Return where a path is opened with these flags; what they ask for is there then."""
        temporary = flags & getattr(os, "O_TMPFILE", 0) == getattr(os, "O_TMPFILE", -1)
        writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
        if not writes or self.tree.passes(inner):
            return self.tree.where(inner)
        exists = self.tree.is_there(inner)
        if flags & os.O_EXCL and flags & os.O_CREAT and exists:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), inner)
        if not exists and not flags & os.O_CREAT:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), inner)
        if exists and stat.S_ISDIR(self.os.stat(self.tree.where(inner)).st_mode):
            return self.tree.written(inner) if temporary else self.tree.where(inner)
        return self.tree.written(inner, keep=not flags & os.O_TRUNC) if exists else self.tree.made(inner)

    def symlink(self, src: Any, dst: Any, target_is_directory: bool = False, *, dir_fd: int | None = None) -> None:
        with named(src, dst):
            self.os.symlink(src, self._new(self.tree.path(dst, dir_fd, follow=False)), target_is_directory)
            self.tree.forget_links()

    def link(
        self, src: Any, dst: Any, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None,
        follow_symlinks: bool = True,
    ) -> None:  # fmt: skip
        with named(src, dst):
            inner = self.tree.path(src, src_dir_fd, follow=follow_symlinks)
            self.os.link(self._changed(inner), self._new(self.tree.path(dst, dst_dir_fd, follow=False)))

    def unlink(self, path: Any, *, dir_fd: int | None = None) -> None:
        with named(path):
            inner = self.tree.path(path, dir_fd, follow=False)
            if stat.S_ISDIR(self._exists(inner).st_mode):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), inner)
            self._away(inner, self.os.unlink)

    def rmdir(self, path: Any, *, dir_fd: int | None = None) -> None:
        with named(path):
            inner = self.tree.path(path, dir_fd, follow=False)
            if not stat.S_ISDIR(self._exists(inner).st_mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), inner)
            if self.tree.names(inner):
                raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), inner)
            self._away(inner, self.os.rmdir)

    def replace(self, src: Any, dst: Any, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None) -> None:
        with named(src, dst):
            old = self.tree.path(src, src_dir_fd, follow=False)
            new = self.tree.path(dst, dst_dir_fd, follow=False)
            moved = self._exists(old)
            if old == new:
                return
            if self.tree.is_there(new):
                self._replaceable(stat.S_ISDIR(moved.st_mode), new)
            at = self.tree.copied_whole(old)
            to = new if self.tree.passes(new) else self.tree.made(new)
            self._away(new, self._clear) if self.tree.is_there(new) else None
            self._move(at, to)
            self.tree.removed(old)
            self.tree.forget_links()

    def _move(self, at: str, to: str) -> None:
        try:
            self.os.replace(at, to)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            import shutil

            shutil.move(at, to)

    def _replaceable(self, folder: bool, new: str) -> None:
        """Refuse to replace what rename(2) doesn't."""
        is_folder = stat.S_ISDIR(self.os.lstat(self.tree.where(new)).st_mode)
        if folder and not is_folder:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), new)
        if is_folder and not folder:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), new)
        if is_folder and self.tree.names(new):
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), new)

    def _clear(self, at: str) -> None:
        if stat.S_ISDIR(self.os.lstat(at).st_mode):
            self.os.rmdir(at)
        else:
            self.os.unlink(at)

    def _away(self, inner: str, remove: Callable[[str], Any]) -> None:
        """Remove a path of the view: its copy, and what the user has there from sight."""
        at = self.tree.where(inner)
        if at != inner or self.tree.passes(inner):
            remove(at)
        elif not self.os.access(os.path.dirname(inner), os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), inner)
        self.tree.removed(inner)

    def _new(self, inner: str) -> str:
        if self.tree.is_there(inner):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), inner)
        return self.tree.made(inner)

    def _exists(self, inner: str) -> os.stat_result:
        result: os.stat_result = self.os.lstat(self.tree.where(inner))
        return result


def _is_allowed(access: Callable[..., bool], path: Any, mode: int, **options: Any) -> bool:
    """Return what `os.access` does: also of a path that leads nowhere."""
    try:
        return bool(access(path, mode, **options))
    except OSError:
        return False


class named:
    """Let an error name the path that the program gave, not where it leads."""

    def __init__(self, *paths: Any) -> None:
        self._paths = paths

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: Any) -> None:
        if isinstance(error, OSError) and error.filename is not None:
            error.filename = self._paths[0]
            if len(self._paths) > 1:
                error.filename2 = self._paths[1]


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
