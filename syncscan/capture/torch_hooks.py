"""Hook into a running program without a trace: what is hooked is put back, undone in forked children, never compiled.

Functions of torch that Python calls are replaced until they are restored (`replaced`), calls of a module are told of
(`ModuleCalls`). A forked child, such as a loader's worker, inherits the process with all its hooks, and undoes them
before it does anything else (`in_child`). Torch's compiler passes over syncscan's own functions (`unseen`).
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from types import MethodType, ModuleType
from typing import Any

from syncscan.patches import when_imported

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


_actions: list[Callable[[], None]] = []


def in_child(action: Callable[[], None]) -> Callable[[], None]:
    """Call `action` in each child that is forked from now on; return a function that calls it off.

    What Python does at a fork can't be unregistered: a loop over nothing stays.
    """
    if hasattr(os, "register_at_fork") and not _registered:
        os.register_at_fork(after_in_child=_act)
        _registered.append(True)
    _actions.append(action)
    return lambda: _actions.remove(action) if action in _actions else None


_registered: list[bool] = []


def _act() -> None:
    """Call the actions, the last first; what they register in turn is for the child's own children."""
    actions, _actions[:] = _actions[::-1], []
    for action in actions:
        action()


_passed_over: set[str] = set()
"""Packages that dynamo passes over, now or once it is imported."""


def unseen(package: str = "syncscan.capture") -> None:
    """Let dynamo pass over the capture's functions and those of one more package, now or once the program imports it.

    Dynamo compiles every Python function that starts on a thread inside a compiled one, where a graph broke: a handler
    of a signal, a callback of the garbage collector or of `sys.monitoring`, a filter of warnings too. It skips the
    files of a list (`torch/_dynamo/trace_rules.py`), and what runs in the user's process belongs there.
    `syncscan/allow_blocks.py` doesn't: `with syncscan.allow(…)` may stand in a compiled function, and breaks no graph.
    """
    for name in {"syncscan.capture", package} - _passed_over:
        _passed_over.add(name)
        when_imported("torch._dynamo", functools.partial(_pass_over, name))


def _pass_over(package: str, dynamo: ModuleType) -> None:
    with contextlib.suppress(Exception):  # a torch without such a list; whatever it is, the program's import goes on
        importlib.import_module("torch._dynamo.trace_rules").add(package)


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

    A forward hook would be traced: it changes what `torch.compile` makes of the module, ends a program that asks for
    one graph (`fullgraph=True`), and is copied, pickled and scripted with the module. `Module.__call__` hands a call to
    the attribute that `Module.compile()` sets, where an instance has it. Dynamo calls the `forward` of a module without
    hooks directly and asks for nothing else, so it neither traces the attribute nor guards it; `Module.__getstate__`
    leaves it out of copies and files.

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
