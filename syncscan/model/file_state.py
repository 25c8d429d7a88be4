"""The identity of a file, which changes with its content."""

from __future__ import annotations

import msgspec


class FileState(msgspec.Struct, frozen=True):
    """A snapshot of a file's identity: any change to the file makes another one."""

    device: int
    inode: int
    size: int
    written_ns: int
    changed_ns: int
