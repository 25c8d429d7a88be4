"""Capture a run's steps by their numbers: the shared part of the trainers' callbacks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from syncscan import api
from syncscan.capture.session import Session, profile
from syncscan.errors import UsageError
from syncscan.model.analysis import Analysis

BEFORE = {"warmup": 4, "wait": 1, "settle": 3, "calibrate": 10}
"""Steps that a capture runs before those that it records (see `syncscan.profile`), in the order of their weight: a run
that doesn't have as many before the first goes without the last of them."""


class RunSteps:
    """Records steps `first` to `last` of a run, both included, the run's first step being 1.

    `paths` are the traces written so far.
    """

    def __init__(self, first: int, last: int, out: str | os.PathLike[str] = "syncscan-out", **options: Any) -> None:
        if not 1 <= first <= last:
            raise UsageError(f"Steps {first} to {last}: steps begin at 1, and the last can't be before the first.")
        if taken := sorted(options.keys() & {*BEFORE, "active", "repeat", "start_at"}):
            raise UsageError(f"{', '.join(taken)}: the callback derives these from the first and last step.")
        self.first, self.last, self.out = first, last, out
        self.paths: list[Path] = []
        self._options = options
        self._session: Session | None = None

    def begin(self, done: int = 0) -> None:
        """Note that the run begins, or continues after `done` steps of an earlier one."""
        self.end()
        before = self.first - 1 - done
        if before < 0:
            return
        plan = _plan(before) | {"active": self.last - self.first + 1}
        self._session = profile(self.out, **plan, **self._options).__enter__()
        self.paths = self._session.paths

    def step(self) -> None:
        if self._session is not None:
            self._session.step()

    def end(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    @property
    def analysis(self) -> Analysis:
        """Return the analysis of the last trace."""
        if not self.paths:
            raise UsageError(f"Steps {self.first} to {self.last} weren't recorded: the run ended before.")
        return api.analyze(self.paths[-1])


class StepCallback:
    """Base of the trainers' callbacks: the steps to record, and their analysis afterwards."""

    def __init__(self, first: int, last: int, out: str | os.PathLike[str] = "syncscan-out", **options: Any) -> None:
        self.steps = RunSteps(first, last, out, **options)

    @property
    def analysis(self) -> Analysis:
        """Return the analysis of the recorded steps."""
        return self.steps.analysis


def _plan(before: int) -> dict[str, Any]:
    """Return how a capture spends the steps before the first recorded one."""
    plan = {}
    for name, steps in BEFORE.items():
        plan[name] = min(steps, before)
        before -= plan[name]
    if not plan["calibrate"]:  # nothing has to settle then
        plan["wait"] += plan["settle"]
    return plan | {"start_at": before}
