"""A copy-on-write view of the whole file tree, by the kernel: a mount namespace with an overlay on each file system.

The process that enters it, and all that it starts, read every file as it is, and write into a folder beside: overlayfs
(kernel.org, Documentation/filesystems/overlayfs). Nothing that writes has to know of it. Python doesn't have the calls
for mounts and namespaces (`os.unshare` came with 3.12).
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import itertools
import json
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1 << 5, 1 << 12, 1 << 14, 1 << 18
MNT_DETACH = 2
CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
_CAPABILITY_VERSION_3 = 0x20080522


@functools.cache
def libc() -> Any:
    """Return the C library that is loaded already."""
    return ctypes.CDLL(None, use_errno=True)


def called(name: str, *arguments: Any, about: str = "") -> int:
    """Call a function of the C library; an OSError says that it returned -1, with `about` as its file name."""
    result = int(getattr(libc(), name)(*arguments))
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), about or None)
    return result


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str = "") -> None:
    """Put a file system in place, or change how it is in place: `man 2 mount`."""
    coded = [word.encode(errors="surrogateescape") if word is not None else None for word in (source, target, kind)]
    called("mount", *coded, ctypes.c_ulong(flags), data.encode(errors="surrogateescape"), about=target)


def change_root(new: str) -> None:
    """Make a mount point the root of this process's mount namespace, and let the old one go."""
    os.chdir(new)
    called("syscall", ctypes.c_long(_pivot_root()), b".", b".", about=new)  # pivot_root(2): the old one is on top now
    called("umount2", b".", MNT_DETACH, about=new)
    os.chdir("/")


def _pivot_root() -> int:
    """Return the number of pivot_root(2), which glibc has no function for."""
    return {"x86_64": 155, "ppc64le": 203, "s390x": 217}.get(os.uname().machine, 41)  # 41: arm64, riscv64, loongarch64


def own_namespaces() -> bool:
    """Give this process mounts of its own, as itself; return whether that took a user namespace.

    The process must have no other thread. In a user namespace it keeps its own user and group, and no others exist.
    """
    try:
        called("unshare", CLONE_NEWNS)
        return False
    except PermissionError:
        pass
    user, group = os.geteuid(), os.getegid()
    called("unshare", CLONE_NEWNS | CLONE_NEWUSER, about="unshare")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    return True


def drop_capabilities() -> None:
    """Drop what a user namespace gave this process beyond its user's own rights."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    none = (ctypes.c_uint32 * 6)()
    called("capset", header, none, about="capset")


NOTES = "view.json"
"""In the first folder of a view: the path that each layer lies over, by the layer's own path; the same of folders whose
files were copied; and the paths that are only shown."""
LARGEST_COPY = 16 << 20
"""Bytes of a file that is copied where no overlay can be; larger ones can only be read."""
_LOOKED_AT = 1000
"""Entries of a folder that are looked at, which may hold a data set."""
_ESCAPED = str.maketrans({"\\": "\\\\", ":": "\\:", ",": "\\,"})
_FORBIDDEN = {1 << 1: MS_NOSUID, 1 << 2: MS_NODEV, 1 << 3: MS_NOEXEC}
"""Restrictions of a mount, as statvfs(3) gives them, with the flag that repeats each: a namespace can't lift it."""


def enter(folders: Sequence[Path], passed: Sequence[Path]) -> None:
    """Let this process see the view from here on; it must have no other thread.

    `folders` are empty, for what is written: the first for all but what it lies in itself, which goes to the next,
    since no layer can lie below what it covers. What is written to `passed` folders stays. An OSError says that the
    system doesn't allow it, or not where this process works.
    """
    at = os.getcwd()
    within = own_namespaces()
    mount(None, "/", None, MS_REC | MS_PRIVATE)
    tree = _Tree(folders, Mounts.here(), within)
    tree.build()
    if within:
        tree.cover_apart((at, tempfile.gettempdir(), os.path.expanduser("~")))
        refuse_foreign(at)
    tree.refuse_unwritable((at, tempfile.gettempdir()))
    tree.pass_through(passed)
    tree.keep_sockets()
    tree.note_layers()
    change_root(str(tree.root))
    os.chdir(at)
    if within and os.geteuid():
        drop_capabilities()
    allow_renaming_folders()


def refuse_foreign(folder: str) -> None:
    """Refuse a view, in a user namespace, of a folder with files that the user may write but that aren't all theirs.

    An overlay can't copy them (EOVERFLOW), as where a group shares them. Two levels are looked at.
    """
    for entry in os.scandir(folder):
        inner = os.scandir(entry) if entry.is_dir(follow_symlinks=False) and os.access(entry, os.R_OK | os.X_OK) else ()
        for each in (entry, *itertools.islice(inner, _LOOKED_AT)):
            if not each.is_symlink() and os.access(each, os.W_OK) and not _is_own(each.path):
                raise OSError(errno.EOVERFLOW, "no overlay can copy what belongs to another user or group", each.path)


