"""Run an action as soon as a module is imported.

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
    """Run `action(module)` right after the module was first executed, or at once if it already was.

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
        """Remove this finder from the import system."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        """Let the other finders locate the module, and append the action to its execution."""
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
