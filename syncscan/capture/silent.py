"""Time calls that wait for the device without torch's callbacks.

The caching allocator frees memory, and Thrust returns sizes, below the place where the callbacks hang. For the few that
Python code reaches by name, the name leads past a clock while a recording is open; the debug mode knows none of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from syncscan.capture.entry_points import Function, replaced

ENTRY_POINTS = (
    ("torch._C", "_cuda_emptyCache"),
    ("torch._C", "_xpu_emptyCache"),
    ("torch._VF", "unique_dim"),
    ("torch.Tensor", "coalesce"),
)
"""Module or class, and name: `empty_cache()`, `torch.unique(x, dim=…)`, `Tensor.coalesce()`."""


def watch(note: Callable[[int, int], None]) -> Callable[[], None]:
    """Call `note(begin, end)` (epoch ns) after each call of an entry point that this torch has.

    Returns:
        A function that puts everything back.
    """

    def timed(original: Function) -> Function:
        def noted(*arguments: object, **keywords: object) -> object:
            begin = time.time_ns()
            try:
                return original(*arguments, **keywords)
            finally:
                note(begin, time.time_ns())

        return noted

    return replaced((path, name, timed) for path, name in ENTRY_POINTS)
