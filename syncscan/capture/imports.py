"""Run an action as soon as a module is imported, and keep torch's compiler from compiling syncscan's own functions.

The script runner must not import torch before the script does: scripts set OMP_NUM_THREADS, CUDA_VISIBLE_DEVICES and
the allocator's options first, and torch reads some of them when it is imported.

Dynamo compiles every Python function that starts on a thread inside a compiled one, where a graph broke: a handler of a
signal, a callback of the garbage collector or of `sys.monitoring`, a filter of warnings too. It skips the files of a
list (`torch/_dynamo/trace_rules.py`), and those of a capture, a watch and a guard belong there. `guarding/allowed.py`
doesn't: `with syncscan.allow(…)` may stand in a compiled function, and breaks no graph.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


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

    def leave(self) -> None:
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


TRACED = "allowed.py"
"""The file of `guarding` that dynamo may trace."""

_asked = False


def unseen() -> None:
    """Let dynamo pass over syncscan's functions, now or once the program imports it; the first call does it all."""
    global _asked
    if not _asked:
        _asked = True
        when_imported("torch._dynamo", _skip)


def _skip(dynamo: ModuleType) -> None:
    with contextlib.suppress(Exception):  # a torch without such a list; whatever it is, the program's import goes on
        add = importlib.import_module("torch._dynamo.trace_rules").add
        for name in _names():
            add(name)


def _names() -> Iterator[str]:
    """Yield the packages and modules that dynamo passes over."""
    from pathlib import Path  # no process that only waits for torch imports it

    yield from ("syncscan.capture", "syncscan.watching")
    files = (Path(__file__).parents[1] / "guarding").glob("*.py")
    yield from (f"syncscan.guarding.{file.stem}" for file in files if file.name not in (TRACED, "__init__.py"))
