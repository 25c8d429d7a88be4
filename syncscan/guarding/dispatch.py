"""Pass each sync of the process to the guards of the thread that made it, while any guard is armed.

Torch's debug mode warns of blocking copies and stream synchronizations, in the thread that makes them; that costs
nothing where nothing waits. Others are hooked by name: device and event synchronizations and calls that wait below
torch (`capture.sync_lines`), non-blocking copies (`blocking_copies`). The first guard switches all of it on, the
last one off.

A filter of Python's warnings is asked before a warning is shown or dropped, with the frame that warns on the stack, and
may raise. But programs put others in front of it (`simplefilter("ignore")`), and `catch_warnings` works on a copy of
the list: `Filters` keeps one first until it is removed, whatever happens to the others.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from types import FrameType
from typing import Any, Protocol, SupportsIndex, overload

from syncscan.capture import torch_hooks
from syncscan.capture.stack_frames import outward
from syncscan.capture.sync_lines import CALLS
from syncscan.capture.torch_hooks import Function, Method, replaced, unseen
from syncscan.guarding import blocking_copies
from syncscan.guarding.guarded_sync import in_graphs

SYNCHRONIZATIONS = (
    ("torch._C", "_cuda_synchronize", "device"),
    ("torch._C", "_xpu_synchronize", "device"),
    ("torch._C", "_accelerator_synchronizeDevice", "device"),
    ("torch.xpu.Stream", "synchronize", "stream"),
    ("torch.cuda.Event", "synchronize", "event"),
    ("torch.xpu.Event", "synchronize", "event"),
)
"""Module or class, name, and awaited object. `torch.cuda.synchronize`, however imported, calls the first."""
WARNING = "called a synchronizing"
"""Prefix of torch's warning "… CUDA operation" (c10/cuda/CUDAFunctions.cpp, unchanged from torch 1.10 to 2.14)."""
PROTOTYPE = "Synchronization debug mode is a prototype"
"""Torch's warning when the mode is first set in a process."""

_ENGINE = frozenset({"_engine_run_backward", "backward", "grad"})
"""Functions of torch that wait in C for the autograd engine: the first since torch 2.1, the others before."""

EVERY_THREAD = 0
"""Thread number of guards for all threads."""


class Guarding(Protocol):
    """Receiver of syncs."""

    def saw(self, kind: str, frame: FrameType | None, thread: int) -> None:
        """Record a sync.

        Args:
            kind: "stream" (a blocking copy or stream synchronization), "device", "event", "copy" (a non-blocking one
                that blocks its thread) or "call" (one that waits below torch).
            frame: the frame that made it; None where the thread has none.
            thread: the thread whose it is (`threading.get_ident`).
        """


class _ThreadFlags(threading.local):
    telling = False
    setting = False


_lock = threading.RLock()
_armed: dict[int, list[Guarding]] = {}
_undo = ExitStack()
_thread = _ThreadFlags()
_users_mode = 0
"""The debug mode that the program has chosen, also while a guard's is on; it is restored afterwards."""


def arm(guard: Guarding, thread: int) -> None:
    """Pass the syncs of one thread, or of `EVERY_THREAD`, to a guard from now on."""
    with _lock:
        if not _armed:
            _switch_on()
        _armed[thread] = [*_armed.get(thread, ()), guard]


def disarm(guard: Guarding, thread: int) -> None:
    """Stop passing syncs to a guard; with the last guard everything is restored."""
    with _lock:
        left = [other for other in _armed.get(thread, ()) if other is not guard]
        if left:
            _armed[thread] = left
        else:
            _armed.pop(thread, None)
        if not _armed:
            _undo.close()


def tell(kind: str, frame: FrameType | None) -> None:
    """Pass a sync of the calling thread, at this frame or in its callees, to the guards."""
    _to_guards(lambda guard, thread: guard.saw(kind, frame, thread))


def _to_guards(pass_on: Callable[[Guarding, int], None]) -> None:
    if _thread.telling:  # by a guard's own callback or writer
        return
    thread = threading.get_ident()
    _thread.telling = True
    try:
        for owner in _waiting_in_backward() if _in_backward(thread) else [EVERY_THREAD, thread]:
            for guard in _armed.get(owner, ()):
                pass_on(guard, owner or thread)
    finally:
        _thread.telling = False


def _in_backward(thread: int) -> bool:
    """Return whether the thread belongs to the autograd engine, and works for a caller of `backward()`."""
    import torch

    if thread in _armed or sys.modules.get("torch") is None:
        return False
    return bool(torch._C._current_graph_task_id() != -1)


def _waiting_in_backward() -> list[int]:
    """Return the guarded threads that are in `backward()` now."""
    innermost = sys._current_frames()
    inside = [owner for owner in _armed if owner in innermost and innermost[owner].f_code.co_name in _ENGINE]
    return [EVERY_THREAD, *inside]


def _copy_blocked() -> None:
    tell("copy", sys._getframe(2))


def _switch_on() -> None:
    unseen("syncscan.guarding")
    try:
        _undo.callback(put_first(_Warnings()))
        _undo.callback(replaced(_by_name()))
        _undo.callback(blocking_copies.watch(_copy_blocked))
        _undo.callback(watch_scopes())
        _debug_mode_on()
        _undo.callback(torch_hooks.in_child(_in_child))
    except BaseException:
        _undo.close()
        raise


