"""Scratch copies of the files of one test that runs dry."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from multiprocessing import util
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from syncscan.scratch import Scratch, landlock
from syncscan.scratch.bound_thread import BoundThread

Result = TypeVar("Result")


class TestFiles:
    """Redirects what one test writes to scratch copies, until `close`.

    Where the system can forbid to write anywhere else, the test's parts run in a thread of their own to which it is
    forbidden: pytest's process goes on, and a process has no way back.

    Args:
        passed: folders that the test shares with others, such as pytest's for temporary files.
    """

    __test__ = False
    is_running: ClassVar[bool] = False
    """Whether a part of any test is called now."""

    def __init__(self, passed: Sequence[Path]) -> None:
        self._stack = ExitStack()
        scratch = self._stack.enter_context(Scratch.made())
        sockets = Path(util.get_temp_dir()).resolve()  # of the process, until it ends
        self._redirection = self._stack.enter_context(scratch.entered([*passed, sockets]))
        self._redirection.tree.paused = True
        self._stack.callback(_stop_forkserver, _forkserver())
        self._thread: BoundThread | None = None
        if landlock.holds():
            self._thread = BoundThread(self._redirection.writable)
            self._stack.callback(self._thread.end)
            torch = importlib.import_module("torch")
            grad = torch.is_grad_enabled()  # each thread has its own
            self._thread.call(lambda: torch.set_grad_enabled(grad))

    def call(self, part: Callable[[], Result]) -> Result:
        """Call a part of the test, all of whose writing is redirected or refused."""
        __tracebackhide__ = True
        self._redirection.tree.paused = False
        TestFiles.is_running = True
        try:
            return part() if self._thread is None else self._thread.call(part)
        finally:
            self._redirection.tree.paused = True
            TestFiles.is_running = False

    def close(self) -> None:
        """Remove what was written."""
        self._stack.close()


def _forkserver() -> Any:
    """Return the process from which this one forks others, if there is one."""
    server = sys.modules.get("multiprocessing.forkserver")
    return getattr(server and server._forkserver, "_forkserver_pid", None)


def _stop_forkserver(before: Any) -> None:
    """Stop one that was started meanwhile: it is bound as the test was, and later ones are not."""
    if _forkserver() != before:
        sys.modules["multiprocessing.forkserver"]._forkserver._stop()
