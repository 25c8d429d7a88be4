"""Capture some steps of a program that runs already, once, and leave the process as it was."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TypeVar

from syncscan.capture.main_script import Exit
from syncscan.capture.plan import Plan
from syncscan.capture.program_name import default_name
from syncscan.capture.script_capture import Runner, ScriptRun
from syncscan.capture.session import Session
from syncscan.capture.stack_frames import outward
from syncscan.capture.torch_hooks import unseen
from syncscan.model.libraries import in_package

T = TypeVar("T")
MOMENT_S = 0.002
LONGEST_S = 60.0
"""How long it is tried; a thread that stays there so long is stuck in an optimizer's step."""
_KEEPS_S = 10.0
"""Switch interval meanwhile: a thread that asks for the lock gets it no sooner, and the change takes a millisecond."""


class Busy(Exception):
    """Some thread has stood in an optimizer's step all the time."""


def safely(action: Callable[[], T]) -> T:
    """Run an action that changes hooks, on a thread that isn't inside of one, and return what it returns.

    Torch walks through the hooks of an optimizer's step in an `OrderedDict`, and one that changes meanwhile ends the
    program's step with an error. So it is looked first that nobody stands in that file, and the interpreter's lock is
    kept from the look to the change.

    Args:
        action: it must not wait for anything.

    Raises:
        Busy: no moment came.
    """
    until = time.monotonic() + LONGEST_S
    before = sys.getswitchinterval()
    while time.monotonic() < until:
        time.sleep(MOMENT_S)
        sys.setswitchinterval(_KEEPS_S)
        try:
            if not any(_steps(frame) for frame in sys._current_frames().values()):
                return action()
        finally:
            sys.setswitchinterval(before)
    raise Busy("A thread has been in an optimizer's step for a minute.")


def _steps(frame: FrameType | None) -> bool:
    return any(in_package(f.f_code.co_filename, "torch/optim/optimizer.py") for f in outward(frame))


WAIT_S = 600.0
"""How long the first step is waited for."""
LOOK_S = 0.5


class SingleCapture(Runner):
    """A capture from the next steps on; everything that it hooks into is put back after its last.

    Make it by `safely`, as it adds hooks.

    Args:
        out: the folder of the trace.
        plan: which steps.
        done: called when it is over, with what came of it; on the thread that steps, or on one of its own where no
            step came in time.
        wait_s: how long the first step is waited for.
        name: what the trace's name begins with; empty for the program's.
        say: called with messages for the user.
    """

    def __init__(
        self,
        out: Path,
        plan: Plan,
        done: Callable[[ScriptRun], None],
        *,
        wait_s: float = WAIT_S,
        name: str = "",
        say: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        self._out, self._plan, self._done, self._prefix = out, plan, done, name
        self._over = threading.Event()
        self._patience = wait_s
        unseen("syncscan.watching")
        super().__init__(self._open_session, True, say, main=False)
        self._watchdog = threading.Thread(target=self._wait, name="syncscan-once", daemon=True)
        self._watchdog.start()
        atexit.register(self._end_with_program)

    def _open_session(self) -> Session:
        return Session(self._out, default_name(self._prefix), self._plan, notify=self._say)

    def _finish(self) -> None:
        """End the capture where it was made; its hooks go on another thread, as torch walks through them here."""
        if self._over.is_set():
            return
        self._over.set()
        if self._own is not None:
            self._own.close()
        self._done(self.result(Exit(0)))

    def _end_with_program(self) -> None:
        """Stop a profiler that still records: a process that is torn down under it crashes on a device."""
        if os.getpid() == self._pid:
            self._finish()

    def _wait(self) -> None:
        """Remove the hooks when it is over, or where no step comes."""
        until = time.monotonic() + self._patience
        while not self._over.wait(LOOK_S):
            if self._own is None and not self._scripts and time.monotonic() > until:
                break
        with contextlib.suppress(Busy):
            safely(self._unhook)
        self._stay_here()
        atexit.unregister(self._end_with_program)
        if not self._over.is_set():
            self._over.set()
            self._done(self.result(Exit(0)))
