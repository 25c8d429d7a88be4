"""Record runs of Python's garbage collector: begin, end, thread and generation of the long ones.

A collection stops the thread that it falls on, and a trace shows nothing of it. Python calls back at each one's begin
and end; the callback is there while steps are recorded and at no other time.
"""

from __future__ import annotations

import contextlib
import gc
import threading
import time
from typing import Any

from syncscan.capture.unseen import unseen

SHORT_NS = 5_000
"""Shorter collections are dropped: one of the youngest generation takes 1 to 20 µs and occurs several times per step.
"""

Collection = tuple[int, int, int, int]
"""Begin and end (epoch ns), native thread, generation."""


class Garbage:
    """Collections between `open` and `close`; both can be called at any time and more than once."""

    def __init__(self) -> None:
        self.collections: list[Collection] = []
        self._begun = 0
        self._open = False

    def open(self) -> None:
        if not self._open:
            self._open, self._begun = True, 0
            unseen()
            gc.callbacks.append(self._call)

    def close(self) -> None:
        self._open = False
        with contextlib.suppress(ValueError):  # the program may have emptied the list
            gc.callbacks.remove(self._call)

    def _call(self, phase: str, info: dict[str, Any]) -> None:
        """Note a begin, or store a finished collection; collections never nest."""
        now = time.time_ns()
        if phase == "start":
            self._begun = now
            return
        begun, self._begun = self._begun, 0
        if begun and now - begun >= SHORT_NS:
            self.collections.append((begun, now, threading.get_native_id(), int(info.get("generation", 0))))
