"""Call functions after every optimizer step, once the program has imported torch.

Torch's own optimizers break the graph around their step (`_use_grad_for_differentiable`, torch/optim/optimizer.py), so
that a compiled program comes back to Python for the hook. An optimizer of somebody else's can be part of one graph. It
stays so: while that is traced, the hook is nothing, and such a step isn't told of. Dynamo guards what hooks there are;
so the process has one, and where dynamo has compiled anything, it stays when nobody listens any more.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from types import CodeType, FunctionType, ModuleType
from typing import Any

from syncscan.capture.imports import when_imported
from syncscan.capture.unseen import unseen

Hook = Callable[[Any, Any, Any], None]


class OptimizerHook:
    """Calls `stepped(optimizer, arguments, keywords)` after each step of any optimizer, until it is removed.

    A compiled training step doesn't trace into it, and has the same graphs with it.

    Args:
        stepped: what is called.
        before: call it ahead of each step instead.
    """

    def __init__(self, stepped: Hook, *, before: bool = False) -> None:
        self._stepped, self._of_torch = stepped, _BEFORE if before else _AFTER
        self._of_torch.add(stepped)

    def remove(self) -> None:
        """Remove the hook, also if torch is yet to be imported."""
        self._of_torch.remove(self._stepped)


class _TorchHook:
    """The process's one hook in torch, before or after each step."""

    def __init__(self, when: str) -> None:
        self._register_name = f"register_optimizer_step_{when}_hook"
        self._listeners: list[Hook] = []
        self._off: list[Callable[[], None]] = []
        """Functions that remove torch's hook, and stop waiting for imports."""

    def add(self, stepped: Hook) -> None:
        self._listeners.append(stepped)
        if not self._off:
            unseen()
            self._off.append(when_imported("torch.optim.optimizer", lambda module: self._register(module, self._tell)))
            self._off.append(when_imported("torch._dynamo", self._hide))

    def remove(self, stepped: Hook) -> None:
        if stepped in self._listeners:
            self._listeners.remove(stepped)
        if not self._listeners and not _compiled():
            self._take_out()

    def _tell(self, optimizer: Any, arguments: Any, keywords: Any) -> None:
        for stepped in tuple(self._listeners):
            stepped(optimizer, arguments, keywords)

    def _register(self, optimizers: ModuleType, hook: Hook) -> None:
        self._off.append(getattr(optimizers, self._register_name)(hook).remove)

    def _hide(self, dynamo: ModuleType) -> None:
        """Register another hook instead of the plain one, as the program may compile from now on."""
        self._take_out()
        self._register(importlib.import_module("torch.optim.optimizer"), _hidden(dynamo, self._tell))

    def _take_out(self) -> None:
        while self._off:
            self._off.pop()()


_BEFORE, _AFTER = _TorchHook("pre"), _TorchHook("post")


def _compiled() -> bool:
    """Return whether dynamo has compiled anything in this process."""
    return bool(getattr(sys.modules.get("torch._dynamo.utils"), "counters", None))


def _hidden(dynamo: Any, listener: Hook) -> Hook:
    """Return a hook that ends no graph which the optimizer's step doesn't end."""
    tell: Hook = dynamo.disable(listener)
    try:
        is_compiling = importlib.import_module("torch.compiler").is_compiling
    except (ImportError, AttributeError):  # before torch 2.3
        return tell

    def hook(optimizer: Any, arguments: Any, keywords: Any) -> None:
        if not is_compiling() or type(optimizer).step.__module__.startswith("torch.optim."):
            tell(optimizer, arguments, keywords)

    return _traceable(hook)


def _traceable(function: Any) -> Hook:
    """Return a function that dynamo may trace, though it passes over those of syncscan's files (`unseen`)."""
    code: CodeType = function.__code__.replace(co_filename="<after an optimizer's step>")
    traceable: Hook = FunctionType(code, function.__globals__, function.__name__, None, function.__closure__)
    return traceable
