"""Delay each non-blocking copy of a program on its device, so that what relies on winning a race loses it.

Work that only spins is launched on the current stream before the copy: the host goes on as before, and reads or fills
the memory before the copy has begun, unless it waits for it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from syncscan.capture.entry_points import Function, Method, replaced

CYCLES = 10_000_000
"""Clock cycles of the device before each copy: 5 ms at 2 GHz, long beside what a host does between copy and read."""


def delay_copies() -> Callable[[], None]:
    """Delay the copies that torch is asked for from now on; return a function that puts everything back."""
    return replaced(("torch.Tensor", name, _delayed) for name in ("to", "cuda", "copy_"))


def _delayed(original: Function) -> Method:
    def copied(tensor: Any, *arguments: Any, **keywords: Any) -> Any:
        if keywords.get("non_blocking") or any(given is True for given in arguments[1:]):
            _spin()
        return original(tensor, *arguments, **keywords)

    return Method(original, copied)


def _spin() -> None:
    """Keep the current stream busy, if the device is in use and no graph is captured."""
    cuda = importlib.import_module("torch").cuda
    if cuda.is_initialized() and not cuda.is_current_stream_capturing():
        cuda._sleep(CYCLES)
