"""Streams that are closed, full or cut, and signals: each ends a command with a sentence, never with frames."""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from syncscan.errors import UsageError

NOT_WRITTEN = 1
"""Exit code of a command whose result couldn't be printed."""
_SIGNALS = ("SIGTERM", "SIGHUP")


class _Closed(io.TextIOBase):
    """A stdout that isn't there: what is printed can't be, and that is an error."""

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        raise OSError("standard output is closed")


def open_closed() -> None:
    """Put something in the place of standard streams that were closed, so that no file of ours gets their numbers."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: SIM115
    if sys.stdout is None:
        sys.stdout = _Closed()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115


def not_written(error: OSError) -> int:
    """Say that a result couldn't be printed; gives the exit code. What is left in stdout's buffer is let go."""
    place = f"{error.filename}: " if error.filename else ""
    click.echo(f"syncscan: {place}{error.strerror or error}.", err=True)
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # no file at all
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    return NOT_WRITTEN


def refuse_pipe(trace: str) -> None:
    """Say before anything is read that a trace has to be read twice, and can't be: from standard input or a pipe."""
    # Path.exists raises for names that are too long. A folder is reported where it is opened.
    is_stream = os.path.exists(trace) and not os.path.isfile(trace) and not os.path.isdir(trace)  # noqa: PTH110, PTH112, PTH113
    if trace == "-" or is_stream:
        name = "Standard input" if trace == "-" else trace
        raise UsageError(f"{name} can't be read twice, but this command has to.", "Save the trace to a file first.")


@contextmanager
def ended_by_signals(handled: bool = False) -> Iterator[None]:
    """Have SIGTERM and SIGHUP end the command as Ctrl-C does, so that what it made on the way is cleared away.

    What is ignored stays ignored: nohup is asked for. With `handled`, also signals with another handler, which is
    restored afterwards.
    """
    before = {}
    for number in (getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)):
        handler = signal.getsignal(number)
        if handler is signal.SIG_DFL or (handled and callable(handler)):
            before[number] = signal.signal(number, _end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Ended(SystemExit):
    """A signal ends the command; raised once everything is cleaned up."""

    def __init__(self, number: int) -> None:
        super().__init__(128 + number)
        self.sentence = f"stopped by {signal.Signals(number).name}; no partial output is left."


def _end(number: int, frame: Any) -> None:
    raise Ended(number)
