"""Call functions after every optimizer step, once the program has imported torch, and find the training steps in them.

Torch's own optimizers break the graph around their step (`_use_grad_for_differentiable`, torch/optim/optimizer.py), so
that a compiled program comes back to Python for the hook. An optimizer of somebody else's can be part of one graph. It
stays so: while that is traced, the hook is nothing, and such a step isn't told of. Dynamo guards what hooks there are;
so the process has one, and where dynamo has compiled anything, it stays when nobody listens any more.
"""

from __future__ import annotations

import enum
import gc
import importlib
import sys
import weakref
from collections.abc import Callable
from types import CodeType, FunctionType, ModuleType
from typing import Any

from syncscan.capture.torch_hooks import unseen
from syncscan.patches import when_imported

Hook = Callable[[Any, Any, Any], None]


class OptimizerHook:
    """Calls `stepped(optimizer, arguments, keywords)` after each step of any optimizer, until it is removed.

    A compiled training step doesn't trace into it, and has the same graphs with it.
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


def has_optimizer() -> bool:
    """Return whether the program has made an optimizer, which may step later."""
    from torch.optim import Optimizer

    return any(issubclass(type(thing), Optimizer) for thing in gc.get_objects())


def _compiled() -> bool:
    return bool(getattr(sys.modules.get("torch._dynamo.utils"), "counters", None))


def _hidden(dynamo: Any, listener: Hook) -> Hook:
    """Return a hook that ends no graph which the optimizer's step doesn't end."""
    tell: Hook = dynamo.disable(listener)
    try:
        from torch.compiler import is_compiling
    except ImportError:  # before torch 2.3
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


RARER = 8
"""Most steps of the marking optimizer before a newcomer's first step at which the newcomer may replace it."""


class OptimizerCall(enum.Enum):
    """Meaning of an optimizer's call for the count of steps."""

    STEP = "a training step ends here"
    NOTHING = "another optimizer's call within a step"
    ANEW = "a less frequent optimizer appeared: steps are counted by it from here on"


class StepMarks:
    """Determines which of a program's optimizers marks the steps.

    That is the one that steps least often, the first of them at a tie: with a discriminator and a generator that step
    in turn the first; with a critic that steps five times for each step of the generator the generator. A newcomer is
    rarer if the marking optimizer stepped at least twice, and at most `RARER` times, before it came. An optimizer that
    was thrown away loses its place to the next that steps. `name` is the class of the marking optimizer.
    """

    def __init__(self) -> None:
        self._marking: weakref.ref[Any] | None = None
        self._known: weakref.WeakSet[Any] = weakref.WeakSet()
        self._count = 0
        self.name = ""

    def saw(self, optimizer: Any, *, fixed: bool) -> OptimizerCall:
        """Register a call; `fixed` says that the profiler has started: the marking optimizer can't change any more."""
        marking = self._marking() if self._marking is not None else None
        if marking is optimizer:  # what nearly every call is, and it must cost next to nothing
            self._count += 1
            return OptimizerCall.STEP
        newcomer = optimizer not in self._known
        self._known.add(optimizer)
        if marking is None or (newcomer and not fixed and 2 <= self._count <= RARER):
            first = self._marking is None
            self._marking, self._count, self.name = weakref.ref(optimizer), 0, type(optimizer).__name__
            return OptimizerCall.STEP if first or fixed else OptimizerCall.ANEW
        return OptimizerCall.NOTHING
