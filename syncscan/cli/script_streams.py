"""Write to the user while a script runs in this process, whatever the script does to its standard streams."""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import signal
import sys
from collections.abc import Iterator
from typing import TextIO

import click

from syncscan.report.printable import printable


class ScriptStreams:
    """The process's streams as they are before a script replaces or closes them."""

    def __init__(self) -> None:
        self._out, self._err = sys.stdout, sys.stderr
        self._spare = _duplicate(sys.stdout)
        self.printed: set[str] = set()
        """Sentences that were printed while the script ran."""

    def say(self, sentence: str) -> None:
        """Write a sentence to the user, on stderr, if the script has left it open."""
        if not self._err.closed:
            self.printed.add(sentence)
            click.echo(f"syncscan: {printable(sentence, lines=True)}", file=self._err)

    @contextlib.contextmanager
    def restored(self) -> Iterator[None]:
        """Let a report go where the command's output goes, and give the script its own streams back afterwards."""
        theirs = sys.stdout, sys.stderr
        for stream in theirs:
            with contextlib.suppress(ValueError, OSError, AttributeError):  # closed, or something of the script's own
                stream.flush()
        with contextlib.ExitStack() as spare:
            sys.stdout, sys.stderr = self._out, self._err
            if self._out.closed:
                sys.stdout = spare.enter_context(open(os.devnull if self._spare is None else self._spare, "w"))
            if self._err.closed:
                sys.stderr = spare.enter_context(open(os.devnull, "w"))
            try:
                yield
            finally:
                with contextlib.suppress(ValueError, OSError):
                    sys.stdout.flush()
                sys.stdout, sys.stderr = theirs


def _duplicate(stream: TextIO) -> int | None:
    """Return another descriptor of the same file, which stays open when the script closes its own."""
    try:
        return os.dup(stream.fileno())
    except (OSError, ValueError, AttributeError, io.UnsupportedOperation):
        return None


class DieOfInterrupt:
    """End the process as Python ends one whose main program Ctrl-C has ended: by the signal, after everything else."""

    def __init__(self) -> None:
        self.pending = False
        atexit.register(self._end)  # before the script registers anything, so that it is the last to be called

    def _end(self) -> None:
        if self.pending:
            from syncscan.capture.signals import die_of

            with contextlib.suppress(ValueError, OSError):
                sys.stdout.flush()
            die_of(signal.SIGINT)
