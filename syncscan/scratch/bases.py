"""Where scratch folders are made: on a disk, since a program may write checkpoints larger than the memory."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from syncscan.scratch.mounts import Mounts

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

PREFIX = "syncscan-view-"
_FRESH_S = 60.0
"""How old a folder is that nobody holds before it is taken for left behind."""
_held: dict[Path, int | None] = {}
"""Open and locked folders of this process, so that no other takes them for left behind."""
_IN_MEMORY = frozenset({"tmpfs", "ramfs"})


def made() -> list[Path]:
    """Make a scratch folder in each place that is fit for it, the best first.

    No two are in the same top-level folder: what lies over one of these folders can't be kept in it.
    """
    folders: list[Path] = []
    for base in _bases():
        _sweep(base)
        if base.parts[:2] not in [folder.parts[:2] for folder in folders]:
            with contextlib.suppress(OSError):
                folders.append(Path(tempfile.mkdtemp(prefix=PREFIX, dir=base)))
                _held[folders[-1]] = _lock(folders[-1])
    return folders


def _lock(folder: Path) -> int | None:
    """Lock a folder for this process and those that it forks; None if another one has it."""
    if fcntl is None:
        return None
    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(held)
        return None
    return held


def _sweep(base: Path) -> None:
    """Remove the folders of commands that were killed."""
    for folder in base.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            status = folder.lstat()
            if status.st_uid == os.getuid() and time.time() - status.st_mtime > _FRESH_S:
                held = _lock(folder)
                if held is not None:
                    os.close(held)
                    removed(folder)


def _bases() -> list[Path]:
    """Return the folders for temporary files, those in memory last."""
    named = [tempfile.gettempdir(), "/var/tmp", "/tmp", "/dev/shm"]
    known = [Path(os.path.realpath(name)) for name in named if Path(name).is_dir()]
    return sorted(dict.fromkeys(known), key=_is_in_memory)


def _is_in_memory(folder: Path) -> bool:
    with contextlib.suppress(OSError):
        return Mounts.here().of(str(folder)).kind in _IN_MEMORY
    return False


def removed(folder: Path) -> None:
    """Remove a scratch folder, whatever permissions a program has left in it."""
    held = _held.pop(folder, None)
    shutil.rmtree(folder, onerror=_again)
    if held is not None:
        os.close(held)


def _again(remove: Callable[..., Any], path: str, _: object) -> None:
    with contextlib.suppress(OSError):
        for each in (Path(path).parent, Path(path)):
            if not each.is_symlink():
                each.chmod(each.stat().st_mode | stat.S_IRWXU)
        shutil.rmtree(path) if Path(path).is_dir() and not Path(path).is_symlink() else Path(path).unlink()
