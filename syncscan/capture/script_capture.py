"""Capture a few steps of an unchanged training script.

The script runs as `python SCRIPT ARGS` would run it. A step ends where `Optimizer.step` returns (torch has a hook for
all optimizers), or where the script says so, if it uses `syncscan.profile` itself.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import msgspec

from syncscan.capture import torch_hooks
from syncscan.capture.compiling import FAILED, compile_record, remember_all
from syncscan.capture.main_script import Exit, RunComplete, run_main
from syncscan.capture.optimizer_hook import OptimizerCall, OptimizerHook, StepMarks
from syncscan.capture.repeated_loop import Repeats
from syncscan.capture.session import Session
from syncscan.errors import SyncscanError, UsageError
from syncscan.patches import when_imported

STOPS = 3
"""Attempts to stop the script before it counts as one that catches everything, and is left alone."""


@dataclass(frozen=True, slots=True)
class ScriptRun:
    """How a script's run ended: its exit code, the traces written, the steps seen and what marked them.

    `stopped` says that it was ended early, because the capture was over; `failed` why there is none, if it failed;
    `interrupted` that Ctrl-C ended the script; `ranks` how many processes it ran in. Of one of several processes, `pid`
    is its number, `rank` its rank if it has one, and `world` how many there are.
    """

    exit_code: int
    paths: tuple[Path, ...]
    steps: int
    marked_by: str
    complete: bool
    stopped: bool
    failed: str | None = None
    interrupted: bool = False
    ranks: int = 1
    pid: int = 0
    rank: int = 0
    world: int = 1


def run_script(
    target: str,
    arguments: Sequence[str],
    make_session: Callable[[], Session],
    *,
    module: bool = False,
    keep_running: bool = False,
    explain_compile: bool = False,
    say: Callable[[str], None] = lambda sentence: None,
) -> ScriptRun:
    """Run a script under a capture and report how it ended; a traceback of the script's own goes to stderr.

    `make_session` is called when the first optimizer step has shown where steps end. With `keep_running`, the script
    runs to its end after the last cycle. With `explain_compile`, dynamo is asked for its graph breaks, skipped frames
    and recompiles, which are stored in the trace. `say` reports a sentence to the user while no step has been seen.

    The process is the script's from here on: its `__main__`, `sys.argv` and `sys.path` stay, for what it has registered
    to run at the end. Everything that the capture has hooked into is put back.
    """
    if not module and not Path(target).exists():
        raise UsageError(f"There is no script at {target}.")
    runner = Runner(make_session, keep_running, say, explain=explain_compile)
    pid = os.getpid()
    try:
        ended = run_main(target, arguments, module=module)
    finally:
        runner.close()
    if os.getpid() != pid:
        _end_of_child(ended.code)
    return runner.result(ended)


def _end_of_child(code: int) -> NoReturn:
    """End a child that the script forked and that came to the script's end, as Python would end it."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(code)


