"""Decide when captures are due: at a step, periodically, on a signal, or on a call."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field

from syncscan.errors import UsageError


@dataclass(slots=True)
class Demand:
    """When captures of a running loop begin; without options, once and at once.

    Args:
        start_at: the number of steps after which the first begins.
        every: begin another capture this many steps after the last one began.
        on_signal: begin one whenever this signal has come (`USR2`, `SIGUSR2` or its number).
        on_trigger: begin one only when `ask` was called.

    Raises:
        UsageError: a number that can't mean anything, or a signal that can't be caught here.
    """

    start_at: int | None = None
    every: int | None = None
    on_signal: str | int | None = None
    on_trigger: bool = False
    asked: int = field(default=0, init=False)
    """Captures that were requested and haven't begun."""
    _next: int | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if self.start_at is not None and self.start_at < 0:
            raise UsageError(f"start_at is {self.start_at}, but a number of steps can't be negative.")
        if self.every is not None and self.every < 1:
            raise UsageError(f"every is {self.every}, but at least 1 step must lie between two captures.")
        if self.on_signal is not None:
            self.on_signal = signal_number(self.on_signal)
        scheduled = self.start_at is not None or self.every is not None
        self._next = (self.start_at or 0) if scheduled or not self.standing else None

    @property
    def standing(self) -> bool:
        """Return whether captures can become due for as long as the loop runs."""
        return self.every is not None or self.on_signal is not None or self.on_trigger

    @property
    def pending(self) -> bool:
        """Return whether a capture is still to come, or possible."""
        return self.standing or self.asked > 0 or self._next is not None

    def ask(self) -> None:
        """Request one more capture; safe in a signal handler and on any thread, as it only counts."""
        self.asked += 1

    def due(self, steps: int) -> bool:
        """Return whether a capture begins now, after this many steps, and consume its request."""
        if self._next is not None and steps >= self._next:
            self._next = steps + self.every if self.every is not None else None
            return True
        if self.asked:
            self.asked -= 1
            return True
        return False


def signal_number(name: str | int) -> int:
    """Return the number of a signal given by name, with or without `SIG`, or by number.

    Raises:
        UsageError: this system has no such signal, or it can't be caught, or it means the end of the process.
    """
    text = str(name).upper()
    try:
        number = signal.Signals(int(text)) if text.isdigit() else signal.Signals[f"SIG{text.removeprefix('SIG')}"]
    except (KeyError, ValueError):
        raise UsageError(f"This system has no signal {name}.", "Use USR1 or USR2.") from None
    if number.name in ("SIGKILL", "SIGSTOP", "SIGTERM", "SIGINT", "SIGSEGV", "SIGCHLD", "SIGHUP"):
        raise UsageError(f"{number.name} is reserved and can't start a capture.", "Use USR1 or USR2.")
    return int(number)
