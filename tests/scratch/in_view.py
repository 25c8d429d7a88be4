"""Runs a function in a view: as commands do, in a process of its own, or as dry tests do, within this one."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable

from syncscan.scratch import Scratch
from syncscan.scratch.scratch_view import PYTHON


def run(scratch: Scratch, program: Callable[[], None]) -> None:
    """Run a program that writes by Python's functions alone; what it raises fails the test.

    A process would be forked from all that the tests before have loaded, and look through it for those functions.
    """
    if scratch.kind == PYTHON:
        with scratch.entered():
            program()
    else:
        run_apart(scratch, program)


def run_apart(scratch: Scratch, program: Callable[[], None]) -> None:
    """Run a program in a process of its own; what it raises fails the test."""
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
