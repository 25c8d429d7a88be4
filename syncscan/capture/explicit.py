"""Note explicit synchronizations by function name, for a torch without callbacks.

The debug mode, which then gives the lines of read-backs, is silent about `torch.cuda.synchronize()` and
`Event.synchronize()`. Their names lead past a note while a recording is open, and back to torch afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from syncscan.capture.entry_points import Function, replaced

ENTRY_POINTS = (
    ("torch._C", "_cuda_synchronize", "device"),
    ("torch._C", "_xpu_synchronize", "device"),
    ("torch._C", "_accelerator_synchronizeDevice", "device"),
    ("torch.cuda.Stream", "synchronize", "stream"),
    ("torch.xpu.Stream", "synchronize", "stream"),
    ("torch.cuda.Event", "synchronize", "event"),
    ("torch.xpu.Event", "synchronize", "event"),
)
"""Module or class, name, and awaited object. `torch.cuda.synchronize`, however imported, calls the first."""

_ADDRESSES = {"device": (), "stream": ("cuda_stream", "sycl_queue"), "event": ("cuda_event", "sycl_event")}
"""Attributes with the address of a stream or an event, by which kineto's traces and torch's callbacks name it."""


def watch(notes: dict[str, Callable[[int], None]]) -> Callable[[], None]:
    """Call `notes[kind](address)` before each synchronization of that kind ("device", "stream", "event").

    Returns:
        A function that puts everything back.
    """
    return replaced((path, name, _noting(kind, notes[kind])) for path, name, kind in ENTRY_POINTS)


def _noting(kind: str, note: Callable[[int], None]) -> Callable[[Function], Function]:
    def wrap(original: Function) -> Function:
        # The note looks two frames up for the caller, as under torch's own callbacks: it must be called from here.
        def noted(*arguments: Any, **keywords: Any) -> Any:
            note(_address(kind, arguments))
            return original(*arguments, **keywords)

        return noted

    return wrap


def _address(kind: str, arguments: tuple[Any, ...]) -> int:
    owner = arguments[0] if arguments else None
    return next((int(getattr(owner, name)) for name in _ADDRESSES[kind] if hasattr(owner, name)), 0)
