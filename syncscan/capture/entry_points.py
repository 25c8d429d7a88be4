"""Replace functions of torch that Python code calls, until they are restored."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from types import MethodType
from typing import Any

Function = Callable[..., Any]


class Method:
    """A replacement method for a class's instances, while the class itself still returns the original.

    Torch hands `torch.Tensor.to`, as it finds it on the class, to `__torch_function__`, and subclasses look it up in
    tables of theirs.
    """

    def __init__(self, original: Function, new: Function) -> None:
        self._original = original
        self._new = functools.wraps(original)(new)  # dynamo knows a tensor's methods by their names

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self._original if instance is None else MethodType(self._new, instance)


def replaced(places: Iterable[tuple[str, str, Callable[[Function], Function | Method]]]) -> Callable[[], None]:
    """Replace functions of torch; return a function that puts everything back.

    A place is where a name lives (a dotted path from a module on), the name, and what makes the new function out of the
    old one. Places that this torch doesn't have, or doesn't let anybody change, are passed over.
    """
    undo = ExitStack()
    for path, name, wrap in places:
        owner = _owner(path)
        original = getattr(owner, name, None)
        if original is None:
            continue
        previous = vars(owner).get(name)
        try:
            new = wrap(original)
            functools.update_wrapper(new, original)  # type: ignore[arg-type]
            setattr(owner, name, new)
        except TypeError:  # a class of C's that can't be changed
            continue
        undo.callback(_put_back, owner, name, new, previous)
    return undo.close


def _owner(path: str) -> Any:
    try:
        module, *names = path.split(".")
        return functools.reduce(getattr, names, importlib.import_module(module))
    except AttributeError:
        return None


def _put_back(owner: Any, name: str, new: Any, original: Any) -> None:
    """Restore an owner's attribute, or remove it where it was inherited.

    What somebody else has put there meanwhile stays: taking theirs away would bring back ours when they have gone.
    """
    if vars(owner).get(name) is not new:
        return
    if original is None:
        delattr(owner, name)
    else:
        setattr(owner, name, original)
