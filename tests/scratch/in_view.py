"""Runs a function in a view, in a process of its own, as commands do."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable

from syncscan.scratch import Scratch


def run(scratch: Scratch, program: Callable[[], None]) -> None:
    """Run a program in a view; what it raises fails the test."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            scratch.enter()
            program()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0
