"""Time calls that wait for the device below the place where torch's callbacks hang, by function name.

The caching allocator frees memory, and Thrust returns sizes. The names lead past a clock while a recording is open, and
back to torch afterwards.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from syncscan.capture.entry_points import Function, replaced

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
