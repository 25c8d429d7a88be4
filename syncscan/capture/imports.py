"""A module's name and an action go in; the action runs as soon as somebody imports that module.

The script runner must not import torch before the script does: scripts set OMP_NUM_THREADS, CUDA_VISIBLE_DEVICES and
the allocator's options first, and torch reads some of them when it is imported.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


def when_imported(name: str, action: Callable[[ModuleType], None]) -> Callable[[], None]:
    """Run `action(module)` right after the module was executed for the first time, at once where that is past.

    Returns:
        A function that calls it off.
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

    def leave(self) -> None:
        """Take this finder out of the import system again."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        """Let the other finders find the module, and add the action to its execution."""
        if fullname != self.name:
            return None
        self.leave()
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            self.action(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
