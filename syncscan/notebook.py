"""Analyze a notebook cell: `%load_ext syncscan` adds `%%syncscan`, which captures its cell.

The cell is taken as one step and run as often as the capture needs, as `%%timeit` does. A cell that steps the same
optimizer more than once is taken as a loop instead: it runs once, and each step of the optimizer ends a step.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from syncscan.errors import SyncscanError, UsageError
from syncscan.model.analysis import Analysis


def load_ipython_extension(shell: Any) -> None:
    """Add the cell magic `%%syncscan` to a running IPython."""
    shell.register_magic_function(_Magic(shell).syncscan, "cell", "syncscan")


def unload_ipython_extension(shell: Any) -> None:
    """Remove the magic."""
    shell.magics_manager.magics["cell"].pop("syncscan", None)


class _Magic:
    def __init__(self, shell: Any) -> None:
        self._shell = shell

    def syncscan(self, line: str, cell: str) -> Analysis:
        """Capture this cell under the profiler, and report the host-device syncs in it.

        %%syncscan [--active N] [--warmup N] [--calibrate N] [--stacks] [--out FOLDER] [NAME]

        NAME is a variable that gets the analysis; FOLDER keeps the trace.
        """
        from IPython.core.error import UsageError as Shown

        try:
            options = _parser().parse_args(line.split())
            code = self._compiled(cell)
            with tempfile.TemporaryDirectory() as passing:
                analysis = _captured(lambda: exec(code, self._shell.user_ns), options, options.out or Path(passing))
        except SyncscanError as e:
            raise Shown(str(e)) from None
        if options.name:
            self._shell.user_ns[options.name] = analysis
        return analysis

    def _compiled(self, cell: str) -> Any:
        """Return the cell as code with the name of its cached source in IPython, which tracebacks and lines show."""
        source = self._shell.transform_cell(cell)
        name = self._shell.compile.cache(source, raw_code=cell)
        return self._shell.compile(source, name, "exec")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"%%syncscan: {message}.", self.format_usage().strip())


def _parser() -> _Parser:
    parser = _Parser(prog="%%syncscan", add_help=False)
    parser.add_argument("--active", type=int, default=3)
    parser.add_argument("--warmup", type=int, default=4)
    parser.add_argument("--calibrate", type=int, default=10)
    parser.add_argument("--stacks", action="store_true")
    parser.add_argument("--out", type=Path)
    parser.add_argument("name", nargs="?")
    return parser


def _captured(run: Callable[[], None], options: argparse.Namespace, folder: Path) -> Analysis:
    from syncscan import api
    from syncscan.capture.session import profile

    session = profile(
        folder,
        "cell",
        warmup=options.warmup,
        active=options.active,
        calibrate=options.calibrate,
        stacks=options.stacks,
        notify=_say,
    )
    with session, _CellLoop(session) as loop:
        while not session.done:
            loop.count = 0
            run()
            if loop.found:
                break
            session.step()
    if session.failed:
        raise UsageError(f"The capture failed: {session.failed}")
    if not session.paths:
        needed = session.plan.steps
        raise UsageError(
            f"The loop ended after {session.steps} steps, but the capture needs {needed}.",
            "Let it run longer, or record fewer steps: --calibrate 0 --warmup 1 --active 1.",
        )
    return api.analyze(session.paths[-1])


def _say(sentence: str) -> None:
    sys.stderr.write(f"{sentence}\n")


class _CellLoop:
    """Detects whether a cell is a loop: then its optimizer's steps are the steps."""

    def __init__(self, session: Any) -> None:
        from syncscan.capture.optimizer_hook import StepMarks

        self._session, self._marks = session, StepMarks()
        self._remove: Callable[[], None] = lambda: None
        self.count = 0
        self.found = False

    def __enter__(self) -> _CellLoop:
        from syncscan.capture.optimizer_hook import OptimizerHook

        self._remove = OptimizerHook(self._stepped).remove
        return self

    def __exit__(self, *raised: object) -> None:
        self._remove()

    def _stepped(self, optimizer: Any, arguments: Any, keywords: Any) -> None:
        from syncscan.capture.optimizer_hook import OptimizerCall

        if self._marks.saw(optimizer, fixed=True) is not OptimizerCall.STEP:
            return
        self.count += 1
        self.found = self.found or self.count > 1
        if self.found:
            self._session.step()
