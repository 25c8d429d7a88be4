"""Tell an archive by its first bytes, and a file in one by its path; nothing here reads one."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

_TAR_MAGIC = slice(257, 262)


def kind_of(begin: bytes) -> str:
    """Return "zip" or "tar" for the first 512 bytes of an archive, unpacked if it is compressed; "" for others."""
    if begin.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return "zip"
    return "tar" if begin[_TAR_MAGIC] == b"ustar" else ""


def within(path: str) -> tuple[str, str] | None:
    """Return the file on the way to a path and the rest of the path, `/`-separated; None if no file is on the way."""
    parents = list(Path(path).parents)[:-1] if not os.path.lexists(path) else []
    for parent in parents:
        if parent.is_file():
            return str(parent), Path(path).relative_to(parent).as_posix()
        if parent.is_dir():
            return None
    return None


def is_litter(name: str) -> bool:
    """Return whether a file in an archive holds what macOS keeps about another one."""
    path = PurePosixPath(name)
    return path.name.startswith("._") or "__MACOSX" in path.parts
