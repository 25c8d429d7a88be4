"""Renaming folders that lie in a lower layer of an overlay, which overlayfs itself refuses with EXDEV."""

from __future__ import annotations

import errno
import functools
import os
import shutil
import sys
from collections.abc import Callable
from typing import Any


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
