"""Name files of libraries that are installed outside of an environment.

`pip install --target`, `PYTHONPATH` and editable installs put libraries into folders of any name. By its path alone
such a file is the program's; by the module that was imported from it, it is the library's.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from syncscan.model.libraries import LIBRARIES, is_library


def naming() -> Callable[[str], str]:
    """Return a function that names a file like the profiler, `pyro/infer/util.py`, if only its module shows it.

    What lies in an environment keeps its path, and so does what the program brings in its own folder.
    """
    folders = _folders()

    @lru_cache(None)
    def name(file: str) -> str:
        folder = next((folder for folder in folders if file.startswith(f"{folder}{os.sep}")), None)
        return file if folder is None else Path(file).relative_to(folder.parent).as_posix()

    return name


def _folders() -> list[Path]:
    """Return the folders of imported library packages that aren't in usual installation folders."""
    packages = [sys.modules[name] for name in LIBRARIES - {"syncscan"} if name in sys.modules]
    folders = {Path(path) for package in packages for path in getattr(package, "__path__", ())}
    own = Path(sys.path[0] if sys.path else "").resolve()
    return sorted(folder for folder in folders if not is_library(str(folder)) and folder.parent.resolve() != own)


__all__ = ["naming"]
