"""From a big trace file to the columns of its pieces that a second process decodes meanwhile.

A child is forked only by a process that nothing speaks against: on Linux, with one Python thread and without torch, as
the command line is. It opens the file itself, cuts it up in the same way, takes the next piece that nobody has when it
is done with one, and sends its columns at the end.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from types import TracebackType
from typing import Any

WORTHWHILE_BYTES = 24 << 20
"""Length of text from which a second process saves more time than it costs, measured in benchmarks/README.md."""

_TURNS_A_PAGE = 1024
_LARGEST_PIPE = 1 << 20
"""What anyone may make a pipe hold (/proc/sys/fs/pipe-max-size): a sixteenth of the columns, where 64 kB is usual."""

ALONE = "SYNCSCAN_ONE_PROCESS"
"""In the environment of a process that shall do its work without a second one, and without a second thread."""


def possible() -> bool:
    """Whether a second process may be forked here, and would have a processor of its own.

    A forked child has one thread: what another one held locked stays locked in it. With torch loaded there are such
    threads, and a CUDA context that a child must not touch.
    """
    return (
        sys.platform == "linux" and threading.active_count() == 1 and "torch" not in sys.modules and spare_processor()
    )


def spare_processor() -> bool:
    """Whether this process may use another processor beside its first.

    One of several processes that share the processors (`ALONE` is in its environment) has none to spare.
    """
    if ALONE in os.environ:
        return False
    return (len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1) > 1


class Turns:
    """Numbers from 0 on, each given to one of the processes that ask: to whoever is done with its last one.

    They lie in a pipe that both read from. Linux gives each reader whole numbers: a read holds the pipe, and no page of
    it ends within one (pipe(7), fs/pipe.c).

    Raises:
        CannotFork: there is no pipe to be had.
    """

    def __init__(self) -> None:
        self._from, into = _pipe()
        with os.fdopen(into, "wb", buffering=0) as f:
            os.set_blocking(into, False)
            self.count = 0
            while f.write(b"".join(n.to_bytes(4, "little") for n in range(self.count, self.count + _TURNS_A_PAGE))):
                self.count += _TURNS_A_PAGE

    def next(self) -> int | None:
        """The next number; None once `count` were given out, 16,384 of them as Linux makes pipes."""
        number = os.read(self._from, 4)
        return int.from_bytes(number, "little") if number else None

    def close(self) -> None:
        """Give the pipe back."""
        os.close(self._from)


class CannotFork(Exception):
    """The system gives no second process: too many there are, or files, or too little memory."""


class SecondProcess:
    """A child process that makes one value; used as a context, at whose end it is gone.

    Args:
        work: makes the value in the child; it is pickled.

    Raises:
        CannotFork: there is none to be had.
    """

    def __init__(self, work: Callable[[], Any]) -> None:
        read_end, write_end = _pipe()
        try:
            self._pid = _fork()
        except CannotFork:
            os.close(read_end)
            os.close(write_end)
            raise
        if not self._pid:
            _child(work, write_end)
        os.close(write_end)
        _widen(read_end)
        self._pipe = os.fdopen(read_end, "rb")

    def result(self) -> Any:
        """What the child made, waited for; None if it failed."""
        try:
            return pickle.load(self._pipe)
        except (EOFError, pickle.UnpicklingError):
            return None

    def __enter__(self) -> SecondProcess:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._pipe.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)


def _pipe() -> tuple[int, int]:
    try:
        return os.pipe()
    except OSError as e:
        raise CannotFork from e


def _widen(pipe: int) -> None:
    import fcntl  # no other system than Linux gets here, and Windows doesn't have it

    with contextlib.suppress(OSError):
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _LARGEST_PIPE)


def _fork() -> int:
    with warnings.catch_warnings():
        # Python 3.12 warns of threads; those that there are belong to numpy's BLAS, which the child doesn't call.
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            return os.fork()
        except OSError as e:
            raise CannotFork from e


def _child(work: Callable[[], Any], write_end: int) -> None:
    """Work, send, and go without any of the parent's clean-up."""
    status = 1
    try:
        with os.fdopen(write_end, "wb") as f:
            pickle.dump(work(), f, protocol=5)
        status = 0
    finally:
        os._exit(status)