def _is_own(path: str) -> bool:
    """Return whether user and group of a path are those of this process, the only ones in its user namespace."""
    status = os.lstat(path)
    return (status.st_uid, status.st_gid) == (os.geteuid(), os.getegid())


class _Tree:
    """The new root while it is built: `root` in the first folder."""

    def __init__(self, folders: Sequence[Path], mounts: Mounts, within: bool) -> None:
        self._folders, self._mounts, self._within = folders, mounts, within
        self._layers: dict[str, str] = {}
        self._copies: dict[str, str] = {}
        self._unwritable: list[str] = []
        self.root = folders[0] / "root"

    def build(self) -> None:
        self.root.mkdir()
        mount(str(self.root), str(self.root), None, MS_BIND)
        self._skeleton("/")

    def cover_apart(self, folders: Sequence[str]) -> None:
        """Lay an overlay over each of these folders, or what is the user's around it, if it lies in another's folder.

        In a user namespace an overlay can't copy what belongs to others, such as the folders above a written file.
        """
        for top in filter(os.path.isdir, map(os.path.realpath, folders)):
            while top != "/" and _is_own(top) and _is_own(os.path.dirname(top)):
                top = os.path.dirname(top)
            anew = self._new(top) in self._copies or top in self._layers.values()
            if top == "/" or anew or (_is_own(top) and os.path.dirname(top) in self._layers.values()):
                continue
            if self._overlaid(top):
                self._nested(self._mounts.directly_below(top))
            else:
                self._unwritable.append(top)

    def refuse_unwritable(self, folders: Sequence[str]) -> None:
        """Refuse a view in which one of these folders can only be read."""
        for folder in map(os.path.realpath, folders):
            if any(Path(folder).is_relative_to(path) for path in self._unwritable):
                raise OSError(errno.EROFS, "no overlay can be laid over it", folder)

    def pass_through(self, folders: Sequence[Path]) -> None:
        """Show these folders as they are."""
        for path in map(os.path.realpath, folders):
            if Path(path).is_dir() and Path(self._new(path)).is_dir():
                mount(path, self._new(path), None, MS_BIND | MS_REC)

    def keep_sockets(self) -> None:
        """Put the sockets that others listen at in place: through an overlay nobody would answer."""
        lines = Path("/proc/net/unix").read_text(errors="surrogateescape").splitlines()[1:]
        for path in {line.split(" ", 7)[-1] for line in lines if " /" in line}:
            with contextlib.suppress(OSError):
                if stat.S_ISSOCK(Path(path).stat().st_mode):
                    mount(path, self._new(os.path.realpath(path)), None, MS_BIND)

    def note_layers(self) -> None:
        """Write down where the layers belong."""
        notes = {"layers": self._layers, "copies": self._copies, "shown": self._unwritable}
        (self._folders[0] / NOTES).write_text(json.dumps(notes))

    def _new(self, path: str) -> str:
        return f"{self.root}{path}"

    def _place(self, path: str) -> None:
        """Make a folder of the old tree part of the new one, where a folder stands ready for it."""
        if self._mounts.is_kernels(path):
            mount(path, self._new(path), None, MS_BIND | MS_REC)
            self._nested([inner for inner in self._mounts.directly_below(path) if not self._mounts.is_kernels(inner)])
        elif self._overlaid(path):
            self._nested(self._mounts.directly_below(path))
        elif self._mounts.directly_below(path) and os.access(path, os.R_OK):
            self._skeleton(path)
        else:
            self._read_only(path)

    def _nested(self, mounts: Sequence[str]) -> None:
        for path in mounts:
            if Path(path).is_dir() and Path(self._new(path)).is_dir():
                self._place(path)
            elif Path(path).is_file() and Path(self._new(path)).is_file():
                self._read_only(path)

    def _overlaid(self, path: str) -> bool:
        """Lay an overlay over a folder; return whether the system allows it there."""
        folder = next((f for f in self._folders if not f.is_relative_to(path)), None)
        if folder is None:
            return False
        layer = folder / str(len(self._layers))
        upper, work = layer / "upper", layer / "work"
        upper.mkdir(parents=True)
        work.mkdir()
        _make_alike(path, upper)
        layers = {"lowerdir": path, "upperdir": str(upper), "workdir": str(work)}
        options = [f"{key}={value.translate(_ESCAPED)}" for key, value in layers.items()]
        options.append("userxattr" if self._within else "index=off,metacopy=off,redirect_dir=off")
        try:
            mount("overlay", self._new(path), "overlay", self._forbidden(path), ",".join(options))
        except OSError:
            shutil.rmtree(layer, ignore_errors=True)
            return False
        self._layers[str(upper)] = path
        return True

    def _skeleton(self, path: str) -> None:
        """Make a folder anew from what is in it, where no overlay can lie over all of it."""
        new = Path(self._new(path))
        for entry in os.scandir(path):
            copy = new / entry.name
            try:
                self._entry(entry, copy)
            except FileNotFoundError:
                if os.path.lexists(entry.path):
                    raise
                # Another process has removed it meanwhile. If something is mounted there already, this fails.
                copy.rmdir() if copy.is_dir() else copy.unlink(missing_ok=True)
        _make_alike(path, new)
        self._copies[str(new)] = path

    def _entry(self, entry: os.DirEntry[str], copy: Path) -> None:
        """Make an entry of such a folder anew."""
        if entry.is_symlink():
            copy.symlink_to(os.readlink(entry.path))
        elif entry.is_dir(follow_symlinks=False):
            copy.mkdir()
            self._place(entry.path)
        elif entry.is_file() and entry.stat().st_size <= LARGEST_COPY and os.access(entry.path, os.R_OK):
            shutil.copy2(entry.path, copy)
        else:
            copy.touch()
            self._read_only(entry.path)

    def _read_only(self, path: str) -> None:
        """Show what can't be overlaid, and refuse to have it written."""
        new = self._new(path)
        mount(path, new, None, MS_BIND | MS_REC)
        mount(None, new, None, MS_BIND | MS_REMOUNT | MS_RDONLY | self._forbidden(path))
        self._unwritable.append(path)

    def _forbidden(self, path: str) -> int:
        given = os.statvfs(path).f_flag
        return sum(flag for known, flag in _FORBIDDEN.items() if given & known)


