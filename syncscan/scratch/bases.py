"""Where scratch folders are made: on a disk, since a program may write checkpoints larger than the memory."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from syncscan.scratch.mounts import Mounts

PREFIX = "syncscan-view-"
_IN_MEMORY = frozenset({"tmpfs", "ramfs"})


def made() -> list[Path]:
    """Make a scratch folder in each place that is fit for it, the best first.

    No two are in the same top-level folder: what lies over one of these folders can't be kept in it.
    """
    found: list[Path] = []
    for base in _bases():
        if base.parts[:2] not in [folder.parts[:2] for folder in found]:
            with contextlib.suppress(OSError):
                found.append(Path(tempfile.mkdtemp(prefix=PREFIX, dir=base)))
    return found


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
    shutil.rmtree(folder, onerror=_again)


def _again(remove: Callable[..., Any], path: str, _: object) -> None:
    with contextlib.suppress(OSError):
        for each in (Path(path).parent, Path(path)):
            if not each.is_symlink():
                each.chmod(each.stat().st_mode | stat.S_IRWXU)
        shutil.rmtree(path) if Path(path).is_dir() and not Path(path).is_symlink() else Path(path).unlink()
