"""Decode pieces of a big trace file in a second process.

A child is forked only if nothing prevents it: on Linux, with a single Python thread and without torch, as in the
command line. It opens the file itself, splits it in the same way, takes the next free piece when it is
done with one, and sends its columns at the end.
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
"""Largest pipe that any user may have (/proc/sys/fs/pipe-max-size): a sixteenth of the columns, instead of 64 kB."""

ALONE = "SYNCSCAN_ONE_PROCESS"
"""Environment variable of a process that must work without a second process or thread."""


def possible() -> bool:
    """Return whether a second process can be forked and would have its own processor.

    A forked child has one thread, and locks held by other threads stay locked in it. With torch loaded there are such
    threads, and a CUDA context that a child must not touch.
    """
    return (
        sys.platform == "linux" and threading.active_count() == 1 and "torch" not in sys.modules and spare_processor()
    )


def spare_processor() -> bool:
    """Return whether this process may use a second processor.

    One of several processes that share the processors (with `ALONE` in its environment) may not.
    """
    if ALONE in os.environ:
        return False
    return (len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1) > 1


class Turns:
    """Numbers from 0 on, each given to one of several processes, whoever asks next.

    They are in a pipe that both read. Linux gives each reader whole numbers: a read locks the pipe, and no page of
    it ends within a number (pipe(7), fs/pipe.c).

    Raises:
        CannotFork: no pipe is available.
    """

    def __init__(self) -> None:
        self._from, into = _pipe()
        with os.fdopen(into, "wb", buffering=0) as f:
            os.set_blocking(into, False)
            self.count = 0
            while f.write(b"".join(n.to_bytes(4, "little") for n in range(self.count, self.count + _TURNS_A_PAGE))):
                self.count += _TURNS_A_PAGE

    def next(self) -> int | None:
        """Return the next number; None after `count` numbers, 16,384 with Linux's pipes."""
        number = os.read(self._from, 4)
        return int.from_bytes(number, "little") if number else None

    def close(self) -> None:
        """Close the pipe."""
        os.close(self._from)


class CannotFork(Exception):
    """The system refuses a second process, because processes, files or memory are exhausted."""


class SecondProcess:
    """A child process that computes one value; a context manager, at whose end the child is gone.

    Args:
        work: computes the value in the child; it is pickled.

    Raises:
        CannotFork: no process is available.
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
        """Wait for the child's value and return it; None if it failed."""
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
    import fcntl  # only Linux gets here, and Windows doesn't have it

    with contextlib.suppress(OSError):
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _LARGEST_PIPE)


def _fork() -> int:
    with warnings.catch_warnings():
        # Python 3.12 warns of threads; those present belong to numpy's BLAS, which the child doesn't call.
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            return os.fork()
        except OSError as e:
            raise CannotFork from e


def _child(work: Callable[[], Any], write_end: int) -> None:
    """Work, send the value, and exit without the parent's clean-up."""
    status = 1
    try:
        with os.fdopen(write_end, "wb") as f:
            pickle.dump(work(), f, protocol=5)
        status = 0
    finally:
        os._exit(status)
