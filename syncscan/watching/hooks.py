"""Change torch's tables of hooks while other threads run, without any of them being in the middle of one.

Torch walks through the hooks of an optimizer's step in an `OrderedDict`, and one that changes meanwhile ends the
program's step with an error. So a thread that adds or removes one looks first that nobody stands in that file, and
keeps the interpreter's lock from the look to the change.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import TypeVar

from syncscan.capture.stack_frames import outward
from syncscan.model.libraries import in_package

T = TypeVar("T")
LOOK_S = 0.002
LONGEST_S = 60.0
"""How long it is tried; a thread that stays there so long is stuck in an optimizer's step."""
_KEEPS_S = 10.0
"""Switch interval meanwhile: a thread that asks for the lock gets it no sooner, and the change takes a millisecond."""


class Busy(Exception):
    """Some thread has stood in an optimizer's step all the time."""


def safely(action: Callable[[], T]) -> T:
    """Run an action that changes hooks, on a thread that isn't inside of one, and return what it returns.

    Args:
        action: it must not wait for anything.

    Raises:
        Busy: no moment came.
    """
    until = time.monotonic() + LONGEST_S
    before = sys.getswitchinterval()
    while time.monotonic() < until:
        time.sleep(LOOK_S)
        sys.setswitchinterval(_KEEPS_S)
        try:
            if not any(_steps(frame) for frame in sys._current_frames().values()):
                return action()
        finally:
            sys.setswitchinterval(before)
    raise Busy("A thread has been in an optimizer's step for a minute.")


def _steps(frame: FrameType | None) -> bool:
    return any(in_package(f.f_code.co_filename, "torch/optim/optimizer.py") for f in outward(frame))
