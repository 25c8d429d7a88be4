"""Track the `record_function` scopes that each thread has open."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from syncscan.capture.torch_hooks import Function, replaced

_PLACE = "torch.autograd.profiler.record_function"
_names: dict[int, list[str]] = {}


def of(thread: int) -> tuple[str, ...]:
    """Return the scopes that a thread has open, outermost first, of those entered while watched."""
    return tuple(_names.get(thread, ()))


def watch() -> Callable[[], None]:
    """Track scopes from now on."""
    put_back = replaced([(_PLACE, "__enter__", _entering), (_PLACE, "__exit__", _leaving)])

    def unwatch() -> None:
        put_back()
        _names.clear()

    return unwatch


def _entering(original: Function) -> Function:
    def entered(scope: Any) -> Any:
        _names.setdefault(threading.get_ident(), []).append(scope.name)
        return original(scope)

    return entered


def _leaving(original: Function) -> Function:
    def left(scope: Any, *error: Any) -> Any:
        names = _names.get(threading.get_ident())
        if names and names[-1] == scope.name:
            names.pop()
        return original(scope, *error)

    return left
