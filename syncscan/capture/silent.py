"""Calls that wait for the device without calling torch's callbacks go in; the time of each comes out.

The caching allocator frees memory, and Thrust returns sizes, below the place where the callbacks hang. For the few that
Python code reaches by name, the name leads past a clock while a window is open; the debug mode knows none of them.
"""

from __future__ import annotations

import functools
import importlib
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

ENTRY_POINTS = (
    ("torch._C", "_cuda_emptyCache"),
    ("torch._C", "_xpu_emptyCache"),
    ("torch._VF", "unique_dim"),
    ("torch.Tensor", "coalesce"),
)
"""Where a name lives, and the name: `empty_cache()`, `torch.unique(x, dim=…)`, `Tensor.coalesce()`."""


def watch(note: Callable[[int, int], None]) -> Callable[[], None]:
    """Have `note(begin, end)` called (epoch ns) after each call of an entry point that this torch has.

    Returns:
        A function that puts everything back.
    """
    undo = ExitStack()
    torch = importlib.import_module("torch")
    for path, name in ENTRY_POINTS:
        owner = functools.reduce(getattr, path.split(".")[1:], torch)
        original = getattr(owner, name, None)
        if original is not None:
            undo.callback(_restore, owner, name, vars(owner).get(name))
            setattr(owner, name, _noted(original, note))
    return undo.close


def _noted(original: Callable[..., Any], note: Callable[[int, int], None]) -> Callable[..., Any]:
    @functools.wraps(original)
    def noted(*arguments: Any, **keywords: Any) -> Any:
        begin = time.time_ns()
        try:
            return original(*arguments, **keywords)
        finally:
            note(begin, time.time_ns())

    return noted


def _restore(owner: Any, name: str, own: Any) -> None:
    """Put an owner's own attribute back, or let an inherited one shine through again."""
    if own is None:
        delattr(owner, name)
    else:
        setattr(owner, name, own)
