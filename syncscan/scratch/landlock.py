"""Forbid a thread, and all that it starts, to write outside of given folders: Linux's Landlock.

It can't be undone (kernel.org, Documentation/userspace-api/landlock.rst). Reading isn't restricted. But a thread ends:
in one of its own (`BoundThread`) a process runs what is bound, and goes on free.
"""

from __future__ import annotations

import contextvars
import ctypes
import functools
import os
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

from syncscan.scratch import landlock
from syncscan.scratch.kernel import called

_CREATE, _ADD, _RESTRICT = 444, 445, 446
"""Numbers of the system calls, which are the same on all machines that have them."""
_NEEDED = 3
"""The version that also forbids to truncate files, of Linux 6.2."""
_VERSION, _BENEATH, _NO_NEW_PRIVILEGES = 1, 1, 38
_WRITE_FILE, _REMOVE, _MAKE, _REFER, _TRUNCATE = 1 << 1, 0b11 << 4, 0b1111111 << 6, 1 << 13, 1 << 14
_TO_FILES = _WRITE_FILE | _TRUNCATE
"""Rights that a rule for something else than a folder may give."""


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32)]


def version() -> int:
    """Return the version of its interface here; 0 where the system has none."""
    if sys.platform != "linux":
        return 0
    try:
        return called("syscall", ctypes.c_long(_CREATE), None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))
    except (OSError, AttributeError):
        return 0


def holds() -> bool:
    """Return whether this system can forbid all writing to files."""
    return version() >= _NEEDED


def allow_writing_only(paths: Sequence[Path]) -> None:
    """Let this thread, and what it starts, write below these paths only; open files stay as they are."""
    handled = _WRITE_FILE | _REMOVE | _MAKE | _REFER | _TRUNCATE
    wanted = ctypes.c_uint64(handled)
    rules = _call(_CREATE, ctypes.byref(wanted), ctypes.c_size_t(8), 0)
    try:
        for path in paths:
            _allow(rules, path, handled)
        called("prctl", _NO_NEW_PRIVILEGES, ctypes.c_ulong(1), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0))
        _call(_RESTRICT, rules, 0)
    finally:
        os.close(rules)


def _allow(rules: int, path: Path, handled: int) -> None:
    if not path.exists():
        return
    folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        allowed = handled if path.is_dir() else handled & _TO_FILES
        rule = _Beneath(allowed, folder)
        _call(_ADD, rules, _BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(folder)


def _call(number: int, *arguments: object) -> int:
    return called("syscall", ctypes.c_long(number), *arguments)


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
