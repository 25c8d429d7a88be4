"""Call functions in a thread that may only write below some folders: it can't get free again, but it ends."""

from __future__ import annotations

import contextvars
import ctypes
import functools
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

from syncscan.scratch import landlock

Result = TypeVar("Result")
GRACE_S = 2.0
"""Seconds for a function to end that is interrupted; one that hangs in C isn't waited for any longer."""
AWAKE_S = 0.2
"""Seconds between two looks for a signal: one that comes just before a thread blocks on a lock doesn't wake it."""


class BoundThread:
    """Calls functions one after the other, in a thread that may only write below `paths`."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths
        self._begin()

    def call(self, function: Callable[[], Result]) -> Result:
        """Return what a function returns in the thread, or raise what it raises.

        What the waiting thread meets meanwhile, such as Ctrl-C, interrupts the function, and is raised from there.
        """
        __tracebackhide__ = True  # for pytest
        done: Future[Result] = Future()
        try:
            self._orders.put((function, done))
            while not wait([done], AWAKE_S).done:
                pass
        except BaseException as stop:
            met = self._interrupted(done)
            raise stop.with_traceback(met.__traceback__ if met is not None else stop.__traceback__) from None
        if (error := done.exception()) is not None:
            raise error
        return done.result()

    def end(self) -> None:
        self._orders.put(None)

    def _begin(self) -> None:
        self._orders: SimpleQueue[Any] = SimpleQueue()
        follow = functools.partial(contextvars.copy_context().run, _follow, self._orders)
        self._thread = threading.Thread(target=follow, name="syncscan-dry-run", daemon=True)
        self._thread.start()
        self.call(lambda: landlock.allow_writing_only(self._paths))

    def _interrupted(self, done: Future[Any]) -> BaseException | None:
        """Interrupt the function that runs, and return what it ended with; begin anew if it doesn't end."""
        number = ctypes.c_ulong(self._thread.ident or 0)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(number, ctypes.py_object(KeyboardInterrupt))
        if wait([done], GRACE_S).done:
            return done.exception()
        self.end()
        self._begin()
        return None


def _follow(orders: SimpleQueue[Any]) -> None:
    __tracebackhide__ = True
    while (order := orders.get()) is not None:
        function, done = order
        try:
            done.set_result(function())
        except BaseException as error:
            done.set_exception(error)
        del function, done, order
