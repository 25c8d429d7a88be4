"""End a command that Ctrl-C has ended by the signal itself, so that a shell loop around it ends too."""

from __future__ import annotations

import atexit
import contextlib
import signal
import sys


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