class Runner:
    """Connects the script's steps with a capture, and ends the script when that is complete.

    `keep_running` lets it run on. `say` reports a sentence to the user while no step has been seen. `main` says that
    this process runs the script itself; `explain`, that dynamo is asked too; `loops`, that the rounds of a loop count
    as steps where no optimizer steps.
    """

    def __init__(
        self,
        make_session: Callable[[], Session],
        keep_running: bool,
        say: Callable[[str], None],
        *,
        main: bool = True,
        explain: bool = False,
        loops: bool = True,
    ) -> None:
        self._forget = remember_all() if explain else None
        self._make_session, self._keep_running, self._say = make_session, keep_running, say
        self._rounds_of = ""
        """The loop or call whose rounds are steps, if no optimizer steps."""
        self._own: Session | None = None
        self._scripts: list[Session] = []
        self._marks = StepMarks()
        self._steps = 0
        self._pid = os.getpid()
        self._stops = 0
        self._scopes = ScopeWatch(self._step)
        self._hook = OptimizerHook(self._stepped)
        self._call_off = when_imported("torch._dynamo", self._hide)
        self._repeats = Repeats(self._use_rounds, self._round_ended, say, impatient=main)
        self._look_no_more = when_imported("torch", lambda torch: self._repeats.start()) if loops else lambda: None
        self._stay_here = torch_hooks.in_child(self._unhook)
        Session.opened = self._adopt

    def close(self) -> None:
        """Remove all hooks and finish the capture, as far as it got."""
        if os.getpid() != self._pid:
            return
        self._stay_here()
        self._unhook()
        if self._own is not None:
            self._own.close()
        if self._forget is not None:
            self._forget()
            compiled = msgspec.to_builtins(compile_record())
            for session in (*self._scripts, *([self._own] if self._own is not None else [])):
                session.add({"compiled": compiled}, FAILED)

    def result(self, ended: Exit) -> ScriptRun:
        own = [self._own] if self._own is not None and not self._scripts else []
        sessions = self._scripts or own
        own_marks = self._rounds_of or f"{self._marks.name}.step()"
        marked_by = "prof.step()" if self._scripts else own_marks
        return ScriptRun(
            ended.code,
            tuple(path for session in sessions for path in session.paths),
            sum(session.steps for session in sessions) if self._scripts else self._steps,
            marked_by if sessions else "",
            bool(sessions) and all(session.complete for session in sessions),
            self._stops > 0,
            next((session.failed for session in sessions if session.failed), None),
            ended.interrupted,
        )

    def _unhook(self) -> None:
        self._call_off()
        self._look_no_more()
        self._repeats.close()
        self._scopes.unwatch()
        self._hook.remove()
        Session.opened = None

    def _hide(self, dynamo: ModuleType) -> None:
        """Keep a compiled training step from tracing into the functions that its scopes call."""
        self._scopes.action = dynamo.disable(self._step)

    def _stepped(self, optimizer: Any, arguments: Any, keywords: Any) -> None:
        """Handle an optimizer's step; without an active capture it only counts."""
        if self._scripts or os.getpid() != self._pid:
            return
        session = self._own
        if self._rounds_of:
            if session is not None and not session.restartable:
                return
            self._repeats.close()
            self._rounds_of = ""
        if session is None:
            self._repeats.stop()
            self._marks.saw(optimizer, fixed=False)
            self._steps = 1
            self._open()
            return
        mark = self._marks.saw(optimizer, fixed=not session.restartable)
        if mark is OptimizerCall.ANEW:
            self._steps = 1
            session.restart()
        elif mark is OptimizerCall.STEP:
            self._steps += 1
            if session.done:
                self._finish()
            elif session.profiling:
                self._scopes.end_step()
            else:
                self._step()

    def _use_rounds(self, what: str) -> None:
        """Use the rounds of a loop as steps, since no optimizer steps."""
        self._rounds_of = what
        self._say(f"No optimizer has stepped so far: {what} counts as a step.")

    def _round_ended(self) -> None:
        if self._scripts or os.getpid() != self._pid or not self._rounds_of:
            return
        self._steps += 1
        session = self._own
        if session is None:
            self._open()
        elif session.done:
            self._finish()
        else:
            session.step()

    def _open(self) -> None:
        """Open the capture with the script's first step; its errors don't concern the script."""
        self._own = self._make_session()
        self._own.finished = self._finish
        self._own.grows = self._forget is not None
        try:
            self._own.__enter__()
        except SyncscanError as error:
            self._own.fail(str(error))
        self._follow_scopes()

    def _step(self) -> None:
        session = self._own
        if session is None or self._scripts:
            return
        try:
            session.step()
        finally:
            if session.profiling or self._scopes.watching:
                self._follow_scopes()

    def _follow_scopes(self) -> None:
        """Watch scopes only while a profiler marks steps with slices that must nest with theirs."""
        if self._own is not None and self._own.profiling:
            from torch.autograd.profiler import record_function

            self._scopes.watch(record_function)
        else:
            self._scopes.unwatch()

    def _adopt(self, session: Session) -> None:
        """Replace the runner's own session by one that the script opens."""
        if session is self._own or Session.running not in (None, self._own):  # the latter will be refused
            return
        if self._own is not None:
            self._own.close()
            self._scopes.unwatch()
        self._repeats.close()
        session.finished = self._finish
        session.grows = self._forget is not None
        self._scripts.append(session)

    def _finish(self) -> None:
        if self._keep_running or self._stops == STOPS or threading.current_thread() is not threading.main_thread():
            return
        self._stops += 1
        raise RunComplete


class ScopeWatch:
    """Counts the open scopes of the training thread, and calls `action` once they allow a step to end.

    The profiler marks steps with slices of their own, and slices of one thread must nest. An optimizer's step is known
    to be over inside torch's own `Optimizer.step` scope, often inside one of the user's too: a step that ended there
    would cross both. So its end waits until the scopes that were opened during the step are closed again.

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
