"""Forbid a thread, and all that it starts, to write outside of given folders: Linux's Landlock.

It can't be undone (kernel.org, Documentation/userspace-api/landlock.rst). Reading isn't restricted.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Sequence
from pathlib import Path

from syncscan.scratch.kernel import called

_CREATE, _ADD, _RESTRICT = 444, 445, 446
"""Numbers of the system calls, which are the same on all machines that have them."""
_NEEDED = 3
"""The version that also forbids to truncate files, of Linux 6.2."""
_VERSION, _BENEATH, _NO_NEW_PRIVILEGES = 1, 1, 38
_WRITE_FILE, _REMOVE, _MAKE, _REFER, _TRUNCATE = 1 << 1, 0b11 << 4, 0b1111111 << 6, 1 << 13, 1 << 14
_TO_FILES = _WRITE_FILE | _TRUNCATE
"""Rights that a rule for something else than a folder may give."""


def version() -> int:
    """Return the version of its interface here; 0 where the system has none."""
    if sys.platform != "linux":
        return 0
    try:
        return called("syscall", ctypes.c_long(_CREATE), None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))
    except (OSError, AttributeError):
        return 0


def holds() -> bool:
    """Return whether this system can forbid all writing to files."""
    return version() >= _NEEDED


def allow_writing_only(paths: Sequence[Path]) -> None:
    """Let this thread, and what it starts, write below these paths only; open files stay as they are."""
    handled = _WRITE_FILE | _REMOVE | _MAKE | _REFER | _TRUNCATE
    wanted = ctypes.c_uint64(handled)
    rules = _call(_CREATE, ctypes.byref(wanted), ctypes.c_size_t(8), 0)
    try:
        for path in paths:
            _allow(rules, path, handled)
        called("prctl", _NO_NEW_PRIVILEGES, ctypes.c_ulong(1), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0))
        _call(_RESTRICT, rules, 0)
    finally:
        os.close(rules)


def _allow(rules: int, path: Path, handled: int) -> None:
    if not path.exists():
        return
    folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        allowed = handled if path.is_dir() else handled & _TO_FILES
        rule = struct.pack("=Qi", allowed, folder)  # `struct landlock_path_beneath_attr`, which is packed
        _call(_ADD, rules, _BENEATH, rule, 0)
    finally:
        os.close(folder)


def _call(number: int, *arguments: object) -> int:
    return called("syscall", ctypes.c_long(number), *arguments)
