"""Set torch's modes, which are per thread, in threads that begin meanwhile.

Processes aren't: where the program starts some, that is a gap, with its line.
"""

from __future__ import annotations

import functools
import importlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import thread as pools
from contextlib import contextmanager
from typing import Any

from syncscan.dryrun.patches import Patches
from syncscan.dryrun.recorder import DryRunSession

torch: Any = importlib.import_module("torch")


def pretend(session: DryRunSession, patches: Patches) -> None:
    """Set the modes in new threads, and in the tasks of pools with existing threads."""
    running = _Running(session)
    patches.set(threading.Thread, "run", running.around(threading.Thread.run))
    work: Any = vars(pools)["_WorkItem"]
    patches.set(work, "run", running.around(work.run))
    processes = importlib.import_module("torch.multiprocessing")
    for name in ("spawn", "start_processes"):
        if hasattr(processes, name):
            patches.set(processes, name, _unseen(session, getattr(processes, name), name))


class _Running:
    """Runs a function with the session's modes, in whatever thread."""

    def __init__(self, session: DryRunSession) -> None:
        self._session = session
        self._functions: Any = importlib.import_module("syncscan.dryrun.device_functions").Functions
        self._ops: Any = importlib.import_module("syncscan.dryrun.dispatch_mode").Ops

    def around(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function wrapped to run under the modes."""

        @functools.wraps(run)
        def with_modes(*args: Any, **kwargs: Any) -> Any:
            with self._modes():
                return run(*args, **kwargs)

        return with_modes

    @contextmanager
    def _modes(self) -> Iterator[None]:
        on = any(isinstance(mode, self._functions) for mode in torch.overrides._get_current_function_mode_stack())
        if on or self._session.over:
            yield
            return
        with self._ops(self._session), self._functions(self._session):
            yield


def _unseen(session: DryRunSession, start: Callable[..., Any], name: str) -> Callable[..., Any]:
    @functools.wraps(start)
    def started(*args: Any, **kwargs: Any) -> Any:
        session.seen += 1
        session.not_understood(f"processes of torch.multiprocessing.{name}, which run without the simulated GPU")
        return start(*args, **kwargs)

    return started