def _make_alike(path: str, folder: Path) -> None:
    """Give a folder the permissions of another, and where that is allowed its owner."""
    status = Path(path).stat()
    with contextlib.suppress(OSError):
        os.chown(folder, status.st_uid, status.st_gid)
    mode = stat.S_IMODE(status.st_mode)
    folder.chmod(mode if os.access(path, os.W_OK) else mode & ~0o222)  # it may belong to this user now


def allow_renaming_folders() -> None:
    """Let `os.rename` and `os.replace` copy a folder where it can't be moved, as `mv` and `shutil.move` do."""
    for name in ("rename", "replace"):
        copying = _copying(getattr(os, name))
        setattr(os, name, copying)
        accessor = getattr(sys.modules.get("pathlib"), "_NormalAccessor", None)  # Python 3.10 keeps the functions there
        if accessor is not None:
            setattr(accessor, name, staticmethod(copying))


def _copying(rename: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(rename)
    def renamed(src: Any, dst: Any, **folders: Any) -> None:
        try:
            rename(src, dst, **folders)
        except OSError as error:
            if error.errno != errno.EXDEV or folders or not os.path.isdir(src) or os.path.islink(src):
                raise
            if os.path.isdir(dst):
                os.rmdir(dst)
            shutil.copytree(src, dst, symlinks=True)
            shutil.rmtree(src)

    return renamed


KERNELS_OWN = frozenset({
    "autofs", "binder", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "devtmpfs",
    "efivarfs", "fusectl", "hugetlbfs", "mqueue", "nsfs", "proc", "pstore", "rpc_pipefs", "securityfs", "selinuxfs",
    "sysfs", "tracefs",
})  # fmt: skip
"""File systems that hold no files of a user: devices, pipes and the kernel's own interfaces, which work as before."""
_OCTAL = re.compile(r"\\([0-7]{3})")


class Mounts:
    """The paths of all that is mounted, and of what kind it is, such as `ext4`; at one path that which is seen."""

    def __init__(self, text: str) -> None:
        self._kinds: dict[str, str] = {}
        for line in text.splitlines():
            before, _, after = line.partition(" - ")
            path = _OCTAL.sub(lambda match: chr(int(match[1], 8)), before.split(" ")[4])
            self._kinds[path] = after.split(" ")[0]

    @classmethod
    def here(cls) -> Mounts:
        """Return those of this process."""
        return cls(Path("/proc/self/mountinfo").read_text(errors="surrogateescape"))

    def is_kernels(self, path: str) -> bool:
        """Return whether something is mounted at a path itself that holds nothing which a user could lose."""
        kind = self._kinds.get(path)
        return kind is not None and (kind in KERNELS_OWN or path == "/dev" or path.startswith(("/proc", "/sys")))

    def kind_of(self, path: str) -> str:
        """Return the kind of the one that a path lies on."""
        while path not in self._kinds and path != "/":
            path = path.rpartition("/")[0] or "/"
        return self._kinds.get(path, "")

    def directly_below(self, path: str) -> list[str]:
        """Return the paths of those below a path that lie in none of the others."""
        mounts: list[str] = []
        for inner in sorted(self._kinds):
            if _within(inner, path) and not any(_within(inner, outer) for outer in mounts):
                mounts.append(inner)
        return mounts


def _within(inner: str, outer: str) -> bool:
    return inner != outer and inner.startswith(outer.rstrip("/") + "/")
