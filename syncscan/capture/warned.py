"""Record the lines that torch's sync debug mode warns about in one step, in order.

This yields lines for a torch without sync callbacks. The mode covers only blocking copies and stream synchronizations,
and warns about those in backward when `backward()` returns, from its line.
"""

from __future__ import annotations

import importlib
import threading
import traceback
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from syncscan.capture.lines import Frame
from syncscan.capture.lines_table import trimmed

MESSAGE = "called a synchronizing CUDA operation"


class Warned:
    """Stacks of the warnings between `open` and `close`, each with its native thread; only the last time counts."""

    def __init__(self) -> None:
        self.stacks: list[tuple[int, list[Frame]]] = []
        self._undo = ExitStack()

    def open(self) -> None:
        """Turn the debug mode on, and discard earlier warnings."""
        self.stacks = []
        cuda = importlib.import_module("torch").cuda
        self._undo.enter_context(warnings.catch_warnings())
        warnings.filterwarnings("always", message=f".*{MESSAGE}")
        warnings.filterwarnings("ignore", message="Synchronization debug mode is a prototype")
        warnings.showwarning = self._passing_on(warnings.showwarning)
        self._undo.callback(cuda.set_sync_debug_mode, cuda.get_sync_debug_mode())
        cuda.set_sync_debug_mode("warn")

    def close(self) -> None:
        """Restore the mode and the warnings, if they were changed."""
        self._undo.close()

    def _passing_on(self, shown: Callable[..., None]) -> Callable[..., None]:
        def show(message: Any, *where: Any, **more: Any) -> None:
            if MESSAGE not in str(message):
                shown(message, *where, **more)
                return
            stack = [(frame.filename, frame.lineno or 0, frame.name) for frame in reversed(traceback.extract_stack())]
            self.stacks.append((threading.get_native_id(), trimmed(f for f in stack if f[0] != warnings.__file__)))

        return show
