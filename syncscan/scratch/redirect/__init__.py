"""A view by Python's own functions: `open`, `os`, and what rests on them, work on scratch copies.

For systems whose kernel gives no view. What opens files in C is either known (`writers`), or on Linux forbidden to
write outside of the scratch folder (`scratch.landlock`).
"""

from __future__ import annotations

import functools
import io
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from syncscan.patches import Patches
from syncscan.scratch import landlock
from syncscan.scratch.redirect import other_writers
from syncscan.scratch.redirect.functions import FileOpen, PathFunctions
from syncscan.scratch.redirect.redirected_tree import Originals, Tree

_WRITABLE = ("/dev", "/proc")
"""Devices, shared memory and the kernel's own interfaces."""
_OWN = "syncscan.scratch"


def enter(folder: Path, passed: Sequence[Path]) -> None:
    """Redirect Python's functions in this process from here on, and forbid what can't be redirected.

    What is written to `passed` folders stays.
    """
    os.environ["TMPDIR"] = str(temporary_folder(folder))  # of other programs too
    other_writers.let_python_join(folder, passed)
    redirection = Redirection(folder, passed)
    if landlock.holds():
        landlock.allow_writing_only(redirection.writable)


def join(folder: Path, passed: Sequence[Path]) -> None:
    """Redirect the functions of a Python that a program in the view has started; what is forbidden it inherits."""
    Redirection(folder, passed)


class Redirection:
    """All functions that are redirected, until `end`; it warns of a program that nothing holds back."""

    def __init__(self, folder: Path, passed: Sequence[Path]) -> None:
        self.writable = [folder, *passed, *map(Path, _WRITABLE)]
        system = Originals()
        self.tree = Tree(folder.resolve(), passed, system)
        functions = PathFunctions(self.tree)
        opening = FileOpen(functions)
        stand_ins: dict[Callable[..., Any], Callable[..., Any]] = {
            original: functions.by_name[name] for name, original in system.by_name.items() if name in functions.by_name
        }
        stand_ins |= {io.open: opening.open, io.open_code: opening.open_code}
        self._patches = Patches()
        for library in other_writers.FUNCTIONS:
            self._patches.when_imported(library, functools.partial(other_writers.redirect, functions))
        replace = self._patches.set
        replace(tempfile, "tempdir", str(temporary_folder(folder)))
        replace(shutil, "_use_fd_functions", False)  # of open folders, a view has only one part
        replace(subprocess.Popen, "__init__", other_writers.popen(functions, folder, warned=not landlock.holds()))
        install(stand_ins, self._patches)

    def end(self) -> None:
        self._patches.close()


def temporary_folder(folder: Path) -> Path:
    temporary = folder / "tmp"
    temporary.mkdir(exist_ok=True)
    return temporary


def install(stand_ins: Mapping[Callable[..., Any], Callable[..., Any]], patches: Patches) -> None:
    """Replace functions by their identity."""
    by_id = {id(original): stand_in for original, stand_in in stand_ins.items()}
    modules = [module for module in list(sys.modules.values()) if isinstance(module, ModuleType)]
    accessor = getattr(sys.modules.get("pathlib"), "_NormalAccessor", None)  # Python 3.10 keeps the functions there
    for holder in [module for module in modules if not module.__name__.startswith(_OWN)] + [accessor] * bool(accessor):
        for name, value in list(vars(holder).items()):
            stand_in = by_id.get(id(value.__func__ if type(value) is staticmethod else value))
            if stand_in is not None:  # isinstance would ask the value
                patches.set(holder, name, staticmethod(stand_in) if isinstance(holder, type) else stand_in)
