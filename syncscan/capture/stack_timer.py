"""Sample the stack of the main thread at a fixed rate.

A timer of the kernel's sends the main thread a signal, and Python runs a handler in it between two instructions, with
the frame that was interrupted. In a call of C's that is when the call returns, still at its line; the ticks that have
passed meanwhile all count for it. So a share of ticks is a share of time, whoever holds the interpreter's lock.

What other samplers do was tried on a transformer's step of 5 ms on an idle machine of 2 cores (torch 2.13, Python
3.11), where a clock around its forward pass said 24 %:

- py-spy, a process that reads this one's memory: 13 % where it doesn't stop this one, for the stack changes while it is
  read, and 6 % of its samples are lost, nearly all of them there; 24 % where it does, for 4 % of the step at 100
  samples per second, since it stops every thread.
- a thread that asks for all frames sees only the places where the interpreter's lock is let go, for 2 to 5 %.
- a hook on each call (pyinstrument) makes the step 8 to 35 % longer, and calls slower than everything else.
- this: 23 to 25 %, for 0.7 to 1.1 % at 193 samples per second (`benchmarks/sampling_cost.py`). Of 58 branches above 5 %
  of two steps, each told by all its lines, the farthest was 3 points from what py-spy said that stopped the process.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import signal
import struct
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from types import CodeType, FrameType
from typing import Any

from syncscan.capture.signals import can_handle, unwatched
from syncscan.capture.torch_hooks import unseen

SIGNAL = int(getattr(signal, "SIGURG", 0))
"""An otherwise unused signal (it reports a socket's urgent data), and that a process ignores if it comes too late."""

_MONOTONIC = 1
_TO_THREAD = 4
_ABSOLUTE = 1

Row = tuple[int, list[Any], Any]
"""Time of a tick (`time.monotonic_ns`), the stack, innermost first (code, instruction, code, instruction …), and the
value read then."""


class NotSampled(Exception):
    """Why there are no samples, as a sentence for the user."""


class Ticks:
    """Samples the main thread `rate` times a second, from `start` until `stop` or `close`.

    `read` is called at each tick; what it returns is kept with the stack.
    """

    def __init__(self, rate: int, read: Callable[[], Any] = lambda: None) -> None:
        self.period_ns = 1_000_000_000 // rate
        self.spent: list[tuple[int, int]] = []
        """When each tick came (`time.monotonic_ns`), and how long the thread was busy with it, ns."""
        self._undo = ExitStack()
        self._rows: list[Row] = []
        self._read = read
        self._began = 0
        self._pid = os.getpid()
        if sys.platform != "linux" or sys.maxsize < 2**32:
            raise NotSampled("sampling needs 64-bit Linux.")
        if threading.current_thread() is not threading.main_thread():
            raise NotSampled("the steps don't run in the main thread.")
        if signal.getsignal(SIGNAL) not in (signal.SIG_DFL, signal.SIG_IGN):
            raise NotSampled(f"the program uses {signal.Signals(SIGNAL).name} itself.")
        self._library = _library()
        self._timer = ctypes.c_void_p()
        event = struct.pack("@Piii44x", 0, SIGNAL, _TO_THREAD, threading.get_native_id())  # `struct sigevent`
        if self._library.timer_create(_MONOTONIC, event, ctypes.byref(self._timer)):
            raise NotSampled("the system provides no timer.")
        self._undo.callback(self._library.timer_delete, self._timer)

    def start(self) -> None:
        """Start the timer; a child that is forked meanwhile doesn't inherit it."""
        unseen()
        self._undo.enter_context(unwatched())
        self._undo.callback(_listen(_shielded(_handler(self._rows, self.spent, self._read))))
        self._undo.callback(self._set, 0, 0)  # runs first: no tick comes to a handler that has gone
        self._began = time.monotonic_ns()
        self._set(self._began + self.period_ns, self.period_ns)

    def stop(self) -> list[Row]:
        """Stop, and return each stack with its number of ticks and the value read with it.

        A tick that comes while one is handled is handled first: they are put in order.
        """
        self.close()
        rows, before = [], 0
        for at, stack, read in sorted(self._rows, key=lambda row: row[0]):
            now = (at - self._began) // self.period_ns
            if now > before:
                rows.append((now - before, stack, read))
                before = now
        self._rows.clear()
        return rows

    def close(self) -> None:
        if os.getpid() == self._pid:
            self._undo.close()

    def _set(self, first_ns: int, then_ns: int) -> None:
        """Let the timer tick from a time on, and then at every interval; 0 disables it."""
        when = struct.pack("@4l", *divmod(then_ns, 1_000_000_000), *divmod(first_ns, 1_000_000_000))
        self._library.timer_settime(self._timer, _ABSOLUTE, when, None)  # `struct itimerspec`


def _library() -> Any:
    """Return the library with the timers: the C library, or librt before glibc 2.34."""
    for name in (None, "librt.so.1"):
        with contextlib.suppress(OSError, AttributeError):
            library = ctypes.CDLL(name)
            return library if library.timer_create else None
    raise NotSampled("the C library has no timers.")


def _listen(handler: Callable[..., Any]) -> Callable[[], None]:
    """Install the handler of the signal; return a function that removes it."""
    before = signal.signal(SIGNAL, handler)
    signal.siginterrupt(SIGNAL, False)  # calls of the system go on where they can

    def restore() -> None:
        if can_handle():  # else it stays, and nothing comes to it
            signal.signal(SIGNAL, before)

    return restore


def _handler(
    rows: list[Row], spent: list[tuple[int, int]], read: Callable[[], Any]
) -> Callable[[int, FrameType | None], None]:
    """Return a handler that stores the thread's stack; hashes and lines of code are costly, and computed later."""
    clock = time.monotonic_ns

    def tick(number: int, frame: FrameType | None) -> None:
        began = clock()
        stack: list[CodeType | int] = []
        add = stack.append
        while frame is not None:
            add(frame.f_code)
            add(frame.f_lasti)
            frame = frame.f_back
        rows.append((clock(), stack, read()))
        spent.append((began, clock() - began))

    return tick


def _shielded(handler: Callable[[int, FrameType | None], None]) -> Callable[..., Any]:
    """Keep torch's compiler from compiling what the handler calls outside of syncscan, in the standard library."""
    if "torch._dynamo" not in sys.modules:
        return handler
    disabled: Callable[..., Any] = importlib.import_module("torch._dynamo.decorators").disable(handler)
    return disabled
