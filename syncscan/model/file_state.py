"""What tells a file from another one, and from itself after a change."""

from __future__ import annotations

import msgspec


class FileState(msgspec.Struct, frozen=True):
    """A file as it was at a moment: any change makes another one of it."""

    device: int
    inode: int
    size: int
    written_ns: int
    changed_ns: int
