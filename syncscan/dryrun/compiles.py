"""Keep the first calls of what a program compiles in a dry run, or else of its modules, for dynamo to see afterwards.

Dynamo can't trace through the modes of a dry run, and nothing is compiled while one is on. So the calls are made once
more behind it, on the CPU, with the backend "eager".
"""

from __future__ import annotations

import functools
import importlib
import threading
from collections.abc import Callable
from typing import Any

from syncscan.dryrun.patches import Patches

MOST_CALLS = 3
"""Calls of one function or module that are kept, each with tensors of other shapes or types than those before."""
FAILED = "{} wasn't explained further, because it failed on the CPU: {}"
NO_GPU = ("device mismatch", "not compiled with CUDA", "FakeTensor Device Propagation")
"""Reasons of dynamo's that are the missing GPU's, where a function names the device itself."""
ON_CPU = (
    "Dynamo compiled the first calls again after the dry run, on the CPU without a simulated GPU, so it didn't see"
    " code that runs only on a GPU."
)
MODULES_ONLY = (
    "The program compiles nothing: each module that a step calls was compiled. Code outside of modules"
    " (a loop around them, a loss function, the optimizer) wasn't tried."
)


class Compiles:
    """Calls to repeat under dynamo: of compiled functions and modules where the program compiles, else of modules."""

    def __init__(self) -> None:
        self._calls: dict[int, tuple[Any, dict[Any, tuple[Any, Any]]]] = {}
        self._compiled: set[int] = set()
        self._inside = threading.local()

    @property
    def tried(self) -> bool:
        """Whether the program compiles nothing itself."""
        return not self._compiled

    def watch(self, patches: Patches) -> None:
        """Keep calls of outermost modules, and of what `torch.compile` is given, until the patches are restored."""
        torch = importlib.import_module("torch")
        original, compile_ = torch.nn.Module.__call__, torch.compile

        @functools.wraps(original)
        def called(module: Any, *args: Any, **kwargs: Any) -> Any:
            outermost = not getattr(self._inside, "now", False)
            if outermost or id(module) in self._compiled:
                self._keep(module, args, kwargs)
            if not outermost:
                return original(module, *args, **kwargs)
            self._inside.now = True
            try:
                return original(module, *args, **kwargs)
            finally:
                self._inside.now = False

        def compiled(model: Any = None, **options: Any) -> Any:
            if model is None:
                return lambda function: compiled(function, **options)
            compile_(model, **options)  # says that it is left out
            self._compiled.add(id(model))
            if isinstance(model, torch.nn.Module):
                return model
            return self._kept(model)

        patches.set(torch.nn.Module, "__call__", called)
        patches.set(torch, "compile", compiled)

    def repeat(self) -> list[str]:
        """Make the calls under dynamo, and return sentences on what could not be."""
        torch, dynamo = importlib.import_module("torch"), importlib.import_module("torch._dynamo")
        notes = [ON_CPU, *([MODULES_ONLY] if self.tried else [])]
        for key, (function, calls) in self._calls.items():
            if self._compiled and key not in self._compiled:
                continue
            compiled = torch.compile(function, backend="eager")
            for args, kwargs in calls.values():
                try:
                    with dynamo.config.patch(suppress_errors=True):
                        compiled(*args, **kwargs)
                except Exception as error:
                    name = getattr(function, "__qualname__", type(function).__name__)
                    notes.append(FAILED.format(name, str(error).partition("\n")[0][:200]))
                    break
        return notes

    def _kept(self, function: Callable[..., Any]) -> Callable[..., Any]:

        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            self._keep(function, args, kwargs)
            return function(*args, **kwargs)

        return called

    def _keep(self, function: Any, args: Any, kwargs: Any) -> None:
        calls = self._calls.setdefault(id(function), (function, {}))[1]
        if len(calls) < MOST_CALLS:
            calls.setdefault(_kinds((args, kwargs)), (args, kwargs))


def _kinds(value: Any) -> Any:
    """Return what dynamo guards of arguments, roughly: shapes and types of tensors, types of everything else."""
    pytree = importlib.import_module("torch.utils._pytree")
    tensor, function_off = (
        importlib.import_module("torch").Tensor,
        importlib.import_module("torch")._C.DisableTorchFunction,
    )
    with function_off():
        leaves = pytree.tree_flatten(value)[0]
        return tuple((tuple(v.shape), v.dtype) if isinstance(v, tensor) else type(v) for v in leaves)
