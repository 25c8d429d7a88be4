"""Set attributes of modules and classes for a while, also as soon as a module is imported, without importing it.

The script runner must not import torch before the script does: scripts set OMP_NUM_THREADS, CUDA_VISIBLE_DEVICES and
the allocator's options first, and torch reads some of them when it is imported.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class Patches(ExitStack):
    """Changes that are undone at the end of the context, the last one first."""

    def set(self, owner: Any, name: str, value: Any) -> None:
        """Set an attribute, whether it exists or not."""
        if name in vars(owner):
            self.callback(setattr, owner, name, vars(owner)[name])
        else:
            self.callback(delattr, owner, name)
        setattr(owner, name, value)

    def replace(self, owner: Any, name: str, value: Any) -> None:
        """Set an attribute if it exists; names depend on torch's version."""
        if hasattr(owner, name):
            self.set(owner, name, value)

    def when_imported(self, name: str, change: Callable[[ModuleType, Patches], None]) -> None:
        """Have a module changed by `change(module, patches)`, now or once it is imported."""
        self.callback(when_imported(name, lambda module: change(module, self)))


def when_imported(name: str, action: Callable[[ModuleType], None]) -> Callable[[], None]:
    """Run `action(module)` right after the module was first executed, or at once if it already was.

    Returns a function that calls it off.
    """
    module = sys.modules.get(name)
    if module is not None:
        action(module)
        return lambda: None
    watcher = _Watcher(name, action)
    sys.meta_path.insert(0, watcher)
    return watcher.leave


class _Watcher(MetaPathFinder):
    def __init__(self, name: str, action: Callable[[ModuleType], None]) -> None:
        self.name, self.action = name, action
        self._asking = False

    def leave(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        """Let the other finders locate the module, and append the action to its execution.

        Whoever asks for a spec need not import the module: the watcher stays until that happens. Another finder, such
        as a second watcher of the same module, may ask all finders in turn, and so this one again.
        """
        if fullname != self.name or self._asking:
            return None
        self._asking = True
        try:
            for finder in [finder for finder in sys.meta_path if finder is not self]:
                spec = finder.find_spec(fullname, path, target)
                if spec is not None and spec.loader is not None:
                    self._follow(spec.loader)
                    return spec
        finally:
            self._asking = False
        return None

    def _follow(self, loader: Any) -> None:
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            vars(loader).pop("exec_module", None)  # the program may look at its loader, or execute the module again
            execute(module)
            self.leave()
            self.action(module)

        loader.exec_module = exec_module
