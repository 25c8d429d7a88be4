"""Stand-ins for the functions of `os` that take paths, which work on a view; arguments are as documented for `os`.

Each has the name and the parameters of the one that it replaces. A descriptor in place of a path is passed on, and so
is a path that isn't part of the view.
"""

from __future__ import annotations

import errno
import functools
import os
import stat
from collections.abc import Callable
from typing import Any

from syncscan.scratch.redirect.folder_entries import FolderEntries
from syncscan.scratch.redirect.redirected_tree import Tree

READING = ("readlink", "statvfs", "pathconf", "getxattr", "listxattr", "chdir")
"""PathFunctions that only look at what their first argument leads to, or at a link itself (`readlink`)."""
CHANGING = ("chmod", "chown", "utime", "truncate", "setxattr", "removexattr", "chflags")
"""PathFunctions that change what their first argument leads to, unless `follow_symlinks` is false."""
CHANGING_LINKS = ("lchmod", "lchown", "lchflags")
MAKING = ("mkfifo", "mknod")


class PathFunctions:
    """Stand-ins for the functions of `os`, by their names in `by_name`."""

    def __init__(self, tree: Tree) -> None:
        self.tree, self.os = tree, tree.os
        own = ("stat", "lstat", "access", "open", "listdir", "scandir", "mkdir", "rmdir", "unlink", "rename", "symlink")
        stand_ins: dict[str, Callable[..., Any]] = {name: getattr(self, name) for name in own}
        stand_ins |= {"remove": self.unlink, "replace": self.replace, "link": self.link, "getcwd": self.getcwd}
        stand_ins |= {"getcwdb": lambda: os.fsencode(self.getcwd())}
        stand_ins |= {name: self._looking(name) for name in READING}
        stand_ins |= {name: self._changing(name, True) for name in CHANGING}
        stand_ins |= {name: self._changing(name, False) for name in CHANGING_LINKS}
        stand_ins |= {name: self._making(name) for name in MAKING}
        self.by_name = {name: function for name, function in stand_ins.items() if name in self.os.by_name}

    # looking

    def stat(self, path: Any, *, dir_fd: int | None = None, follow_symlinks: bool = True) -> os.stat_result:
        if isinstance(path, int):
            result: os.stat_result = self.os.stat(path)
        else:
            look = functools.partial(self.os.stat, follow_symlinks=follow_symlinks)
            result = self._at(path, look, dir_fd, follow_symlinks)
        return result

    def lstat(self, path: Any, *, dir_fd: int | None = None) -> os.stat_result:
        result: os.stat_result = self._at(path, self.os.lstat, dir_fd, False)
        return result

    def access(
        self,
        path: Any,
        mode: int,
        *,
        dir_fd: int | None = None,
        effective_ids: bool = False,
        follow_symlinks: bool = True,
    ) -> bool:
        if isinstance(path, int):
            return bool(self.os.access(path, mode))
        try:
            return bool(self.os.access(self.tree.where(self.tree.path(path, dir_fd, follow=follow_symlinks)), mode))
        except OSError:
            return False

    def getcwd(self) -> str:
        return self.tree.cwd()

    def listdir(self, path: Any = None) -> list[Any]:
        names = self.tree.names(self._folder(path))
        return [os.fsencode(name) for name in names] if isinstance(path, bytes) else names

    def scandir(self, path: Any = None) -> FolderEntries:
        return FolderEntries(self, path, self.tree.names(self._folder(path)))

    def _folder(self, path: Any) -> str:
        if path is None:
            return self.tree.path(".")
        return self.tree.of_descriptor(path) if isinstance(path, int) else self.tree.path(path)

    def _looking(self, name: str) -> Callable[..., Any]:
        original = self.os.by_name.get(name)

        def looks(path: Any, *rest: Any, dir_fd: int | None = None, **options: Any) -> Any:
            assert original is not None
            if isinstance(path, int):
                return original(path, *rest, **options)
            follow = name != "readlink" and bool(options.get("follow_symlinks", True))
            result = self._at(path, lambda at: original(at, *rest, **options), dir_fd, follow)
            return os.fsencode(result) if isinstance(path, bytes) and isinstance(result, str) else result

        return looks

    def _at(self, path: Any, look: Callable[[str], Any], dir_fd: int | None, follow: bool) -> Any:
        with named(path):
            return look(self.tree.where(self.tree.path(path, dir_fd, follow=follow)))

    # changing

    def _changing(self, name: str, follow: bool) -> Callable[..., Any]:
        original = self.os.by_name.get(name)

        def changes(path: Any, *rest: Any, dir_fd: int | None = None, **options: Any) -> Any:
            assert original is not None
            if isinstance(path, int):
                return original(path, *rest, **options)
            with named(path):
                inner = self.tree.path(path, dir_fd, follow=follow and bool(options.get("follow_symlinks", True)))
                self._exists(inner)
                return original(self.tree.written(inner), *rest, **options)

        return changes

    def _making(self, name: str) -> Callable[..., Any]:
        original = self.os.by_name.get(name)

        def makes(path: Any, *rest: Any, dir_fd: int | None = None, **options: Any) -> Any:
            assert original is not None
            with named(path):
                return original(self._new(path, dir_fd), *rest, **options)

        return makes

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

    def mkdir(self, path: Any, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        with named(path):
            self.os.mkdir(self._new(path, dir_fd), mode)

    def symlink(self, src: Any, dst: Any, target_is_directory: bool = False, *, dir_fd: int | None = None) -> None:
        with named(src, dst):
            self.os.symlink(src, self._new(dst, dir_fd), target_is_directory)
            self.tree.forget_links()

    def link(
        self, src: Any, dst: Any, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None,
        follow_symlinks: bool = True,
    ) -> None:  # fmt: skip
        with named(src, dst):
            inner = self.tree.path(src, src_dir_fd, follow=follow_symlinks)
            self._exists(inner)
            self.os.link(self.tree.written(inner), self._new(dst, dst_dir_fd))

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

    def rename(self, src: Any, dst: Any, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None) -> None:
        if os.name == "nt" and self.tree.is_there(self.tree.path(dst, dst_dir_fd, follow=False)):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), src, None, dst)
        self.replace(src, dst, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

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

    def _new(self, path: Any, dir_fd: int | None) -> str:
        inner = self.tree.path(path, dir_fd, follow=False)
        if self.tree.is_there(inner):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), inner)
        return self.tree.made(inner)

    def _exists(self, inner: str) -> os.stat_result:
        result: os.stat_result = self.os.lstat(self.tree.where(inner))
        return result


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
