"""Somebody's unchanged training script goes in, the traces of a few of its steps come out.

The script runs as `python SCRIPT ARGS` would run it. A step ends where `Optimizer.step` returns (torch has a hook for
all optimizers), or where the script says so, if it uses `syncscan.profile` itself.
"""

from __future__ import annotations

import importlib
import os
import runpy
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from syncscan.capture.imports import when_imported
from syncscan.capture.scopes import ScopeWatch
from syncscan.capture.session import Session
from syncscan.capture.steps import Mark, StepMarks
from syncscan.errors import UsageError

STOPS = 3
"""How often the script is told to stop before it is taken as one that catches everything, and left alone."""


class Finished(BaseException):
    """Unwinds the script when its capture is complete; a BaseException, so that `except Exception` lets it through."""


@dataclass(frozen=True, slots=True)
class ScriptRun:
    """How a script's run ended: its exit code, the traces written, how many steps were seen and by what they were told.

    `stopped` says that it was ended early, because the capture was complete.
    """

    exit_code: int
    paths: tuple[Path, ...]
    steps: int
    marked_by: str
    complete: bool
    stopped: bool


def run_script(
    target: str,
    arguments: Sequence[str],
    make_session: Callable[[], Session],
    *,
    module: bool = False,
    keep_running: bool = False,
) -> ScriptRun:
    """Run a script under a capture and report how it ended; a traceback of the script's own goes to stderr.

    Args:
        target: the script's path, or a module's name.
        arguments: what the script finds in `sys.argv[1:]`.
        make_session: makes the capture; called when the first optimizer step has shown where steps end.
        module: `target` is a module, to be run as by `python -m`.
        keep_running: let the script run to its end after the last cycle.

    Raises:
        UsageError: there is no such script.
    """
    if not module and not Path(target).exists():
        raise UsageError(f"There is no script at {target}.")
    runner = _Runner(make_session, keep_running)
    try:
        exit_code = _execute(target, arguments, module)
    finally:
        runner.close()
    return runner.result(exit_code)


class _Runner:
    """Joins the script's steps with a capture, and ends the script when that is complete."""

    def __init__(self, make_session: Callable[[], Session], keep_running: bool) -> None:
        self._make_session, self._keep_running = make_session, keep_running
        self._own: Session | None = None
        self._scripts: list[Session] = []
        self._marks = StepMarks()
        self._pid = os.getpid()
        self._stops = 0
        self._remove: Callable[[], None] = lambda: None
        self._scopes = ScopeWatch(self._step)
        self._call_off = (
            when_imported("torch.autograd.profiler", lambda module: self._scopes.watch(module.record_function)),
            when_imported("torch.optim.optimizer", lambda module: self._watch(module, self._stepped)),
            when_imported("torch._dynamo", self._hide),
        )
        Session.opened = self._adopt

    def close(self) -> None:
        """Take all hooks away and finish the capture, as far as it got."""
        if os.getpid() != self._pid:
            return
        for call_off in self._call_off:
            call_off()
        self._scopes.unwatch()
        self._remove()
        Session.opened = None
        if self._own is not None:
            self._own.close_quietly()

    def result(self, exit_code: int) -> ScriptRun:
        """What came of it."""
        own = [self._own] if self._own is not None and not self._scripts else []
        sessions = self._scripts or own
        marked_by = "prof.step()" if self._scripts else f"{self._marks.name}.step()"
        return ScriptRun(
            exit_code,
            tuple(path for session in sessions for path in session.paths),
            sum(session.steps for session in sessions),
            marked_by if sessions else "",
            bool(sessions) and all(session.complete for session in sessions),
            self._stops > 0,
        )

    def _watch(self, optimizers: ModuleType, hook: Callable[..., None]) -> None:
        self._remove = optimizers.register_optimizer_step_post_hook(hook).remove

    def _hide(self, dynamo: ModuleType) -> None:
        """Keep a compiled training step from tracing into the hook, and from being compiled anew at every phase."""
        self._remove()
        self._watch(importlib.import_module("torch.optim.optimizer"), dynamo.disable(self._stepped))
        self._scopes.action = dynamo.disable(self._step)

    def _stepped(self, optimizer: Any, arguments: Any, keywords: Any) -> None:
        if self._scripts or os.getpid() != self._pid:
            return
        session = self._own
        if session is None:
            self._own = session = self._make_session()
            session.finished = self._finish
            self._marks.saw(optimizer, fixed=False)
            session.__enter__()
        elif session.done:
            self._finish()
        else:
            mark = self._marks.saw(optimizer, fixed=session.profiling)
            if mark is Mark.STEP:
                self._scopes.end_step()
            elif mark is Mark.ANEW:
                session.restart()

    def _step(self) -> None:
        if self._own is not None and not self._scripts:
            self._own.step()

    def _adopt(self, session: Session) -> None:
        """Let a session that the script opens take the place of the runner's own."""
        if session is self._own:
            return
        if self._own is not None:
            self._own.close_quietly()
        session.finished = self._finish
        self._scripts.append(session)

    def _finish(self) -> None:
        if self._keep_running or self._stops == STOPS or threading.current_thread() is not threading.main_thread():
            return
        self._stops += 1
        raise Finished


def _execute(target: str, arguments: Sequence[str], module: bool) -> int:
    """Run the script with `sys.argv` and `sys.path` as it expects them, and return its exit code."""
    argv, path = sys.argv, list(sys.path)
    sys.argv = [target, *arguments]
    sys.path[0:1] = [""] if module else [str(Path(target).resolve().parent)]
    try:
        if module:
            runpy.run_module(target, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(target, run_name="__main__")
    except Finished:
        return 0
    except SystemExit as stop:
        return _exit_code(stop)
    except BaseException as error:
        _show(error)
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    finally:
        sys.argv, sys.path[:] = argv, path
    return 0


def _exit_code(stop: SystemExit) -> int:
    """What the interpreter would make of this SystemExit."""
    if stop.code is None:
        return 0
    if isinstance(stop.code, int):
        return stop.code
    sys.stderr.write(f"{stop.code}\n")
    return 1


def _show(error: BaseException) -> None:
    """Print a traceback as the interpreter would have, without the frames of this runner."""
    tb: TracebackType | None = error.__traceback__
    while tb is not None and _is_ours(tb):
        tb = tb.tb_next
    sys.stdout.flush()
    sys.excepthook(type(error), error.with_traceback(tb), tb)


def _is_ours(tb: TracebackType) -> bool:
    file = traceback.extract_tb(tb, limit=1)[0].filename
    return file == __file__ or file in ("<frozen runpy>", runpy.__file__)
