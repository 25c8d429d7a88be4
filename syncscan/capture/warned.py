"""One step under torch's sync debug mode goes in, the lines that it warned of come out, in the order of the warnings.

The way to lines for a torch without sync callbacks. It sees blocking copies and stream synchronises alone, and warns of
those in backward when `backward()` returns, from its line.
"""

from __future__ import annotations

import importlib
import threading
import traceback
import warnings
from collections.abc import Callable
from typing import Any

from syncscan.capture.lines import Frame
from syncscan.capture.table import Interned, trimmed

Json = dict[str, Any]

MESSAGE = "called a synchronizing CUDA operation"


class Warned:
    """The stacks of the warnings between `open` and `close`; the last such stretch counts."""

    def __init__(self) -> None:
        self.used = False
        self.stacks: list[tuple[int, list[Frame]]] = []
        self._guard: warnings.catch_warnings[Any] | None = None
        self._shown: Callable[..., None] = warnings.showwarning

    def open(self) -> None:
        """Turn the debug mode on, and forget what was seen before."""
        self.used, self.stacks = True, []
        self._guard = warnings.catch_warnings()
        self._guard.__enter__()
        warnings.filterwarnings("always", message=f".*{MESSAGE}")
        warnings.filterwarnings("ignore", message="Synchronization debug mode is a prototype")
        self._shown, warnings.showwarning = warnings.showwarning, self._show
        importlib.import_module("torch").cuda.set_sync_debug_mode("warn")

    def close(self) -> None:
        """Turn it off again, if it is on."""
        if self._guard is not None:
            importlib.import_module("torch").cuda.set_sync_debug_mode("default")
            self._guard.__exit__(None, None, None)
            self._guard = None

    def table(self) -> Json | None:
        """The warnings as capture's metadata stores them: `frames`, `stacks`, and `warned` rows [native_tid, stack].

        None where the mode was never on.
        """
        if not self.used:
            return None
        frames: Interned[Frame] = Interned()
        stacks: Interned[tuple[int, ...]] = Interned()
        rows = [[tid, stacks(tuple(frames(frame) for frame in stack))] for tid, stack in self.stacks]
        return {
            "source": "warnings",
            "frames": [list(frame) for frame in frames.values()],
            "stacks": [list(stack) for stack in stacks.values()],
            "warned": rows,
        }

    def _show(self, message: Any, *where: Any, **more: Any) -> None:
        if MESSAGE not in str(message):
            self._shown(message, *where, **more)
            return
        stack = [(frame.filename, frame.lineno or 0, frame.name) for frame in reversed(traceback.extract_stack())]
        self.stacks.append((threading.get_native_id(), trimmed(f for f in stack if f[0] != warnings.__file__)))
