"""Run a command of the user's when a line is alarmed."""

from __future__ import annotations

import os
import shlex
import subprocess
import threading

from syncscan.errors import UsageError
from syncscan.watching.record import ENCODER, Alarm

LONGEST_S = 60.0
"""How long a command may take; it is ended then."""
MOST_AT_ONCE = 4
"""Commands that may run at a time; a further alarm runs none."""
VARIABLE = "SYNCSCAN_ALARM"
"""Environment variable of the command with the alarm as a sentence."""


class AlarmCommand:
    """Runs a command with the alarm as JSON on its standard input, on a thread of its own.

    Args:
        command: words as a shell would split them; no shell runs.

    Raises:
        UsageError: a quotation isn't closed.
    """

    def __init__(self, command: str) -> None:
        try:
            self._words = shlex.split(command)
        except ValueError as error:
            raise UsageError(f"The alarm's command can't be split into words: {error}.") from None
        self._running = threading.Semaphore(MOST_AT_ONCE)

    def __call__(self, alarm: Alarm) -> None:
        """Start it; the job doesn't wait, and what goes wrong in it is lost."""
        if self._words and self._running.acquire(blocking=False):
            threading.Thread(target=self._run, args=(alarm,), name="syncscan-alarm", daemon=True).start()

    def _run(self, alarm: Alarm) -> None:
        try:
            subprocess.run(
                self._words,
                input=ENCODER.encode(alarm),
                env={**os.environ, VARIABLE: str(alarm)},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=LONGEST_S,
            )
        except (OSError, subprocess.SubprocessError):
            pass
        finally:
            self._running.release()
