"""Let torch call Python functions at every synchronization, event record and event wait, and stop it again.

The callbacks are private to torch (`torch/cuda/_gpu_trace.py`, for its CUDA sanitizer). `torch._C._activate_gpu_trace`
starts them and nothing of torch stops them, though on they cost every allocation and event of the process about a
microsecond: a step took 11 to 57 % longer (H200, torch 2.11). What starts them is an exported bool of libc10
(`c10/core/impl/GPUTrace.h`, `haveState`), which is read at every such call: false stops them, true starts them again.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from syncscan.capture.torch_hooks import Function, replaced

SYMBOL = "_ZN3c104impl8GPUTrace9haveStateE"
"""`c10::impl::GPUTrace::haveState`, as compilers for Linux and macOS mangle it."""
LIBRARIES = ("libc10.so", "libc10.dylib")

REGISTRIES = {
    "stream": "StreamSynchronizationCallbacks",
    "device": "DeviceSynchronizationCallbacks",
    "event": "EventSynchronizationCallbacks",
    "record": "EventRecordCallbacks",
    "wait": "EventWaitCallbacks",
}
"""Kind of callback → name of the list in torch's module with its functions."""


def switch() -> ctypes.c_bool | None:
    """Return the flag by which torch decides whether to call back; None if this torch has none that can be found."""
    folder = Path(str(importlib.import_module("torch").__file__)).parent / "lib"
    for name in LIBRARIES:
        with contextlib.suppress(OSError, ValueError):
            return ctypes.c_bool.in_dll(ctypes.CDLL(str(folder / name)), SYMBOL)
    return None


def registries(vendor: str) -> dict[str, list[Callable[..., None]]] | None:
    """Return the lists of functions that torch calls for this kind of device, by kind of callback.

    The vendor is `cuda` (ROCm's too) or `xpu`, as torch names its module. None where this torch has no callbacks, or
    can't stop them: then nothing may be started.
    """
    try:
        module = importlib.import_module(f"torch.{vendor}._gpu_trace")
        lists = {what: getattr(module, name).callback_list for what, name in REGISTRIES.items()}
        importlib.import_module("torch")._C._activate_gpu_trace  # noqa: B018
    except (ImportError, AttributeError):
        return None
    return lists if switch() is not None else None


def start(lists: Mapping[str, list[Callable[..., None]]], functions: Mapping[str, Callable[..., None]]) -> Any:
    """Let torch call these functions; return one after which it calls only earlier callbacks, or none.

    `lists` are those of `registries`, whose keys `functions` has too. A device's synchronization has no argument, a
    stream's or an event's has its address, a record or wait has the event's and the stream's.
    """
    on = switch()
    if on is None:
        raise RuntimeError("torch's callbacks couldn't be stopped")
    before = on.value
    for what, function in functions.items():
        lists[what].append(function)
    # The first call of a process stores torch's interpreter, later ones do nothing: the bool alone decides then.
    importlib.import_module("torch")._C._activate_gpu_trace()
    on.value = True

    def stop() -> None:
        on.value = before
        for what, function in functions.items():
            with contextlib.suppress(ValueError):
                lists[what].remove(function)

    return stop


CALLS = (
    ("torch._C", "_cuda_emptyCache"),
    ("torch._C", "_xpu_emptyCache"),
    ("torch._VF", "unique_dim"),
    ("torch.Tensor", "coalesce"),
)
"""Module or class, and name: `empty_cache()`, `torch.unique(x, dim=…)`, `Tensor.coalesce()`."""


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
