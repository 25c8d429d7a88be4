"""Compile each module of a program that compiles nothing, in one extra step; report where dynamo breaks.

The step runs once and computes the same: dynamo traces a module where it is called, with the backend "eager", which
runs each graph's ops as they are. Nothing is run a second time, and where dynamo fails the module runs as it is.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

NOT_TRIED = (
    "The program compiles nothing: each module that a step calls was compiled once, in one extra step (backend"
    ' "eager"). Code outside of modules (a loop around them, a loss function, the optimizer) wasn\'t tried.'
)
NONE_CALLED = "No module was called in the step after the capture, so dynamo compiled nothing."
_WRAPPERS = ("torch.nn.parallel.", "torch.distributed.", "torch._dynamo.", "torch.jit.")
"""Modules that only hand on to one inside of them, or that dynamo has already, or can't have."""


class GivenToDynamo:
    """Gives the outermost modules that are called from `begin` on to dynamo, each once.

    Args:
        again: called where one of them is called for the second time, as the next step has begun.
    """

    def __init__(self, again: Callable[[], None] = lambda: None) -> None:
        self.began = False
        self.modules = 0
        """How many were given."""
        self._again = again
        self._undo = ExitStack()
        self._seen: dict[int, Any] = {}
        self._inside = threading.local()
        self._original: Any = None
        self._patched: Any = None
        self._ended = False

    def begin(self) -> None:
        """Give modules to dynamo from now on."""
        self.began = True
        torch = importlib.import_module("torch")
        dynamo = importlib.import_module("torch._dynamo")
        self._undo.enter_context(dynamo.config.patch(suppress_errors=True))
        kind = torch.nn.Module
        self._original = original = kind.__call__

        def called(module: Any, *args: Any, **kwargs: Any) -> Any:
            return self._called(module, args, kwargs)

        def restore() -> None:
            kind.__call__ = original

        self._undo.callback(restore)
        self._patched = called
        kind.__call__ = called

    def end(self) -> None:
        """Leave modules alone again."""
        self._ended = True
        self._undo.close()
        self._seen.clear()

    def _called(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if getattr(self._inside, "now", False) or type(module).__module__.startswith(_WRAPPERS):
            return self._original(module, *args, **kwargs)
        if self._ended or id(module) in self._seen:
            self._again()
            return self._original(module, *args, **kwargs)
        self._seen[id(module)] = module
        self.modules += 1
        self._inside.now = True
        kind = importlib.import_module("torch").nn.Module
        kind.__call__ = self._original  # dynamo would trace into its replacement
        try:
            return importlib.import_module("torch").compile(module, backend="eager")(*args, **kwargs)
        finally:
            if not self._ended:
                kind.__call__ = self._patched
            self._inside.now = False
