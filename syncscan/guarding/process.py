"""Syncs of the whole process go in; each comes out at the guards of the thread that made it, while any guard is armed.

Torch tells of a blocking copy or a stream synchronise by a warning, in the thread that made it, once its debug mode is
on; that costs nothing where nothing waits. What the mode is silent about is reached by name: device and event
synchronises (`capture.explicit`), calls that wait below torch (`capture.silent`), non-blocking copies (`copies`). All
of it is switched on with the first guard and off with the last.
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from types import FrameType
from typing import Any, Protocol

from syncscan.capture import explicit, fork, silent
from syncscan.capture.entry_points import Function, Method, replaced
from syncscan.guarding import copies, filters, scopes

WARNING = "called a synchronizing"
"""How it begins what it says: "… CUDA operation" (c10/cuda/CUDAFunctions.cpp, the same from torch 1.10 to 2.14)."""
PROTOTYPE = "Synchronization debug mode is a prototype"
"""What torch says the first time that the mode is set in a process."""

_ENGINE = frozenset({"_engine_run_backward", "backward", "grad"})
"""Functions of torch's that wait in C for the autograd engine: the first since torch 2.1, the others before."""

EVERY_THREAD = 0
"""Stands for a thread's number where a guard is for all of them."""


class Guarding(Protocol):
    """What is told of syncs."""

    def saw(self, kind: str, frame: FrameType | None, thread: int) -> None:
        """Take note of a sync.

        Args:
            kind: "stream" (a blocking copy or a stream synchronise), "device", "event", "copy" (a non-blocking one that
                holds its thread) or "call" (one that waits below torch).
            frame: the frame that made it; None where the thread has none.
            thread: whose it is (`threading.get_ident`).
        """


class _Thread(threading.local):
    telling = False
    setting = False


_lock = threading.RLock()
_armed: dict[int, list[Guarding]] = {}
_undo = ExitStack()
_thread = _Thread()
_users_mode = 0
"""The debug mode that the program has chosen, or chooses while ours is on; it holds again afterwards."""


def arm(guard: Guarding, thread: int) -> None:
    """Tell a guard of the syncs of one thread, or of `EVERY_THREAD`, from now on."""
    with _lock:
        if not _armed:
            _switch_on()
        _armed[thread] = [*_armed.get(thread, ()), guard]


def disarm(guard: Guarding, thread: int) -> None:
    """Tell it of none any more; with the last guard everything is put back."""
    with _lock:
        left = [other for other in _armed.get(thread, ()) if other is not guard]
        if left:
            _armed[thread] = left
        else:
            _armed.pop(thread, None)
        if not _armed:
            _undo.close()


def tell(kind: str, frame: FrameType | None) -> None:
    """A sync was made by the calling thread, at this frame or in what it called."""
    if _thread.telling:  # by a guard's own callback or writer
        return
    thread = threading.get_ident()
    _thread.telling = True
    try:
        for owner in _waiting_in_backward() if _in_backward(thread) else [EVERY_THREAD, thread]:
            for guard in _armed.get(owner, ()):
                guard.saw(kind, frame, owner or thread)
    finally:
        _thread.telling = False


def _in_backward(thread: int) -> bool:
    """Whether the thread is one of the autograd engine's: what it does is done for who called `backward()`."""
    if thread in _armed or sys.modules.get("torch") is None:
        return False
    return bool(importlib.import_module("torch")._C._current_graph_task_id() != -1)


def _waiting_in_backward() -> list[int]:
    """The guarded threads that stand in `backward()` now."""
    innermost = sys._current_frames()
    inside = [owner for owner in _armed if owner in innermost and innermost[owner].f_code.co_name in _ENGINE]
    return [EVERY_THREAD, *inside]


def _switch_on() -> None:
    try:
        _undo.callback(filters.put_first(_Warnings()))
        _undo.callback(replaced(_by_name()))
        _undo.callback(copies.watch(lambda: tell("copy", sys._getframe(2))))
        _undo.callback(scopes.watch())
        _debug_mode_on()
        _undo.callback(fork.in_child(_in_child))
    except BaseException:
        _undo.close()
        raise


class _Warnings:
    """Stands in a filter of warnings, and takes the debug mode's for itself."""

    def match(self, text: str) -> bool:
        """Tell the guards of a sync; True where nobody else is to hear of this warning."""
        if WARNING not in text:
            return _thread.setting and PROTOTYPE in text
        tell("stream", _calling(sys._getframe(1)))
        if _users_mode == 2:
            raise RuntimeError("called a synchronizing CUDA operation")
        return _users_mode == 0


def _calling(frame: FrameType | None) -> FrameType | None:
    """The frame that warns: CPython's own `warn` has none, the one in Python has some."""
    while frame is not None and frame.f_globals.get("__name__") in ("warnings", "_py_warnings"):
        frame = frame.f_back
    return frame


def _by_name() -> list[tuple[str, str, Callable[[Function], Function | Method]]]:
    """The names of torch that wait without a word from the debug mode; of a stream of CUDA's it tells itself."""
    asked: list[tuple[str, str, Callable[[Function], Function | Method]]]
    asked = [(path, name, _telling(kind)) for path, name, kind in explicit.ENTRY_POINTS if path != "torch.cuda.Stream"]
    return asked + [(path, name, _telling("call", path == "torch.Tensor")) for path, name in silent.ENTRY_POINTS]


def _telling(kind: str, on_tensors: bool = False) -> Callable[[Function], Function | Method]:
    def wrap(original: Function) -> Function | Method:
        def called(*arguments: Any, **keywords: Any) -> Any:
            if kind != "call" or _waits(arguments):
                tell(kind, sys._getframe(1))
            return original(*arguments, **keywords)

        return Method(original, called) if on_tensors else called

    return wrap


def _waits(arguments: tuple[Any, ...]) -> bool:
    """Whether one of `silent`'s calls waits: of a tensor only on a device, and where it isn't coalesced already."""
    tensor = arguments[0] if arguments else None
    if tensor is None or not hasattr(tensor, "is_cpu"):
        return True
    return not (tensor.is_cpu or (tensor.is_sparse and tensor.is_coalesced()))


def _debug_mode_on() -> None:
    """Set torch's debug mode to "warn"; what the program sets it to meanwhile holds when the last guard has gone."""
    global _users_mode
    inner = importlib.import_module("torch")._C
    change = getattr(inner, "_cuda_set_sync_debug_mode", None)
    if change is None:
        return
    _users_mode = inner._cuda_get_sync_debug_mode()
    _undo.callback(lambda: _quietly(change, _users_mode))
    _quietly(change, 1)
    _undo.callback(
        replaced(
            [
                ("torch._C", "_cuda_set_sync_debug_mode", _choosing),
                ("torch._C", "_cuda_get_sync_debug_mode", lambda _: lambda: _users_mode),
            ]
        )
    )


def _choosing(original: Function) -> Function:
    def choose(mode: Any) -> None:
        global _users_mode
        if mode not in (0, 1, 2):
            original(mode)  # raises what torch raises
        else:
            _users_mode = mode

    return choose


def _quietly(change: Function, mode: int) -> None:
    _thread.setting = True
    try:
        change(mode)
    finally:
        _thread.setting = False


def _in_child() -> None:
    """In a forked child: the guards are the parent's."""
    global _lock
    _lock = threading.RLock()
    _armed.clear()
    _undo.close()
