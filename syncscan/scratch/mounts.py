"""The file systems that are mounted here, from `/proc/self/mountinfo` (proc_pid_mountinfo(5))."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

KERNELS_OWN = frozenset({
    "autofs", "binder", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "devtmpfs",
    "efivarfs", "fusectl", "hugetlbfs", "mqueue", "nsfs", "proc", "pstore", "rpc_pipefs", "securityfs", "selinuxfs",
    "sysfs", "tracefs",
})  # fmt: skip
"""File systems that hold no files of a user: devices, pipes and the kernel's own interfaces, which work as before."""
_OCTAL = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Mount:
    """A mounted file system: the path where it is, and its kind, such as `ext4`."""

    path: str
    kind: str

    @property
    def is_kernels(self) -> bool:
        """Whether it holds nothing that a user could lose."""
        return self.kind in KERNELS_OWN or self.path == "/dev" or self.path.startswith(("/proc", "/sys"))


class Mounts:
    """All that is mounted; of several at one path, the one that is seen."""

    def __init__(self, text: str) -> None:
        by_path: dict[str, Mount] = {}
        for line in text.splitlines():
            before, _, after = line.partition(" - ")
            path = _OCTAL.sub(lambda match: chr(int(match[1], 8)), before.split(" ")[4])
            by_path[path] = Mount(path, after.split(" ")[0])
        self._found = by_path

    @classmethod
    def here(cls) -> Mounts:
        """Return those of this process."""
        return cls(Path("/proc/self/mountinfo").read_text(errors="surrogateescape"))

    def at(self, path: str) -> Mount | None:
        """Return what is mounted at a path itself."""
        return self._found.get(path)

    def of(self, path: str) -> Mount:
        """Return the one that a path lies on."""
        while path not in self._found and path != "/":
            path = path.rpartition("/")[0] or "/"
        return self._found.get(path) or Mount("/", "")

    def directly_below(self, path: str) -> list[Mount]:
        """Return those below a path that lie in none of the others."""
        mounts: list[Mount] = []
        for inner in sorted(self._found):
            if _within(inner, path) and not any(_within(inner, mount.path) for mount in mounts):
                mounts.append(self._found[inner])
        return mounts


def _within(inner: str, outer: str) -> bool:
    return inner != outer and inner.startswith(outer.rstrip("/") + "/")
