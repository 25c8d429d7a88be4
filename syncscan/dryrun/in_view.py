"""Run a program of the user's in a view of the file tree, in a child process, and bring its result back.

The command itself stays outside, so that what it writes with `-o` lands where the user wants it.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import pickle
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from typing import IO, TypeVar

from syncscan.cli.streams import ended_by_signals
from syncscan.errors import ProgramFailed, SyncscanError
from syncscan.report.printable import printable
from syncscan.scratch import Scratch
from syncscan.scratch.environment import name_connections

Result = TypeVar("Result")
_answers: list[IO[bytes]] = []
"""Where this process leaves its result, if it is such a child."""

GRACE_S = 10.0
"""Seconds that a program may take to end once its result is there: what it runs at exit is the user's."""


def in_view(work: Callable[[], Result]) -> Result:
    """Call a function in a child process whose files are scratch copies, and return its result.

    What it returns or raises is pickled; it is a `ProgramFailed` if the process was ended before.
    """
    with Scratch.made() as scratch, tempfile.TemporaryFile() as answer:
        if not hasattr(os, "fork"):
            with scratch.entered():
                return work()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        pid = os.fork()
        if pid == 0:
            _child(scratch, work, answer)
        code = _ended(pid)
        answer.seek(0)
        message = answer.read()
    if not message:
        raise ProgramFailed(f"The program was ended by {signal.Signals(-code).name}.") if code < 0 else SystemExit(code)
    error, result = pickle.loads(message)
    if error is not None:
        raise error
    returned: Result = result
    return returned


def end_with(result: object) -> bool:
    """Give a result and end this process, below a program that doesn't return; `False` where it isn't a child."""
    if not _answers:
        return False
    pickle.dump((None, result), _answers[0])
    _answers[0].flush()
    _finish()
    os._exit(0)


def _child(scratch: Scratch, work: Callable[[], object], answer: IO[bytes]) -> None:
    """Do the work in this process and end it."""
    code = 1
    _answers.append(answer)
    try:
        scratch.enter()
        name_connections(functools.partial(_tell_of, os.dup(2)))
        try:
            message: tuple[BaseException | None, object] = (None, work())
        except (SyncscanError, KeyboardInterrupt) as error:
            message = (error.with_traceback(None), None)
        pickle.dump(message, answer)
        answer.flush()
        code = 0
        _finish()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _tell_of(stderr: int, machine: str) -> None:
    """Name a machine that the program is about to connect to."""
    with contextlib.suppress(OSError):
        os.write(stderr, f"syncscan: {printable(machine)}: what the program sends there isn't held back\n".encode())


def _finish() -> None:
    """Run what the program has left for its end, as the interpreter does, but not for long."""
    late = threading.Timer(GRACE_S, os._exit, (0,))
    late.daemon = True
    late.start()
    with contextlib.suppress(BaseException):
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()


def _ended(pid: int) -> int:
    """Wait for a child to end; its exit code, negative for a signal. Ctrl-C is the child's, which has it too."""
    try:
        with ended_by_signals(), _interrupts_ignored():
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    except BaseException:
        _end(pid)
        raise


@contextlib.contextmanager
def _interrupts_ignored() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _end(pid: int) -> None:
    """End a child, by force if it doesn't end by itself."""
    with contextlib.suppress(ProcessLookupError, ChildProcessError):
        os.kill(pid, signal.SIGTERM)
        until = time.monotonic() + GRACE_S
        while os.waitpid(pid, os.WNOHANG)[0] == 0:
            if time.monotonic() > until:
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)


__all__ = ["end_with", "in_view"]