class _Warnings:
    """A message of a warnings filter that intercepts the debug mode's warnings."""

    def match(self, text: str) -> bool:
        """Pass a sync to the guards; return whether to hide this warning from others."""
        if WARNING not in text:
            return _thread.setting and PROTOTYPE in text
        frame = _calling(sys._getframe(1))
        tell("stream", frame)
        if _users_mode == 2 and not in_graphs(f.f_code.co_filename for f in outward(frame)):
            raise RuntimeError("called a synchronizing CUDA operation")
        return _users_mode != 1


def _calling(frame: FrameType | None) -> FrameType | None:
    """Return the frame that warns: CPython's C `warn` has no frame, the Python one has some."""
    return next((f for f in outward(frame) if f.f_globals.get("__name__") not in ("warnings", "_py_warnings")), None)


def _by_name() -> list[tuple[str, str, Callable[[Function], Function | Method]]]:
    """Return names of torch that wait without a debug mode warning; it does warn for CUDA streams."""
    places: list[tuple[str, str, Callable[[Function], Function | Method]]]
    places = [(path, name, _telling(kind)) for path, name, kind in SYNCHRONIZATIONS]
    return places + [(path, name, _telling("call", path == "torch.Tensor")) for path, name in CALLS]


def _telling(kind: str, on_tensors: bool = False) -> Callable[[Function], Function | Method]:
    def wrap(original: Function) -> Function | Method:
        def called(*arguments: Any, **keywords: Any) -> Any:
            if kind != "call" or _waits(arguments):
                tell(kind, sys._getframe(1))
            return original(*arguments, **keywords)

        return Method(original, called) if on_tensors else called

    return wrap


def _waits(arguments: tuple[Any, ...]) -> bool:
    """Return whether one of `CALLS` waits: for a tensor only on a device, and if it isn't coalesced already."""
    tensor = arguments[0] if arguments else None
    if tensor is None or not hasattr(tensor, "is_cpu"):
        return True
    return not (tensor.is_cpu or (tensor.is_sparse and tensor.is_coalesced()))


def _debug_mode_on() -> None:
    """Set torch's debug mode to "warn"; the mode that the program sets meanwhile applies after the last guard."""
    import torch

    global _users_mode
    inner = torch._C
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
    """Disable the guards in a forked child: they belong to the parent."""
    global _lock
    _lock = threading.RLock()
    _armed.clear()
    _undo.close()


_PLACE = "torch.autograd.profiler.record_function"
_names: dict[int, list[str]] = {}


def scopes_of(thread: int) -> tuple[str, ...]:
    """Return the scopes that a thread has open, outermost first, of those entered while watched."""
    return tuple(_names.get(thread, ()))


def watch_scopes() -> Callable[[], None]:
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


Item = tuple[Any, ...]
"""Action, message, category, module, line, as in `warnings.filters`."""


class Message(Protocol):
    """Replacement for a filter's message: CPython calls this method, which compiled patterns have too."""

    def match(self, text: str) -> bool:
        """Return whether this filter decides about a warning with this text."""


class Filters(list[Item]):
    """A list whose first item stays the first, also in the copies that `catch_warnings` makes of it."""

    def __init__(self, first: Item, others: Iterable[Item]) -> None:
        super().__init__([first, *(item for item in others if item is not first)])
        self.first: Item | None = first

    def insert(self, at: SupportsIndex, item: Item) -> None:
        super().insert(max(1, at.__index__()) if self.first is not None and at.__index__() >= 0 else at, item)

    @overload
    def __getitem__(self, at: SupportsIndex) -> Item: ...
    @overload
    def __getitem__(self, at: slice) -> list[Item]: ...
    def __getitem__(self, at: SupportsIndex | slice) -> Item | list[Item]:
        entry = super().__getitem__(at)
        return Filters(self.first, entry) if isinstance(at, slice) and self.first is not None else entry

    def __setitem__(self, at: Any, value: Any) -> None:
        super().__setitem__(at, value)
        self._keep()

    def clear(self) -> None:
        super().clear()
        self._keep()

    def release(self) -> None:
        """Become an ordinary list, without the first item."""
        first, self.first = self.first, None
        self[:] = [item for item in self if item is not first]

    def _keep(self) -> None:
        if self.first is not None:
            others = [item for item in self if item is not self.first]
            super().__setitem__(slice(None), [self.first, *others])


def put_first(message: Message) -> Callable[[], None]:
    """Call `message.match(text)` with each warning's text before other filters.

    What it says yes to is shown nowhere; what it raises comes up from the line that warns.

    Returns:
        A function that takes it out again and leaves what the program did to the filters meanwhile.
    """
    before: Any = warnings.filters
    ours = Filters(("ignore", message, Warning, None, 0), before)
    warnings.filters = ours
    _forget_shown()

    def take_out() -> None:
        now: Any = warnings.filters
        if isinstance(now, Filters):
            now.release()
        ours.release()
        if now is ours:
            before[:] = ours
            warnings.filters = before

    return take_out


def _forget_shown() -> None:
    """Make Python query the filters again for warnings that it has shown before, in the public way."""
    with warnings.catch_warnings():
        pass
