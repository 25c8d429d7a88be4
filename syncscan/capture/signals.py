"""Request a capture on a signal, or end one before the process dies of a signal.

A handler of Python's only runs between two instructions on the main thread, so it never interrupts torch. Handlers that
the program has set are kept: they are called as well, and they get their place back.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from syncscan.capture import torch_hooks

Handler = Any

_handler_of: Callable[[int], Handler] = importlib.import_module("_signal").getsignal
"""CPython's own function, called at each step: `signal.getsignal` creates an enum of every answer, which takes 3 µs."""

GRACE_S = 10.0
"""How long a main thread may stay inside a C call after a deadly signal; batch systems kill after 30 s."""

ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


@contextlib.contextmanager
def unwatched() -> Iterator[None]:
    """Keep signals from waking the watchdog: a timer's would acquire the GIL at every tick.

    Python would tell it of each signal, whichever it waits for. What the program has set to be told stays.
    """
    watchdog = _Watchdog.running
    if watchdog is None:
        yield
        return
    current = signal.set_wakeup_fd(watchdog.before, warn_on_full_buffer=False)
    try:
        yield
    finally:
        now = signal.set_wakeup_fd(current, warn_on_full_buffer=False)
        if now != watchdog.before:  # an event loop has put its own pipe there meanwhile
            signal.set_wakeup_fd(now)


def can_handle() -> bool:
    """Return whether this thread may set handlers: only the main one may."""
    return threading.current_thread() is threading.main_thread()


class SignalRequest:
    """Calls `note` whenever a signal comes, and then the handler that the program has set for it."""

    def __init__(self, number: int, note: Callable[[], None]) -> None:
        self._number, self._note, self._pid = number, note, os.getpid()
        self._program: Handler = signal.signal(number, self._came)

    def reinstall(self) -> None:
        """Reinstall the handler in front of one that the program has set in the meantime."""
        if _handler_of(self._number) != self._came and can_handle():
            self._program = signal.signal(self._number, self._came)

    def leave(self) -> None:
        _put_back(self._number, self._came, self._program)

    def _came(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() == self._pid:
            self._note()
        if callable(self._program):
            self._program(number, frame)


class TerminationHandler:
    """Ends a capture before the process dies of a signal that would have left nothing of it.

    `finish` is called first, on the main thread, with the signal's name and a function that goes on with the signal. It
    returns whether it could finish now; where not, it calls that function when it can, once.
    """

    def __init__(self, finish: Callable[[str, Callable[[], None]], bool]) -> None:
        self._finish = finish
        self._program: dict[int, Handler] = {}
        self._acting = threading.Event()
        for number in ENDING:
            if signal.getsignal(number) not in (signal.SIG_IGN, None):
                self._program[number] = signal.signal(number, self._came)
        self._watchdog = _Watchdog(self._acting)
        # A worker that receives SIGTERM would write its signal into the pipe that it shares with this process.
        self._stay_here = torch_hooks.in_child(self.leave)

    def leave(self) -> None:
        """Restore the handlers; only possible on the main thread, elsewhere they stay until a signal comes."""
        if not can_handle():
            return
        self._stay_here()
        self._watchdog.leave()
        for number, program in self._program.items():
            _put_back(number, self._came, program)

    def _came(self, number: int, frame: FrameType | None) -> None:
        self._acting.set()
        if not self._finish(signal.Signals(number).name, functools.partial(self._came, number, frame)):
            return
        program = self._program.get(number, signal.SIG_DFL)
        self.leave()
        if callable(program):
            program(number, frame)
        else:
            die_of(number)


def die_of(number: int) -> None:
    """End the process as this signal ends one that doesn't catch it."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


class _Watchdog:
    """Ends the process if the main thread doesn't return from a C call to handle a deadly signal.

    Python writes each signal's number into a pipe at once, whatever the main thread does. `before` is the pipe that the
    program has set to be told by, -1 for none.
    """

    running: _Watchdog | None = None

    def __init__(self, acting: threading.Event) -> None:
        self._acting, self._pid = acting, os.getpid()
        self._out, self._in = os.pipe()
        os.set_blocking(self._in, False)
        self.before = signal.set_wakeup_fd(self._in, warn_on_full_buffer=False)
        _Watchdog.running = self
        self._thread = threading.Thread(target=self._watch, name="syncscan-signals", daemon=True)
        self._thread.start()

    def leave(self) -> None:
        if self._in < 0:
            return
        _Watchdog.running = None
        current = signal.set_wakeup_fd(self.before)
        if current != self._in:  # an event loop has put its own pipe in the place of this one
            signal.set_wakeup_fd(current)
        os.close(self._in)
        self._in = -1
        if self._pid == os.getpid():
            self._thread.join(1.0)

    def _watch(self) -> None:
        while numbers := os.read(self._out, 64):
            if self.before >= 0:
                os.write(self.before, numbers)
            if any(number in ENDING for number in numbers) and not self._acting.wait(GRACE_S):
                self._end(next(number for number in numbers if number in ENDING))
        os.close(self._out)

    def _end(self, number: int) -> None:
        name = signal.Signals(number).name
        os.write(2, f"syncscan: {name} came in a call that didn't return; this capture is lost.\n".encode())
        ctypes.CDLL(None).signal(number, 0)  # signal.signal is the main thread's alone
        os.kill(os.getpid(), number)


def _put_back(number: int, ours: Handler, program: Handler) -> None:
    """Restore the program's own handler, unless it has set another itself."""
    if can_handle() and signal.getsignal(number) == ours:
        signal.signal(number, program if program is not None else signal.SIG_DFL)
