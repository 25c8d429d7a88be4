"""Call a function after every optimizer step, once the program has imported torch."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

from syncscan.capture.imports import when_imported

Hook = Callable[[Any, Any, Any], None]


class OptimizerHook:
    """Calls `stepped(optimizer, arguments, keywords)` after each step of any optimizer, until it is removed.

    A compiled training step doesn't trace into it, and isn't recompiled because of it.
    """

    def __init__(self, stepped: Hook) -> None:
        self._stepped = stepped
        self._unregister: Callable[[], None] = lambda: None
        self._call_off = (
            when_imported("torch.optim.optimizer", lambda module: self._register(module, self._stepped)),
            when_imported("torch._dynamo", self._hide),
        )

    def remove(self) -> None:
        """Remove the hook, also if torch is yet to be imported."""
        for call_off in self._call_off:
            call_off()
        self._unregister()

    def _register(self, optimizers: ModuleType, hook: Hook) -> None:
        self._unregister = optimizers.register_optimizer_step_post_hook(hook).remove

    def _hide(self, dynamo: ModuleType) -> None:
        self._unregister()
        self._register(importlib.import_module("torch.optim.optimizer"), dynamo.disable(self._stepped))
