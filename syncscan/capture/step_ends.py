"""Find moments at which a step may end, given open `record_function` scopes.

The profiler marks steps with slices of their own, and slices of one thread must nest. An optimizer's step is known to
be over inside torch's own `Optimizer.step` scope, often inside one of the user's too: a step that ended there would
cross both. So its end waits until the scopes that were opened during the step are closed again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class ScopeWatch:
    """Counts the open scopes of the training thread, and calls `action` once they allow a step to end.

    While it watches, the class `record_function` has other `__enter__` and `__exit__` methods.
    """

    def __init__(self, action: Callable[[], None]) -> None:
        self.action = action
        self._open = 0
        self._lowest = 0
        self._due = False
        self.watching = False
        self._thread = threading.get_ident()
        self._restore: Callable[[], None] = lambda: None

    def watch(self, scope: Any) -> None:
        """Watch the class `torch.autograd.profiler.record_function` on this thread, unless that is done."""
        if self.watching:
            return
        self.watching, self._thread = True, threading.get_ident()
        self._open = self._lowest = 0
        self._due = False
        enter, leave = scope.__enter__, scope.__exit__

        def entered(opened: Any) -> Any:
            result = enter(opened)
            if threading.get_ident() == self._thread:
                self._open += 1
            return result

        def left(opened: Any, *error: Any) -> Any:
            result = leave(opened, *error)
            if threading.get_ident() == self._thread:
                self._close()
            return result

        def restore() -> None:
            scope.__enter__, scope.__exit__ = enter, leave
            self.watching = False

        scope.__enter__, scope.__exit__ = entered, left
        self._restore = restore

    def unwatch(self) -> None:
        """Restore the class's own methods."""
        restore, self._restore = self._restore, lambda: None
        restore()

    def end_step(self) -> None:
        """Request the end of a step: granted at once unless a scope opened in it is still open.

        A request that is still open when the next comes is granted first: some scope is never closed.
        """
        if self._due or self._open <= self._lowest or threading.get_ident() != self._thread:
            self._grant()
        else:
            self._due = True

    def _close(self) -> None:
        self._open -= 1
        self._lowest = min(self._lowest, self._open)
        if self._due and self._open <= self._lowest:
            self._grant()

    def _grant(self) -> None:
        self._due = False
        try:
            self.action()
        finally:
            self._lowest = self._open
