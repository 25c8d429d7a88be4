"""Note calls that wait for the device by function name, where torch calls nobody back.

Explicit synchronizations, for a torch without callbacks: the debug mode, which then gives the lines of read-backs, is
silent about `torch.cuda.synchronize()` and `Event.synchronize()`. And calls that wait below the place where the
callbacks hang: the caching allocator frees memory, and Thrust returns sizes. The names lead past a note or a clock
while a recording is open, and back to torch afterwards.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from syncscan.capture.entry_points import Function, replaced

SYNCHRONIZATIONS = (
    ("torch._C", "_cuda_synchronize", "device"),
    ("torch._C", "_xpu_synchronize", "device"),
    ("torch._C", "_accelerator_synchronizeDevice", "device"),
    ("torch.cuda.Stream", "synchronize", "stream"),
    ("torch.xpu.Stream", "synchronize", "stream"),
    ("torch.cuda.Event", "synchronize", "event"),
    ("torch.xpu.Event", "synchronize", "event"),
)
"""Module or class, name, and awaited object. `torch.cuda.synchronize`, however imported, calls the first."""
CALLS = (
    ("torch._C", "_cuda_emptyCache"),
    ("torch._C", "_xpu_emptyCache"),
    ("torch._VF", "unique_dim"),
    ("torch.Tensor", "coalesce"),
)
"""Module or class, and name: `empty_cache()`, `torch.unique(x, dim=…)`, `Tensor.coalesce()`."""
_ADDRESSES = {"device": (), "stream": ("cuda_stream", "sycl_queue"), "event": ("cuda_event", "sycl_event")}
"""Attributes with the address of a stream or an event, by which kineto's traces and torch's callbacks name it."""


def watch_synchronizations(notes: Mapping[str, Callable[[int], None]]) -> Callable[[], None]:
    """Call `notes[kind](address)` before each synchronization of that kind; return a function that stops it."""
    return replaced((path, name, _noting(kind, notes[kind])) for path, name, kind in SYNCHRONIZATIONS)


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


def watch_calls(note: Callable[[int, int], None]) -> Callable[[], None]:
    """Call `note(begin, end)` (epoch ns) after each of `CALLS`; return a function that stops it."""

    def timed(original: Function) -> Function:
        def noted(*arguments: object, **keywords: object) -> object:
            begin = time.time_ns()
            try:
                return original(*arguments, **keywords)
            finally:
                note(begin, time.time_ns())

        return noted

    return replaced((path, name, timed) for path, name in CALLS)
