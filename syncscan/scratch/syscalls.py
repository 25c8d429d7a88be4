"""Linux's calls for mounts and namespaces, which Python doesn't have (`os.unshare` came with 3.12)."""

from __future__ import annotations

import ctypes
import functools
import os
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
