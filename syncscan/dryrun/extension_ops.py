"""Ask an extension's op by what `torch.library` knows of it: its Python code, or its fake implementation.

A custom op that is written in Python runs as the program's code, so that the ops that it calls are seen. Of any other
the fake implementation tells whether the size of a result depends on values of the device, which the host has to wait
for; where it doesn't, the op launches kernels and returns. An op without one is unknown.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

torch: Any = importlib.import_module("torch")
_Tensor = torch.Tensor


def python_code(func: Any) -> Callable[..., Any] | None:
    """Return the Python function that a custom op runs on CUDA; None where it isn't written in Python."""
    definitions = getattr(_part("custom_ops"), "OPDEFS", {})
    functions = getattr(definitions.get(func._schema.name), "_backend_fns", {})
    code: Callable[..., Any] | None = functions.get("cuda", functions.get(None))
    return code


def depends_on_values(func: Any, args: Any, kwargs: Any) -> bool | None:
    """Return whether the size of a result depends on values, by the op's fake implementation; None without one."""
    if not _has_fake(func):
        return None
    fakes = importlib.import_module("torch._subclasses.fake_tensor")
    shapes = importlib.import_module("torch.fx.experimental.symbolic_shapes")
    mode = fakes.FakeTensorMode(shape_env=shapes.ShapeEnv())
    tree = torch.utils._pytree
    try:
        given = tree.tree_map(
            lambda value: mode.from_tensor(value, static_shapes=True) if isinstance(value, _Tensor) else value,
            (args, kwargs),
        )
        with mode:
            results = tree.tree_leaves(func(*given[0], **given[1]))
    except (fakes.DynamicOutputShapeException, fakes.DataDependentOutputException):
        return True
    except Exception:  # whatever its author didn't foresee
        return None
    return any(not isinstance(size, int) for value in results for size in getattr(value, "shape", ()))


def _has_fake(func: Any) -> bool:
    name = func._schema.name
    registry = getattr(_part("simple_registry"), "singleton", None)
    entry = registry.find(name) if registry is not None else None
    by_python = getattr(getattr(entry, "fake_impl", None) or getattr(entry, "abstract_impl", None), "kernel", None)
    return by_python is not None or bool(torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "Meta"))


def _part(name: str) -> Any:
    """Return a module of torch's registry of custom ops; None in a torch without it."""
    try:
        return importlib.import_module(f"torch._library.{name}")
    except ImportError:
        return None
