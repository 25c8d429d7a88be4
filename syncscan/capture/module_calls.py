"""Call functions at each call of a module, unseen by torch's compiler, exporter and scripting.

A forward hook would be traced: it changes what `torch.compile` makes of the module, ends a program that asks for one
graph (`fullgraph=True`), and is copied, pickled and scripted with the module. `Module.__call__` hands a call to the
attribute that `Module.compile()` sets, where an instance has it. Dynamo calls the `forward` of a module without hooks
directly and asks for nothing else, so it neither traces the attribute nor guards it; `Module.__getstate__` leaves it
out of copies and files.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from syncscan.capture.unseen import unseen
from syncscan.patches import when_imported

ATTRIBUTE = "_compiled_call_impl"
"""Attribute that `Module.compile()` sets (torch/nn/modules/module.py, `_wrapped_call_impl`; torch 2.2 and later)."""
_HOOKS = "_forward_hooks _forward_pre_hooks _backward_hooks _backward_pre_hooks".split()
_OF_COMPILERS = ("torch.fx.", "torch.jit.", "torch.export.", "torch._export.", "torch._functorch.", "torch._inductor.")
"""Modules whose classes are what compilers make of a program's."""

_open: dict[int, ModuleCalls] = {}
_waiting: list[Callable[[], None]] = []
"""Function that stops waiting for dynamo's import, once anything was started."""


class ModuleCalls:
    """Calls `called()` before each call of a module, on its thread, from `start` until `close`.

    The module may be what `torch.compile` has made of it; its caller is two or more frames up from `called`. `returned`
    is called with what it has returned, or None where it raised.
    """

    def __init__(self, module: Any, called: Callable[[], None], returned: Callable[[Any], None] | None = None) -> None:
        self._module = _compiled_from(module)
        self._ours = _handing_on(self._module, called, returned)

    def start(self) -> bool:
        """Start calling; return False where it couldn't be unseen."""
        attributes, kind = vars(self._module), type(self._module)
        if kind.__module__.startswith(_OF_COMPILERS) or not hasattr(kind, ATTRIBUTE):
            return False
        if attributes.get(ATTRIBUTE) is not None or self.traced():
            return False
        if kind.__getstate__ is not importlib.import_module("torch.nn").Module.__getstate__:
            return False  # an LSTM's, say, would put it into copies and files
        attributes[ATTRIBUTE] = self._ours
        _open[id(self)] = self
        _watch_compiler_once()
        return True

    def close(self) -> None:
        _open.pop(id(self), None)
        if vars(self._module).get(ATTRIBUTE) is self._ours:
            del vars(self._module)[ATTRIBUTE]

    def traced(self) -> bool:
        """Return whether dynamo would trace the module's call: with hooks, its own or those of all modules."""
        everywhere = importlib.import_module("torch.nn.modules.module")
        own = any(vars(self._module).get(name) for name in _HOOKS)
        return own or bool(getattr(everywhere, "_has_any_global_hook", bool)())


def _compiled_from(module: Any) -> Any:
    """Return the module whose call `torch.compile` wrapped, for what it returned; any other module as it is."""
    return vars(module).get("_modules", {}).get("_orig_mod", module)


def _watch_compiler_once() -> None:
    unseen()
    if "torch._dynamo" in sys.modules:
        _watch_compiler(sys.modules["torch._dynamo"])
    elif not _waiting:
        _waiting.append(when_imported("torch._dynamo", _watch_compiler))


def _watch_compiler(dynamo: ModuleType) -> None:
    """Leave modules that have been given hooks meanwhile, each time before dynamo traces anything."""
    with contextlib.suppress(ImportError, AttributeError):  # before torch 2.4: dynamo never asks for the attribute
        handler = importlib.import_module("torch._dynamo.callback").callback_handler
        if _compiler_begins not in handler.start_callbacks:  # `torch._dynamo.reset()` empties it
            handler.register_start_callback(_compiler_begins)


def _compiler_begins(*about: Any) -> None:
    for calls in [calls for calls in tuple(_open.values()) if calls.traced()]:
        calls.close()


def _handing_on(module: Any, called: Callable[[], None], returned: Callable[[Any], None] | None) -> Callable[..., Any]:
    def hand_on(*arguments: Any, **keywords: Any) -> Any:
        called()
        return module._call_impl(*arguments, **keywords)

    def hand_on_and_back(*arguments: Any, **keywords: Any) -> Any:
        output = None
        called()
        try:
            output = module._call_impl(*arguments, **keywords)
        finally:
            returned(output)  # type: ignore[misc]  # not None, or the other is chosen
        return output

    return hand_on if returned is None else hand_on_and_back
