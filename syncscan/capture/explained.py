"""Add dynamo's reports, from the run or from one further step, to the traces of a script's captures."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import msgspec

from syncscan.capture.compiling import Compiling
from syncscan.capture.given_to_dynamo import NONE_CALLED, NOT_TRIED, GivenToDynamo
from syncscan.capture.session import Session

FAILED = "Dynamo's explanations weren't stored: {}"
NO_FURTHER_STEP = (
    "The program compiles nothing, and ended with the capture, so there was no extra step in which dynamo could "
    "compile its modules."
)


class Explained:
    """Listens to dynamo from now on; where it has nothing to do, gives it one step when the captures are over.

    Args:
        finish: called where that step is over and nobody else says so.
    """

    def __init__(self, finish: Callable[[], None]) -> None:
        self._compiling = Compiling()
        self._given: GivenToDynamo | None = None
        self._finish = finish
        self._over = False
        self._pid = os.getpid()

    def takes_a_step(self) -> bool:
        """Return whether one more step is wanted after the captures; the first call begins the explanation."""
        self._compiling.refresh()
        if self._over or (self._given is None and self._compiling.heard):
            return False
        if self._given is None:
            self._given = GivenToDynamo(self._again)
            self._given.begin()
        return True

    def step_ended(self) -> bool:
        """Note that a step has ended; True where it was the one that dynamo got, and that is over now."""
        self._compiling.refresh()
        if self._given is None or self._over or os.getpid() != self._pid:
            return False
        self._over = True
        self._given.end()
        return True

    def close(self, sessions: Sequence[Session]) -> None:
        """Stop, and add dynamo's reports to the traces of these sessions."""
        if self._given is not None:
            self._given.end()
        record = self._compiling.record(tried=self._tried, notes=self._notes())
        self._compiling.close()
        for session in sessions:
            session.add({"compiled": msgspec.to_builtins(record)}, FAILED)

    @property
    def _tried(self) -> bool:
        return self._given is not None and self._given.modules > 0

    def _notes(self) -> list[str]:
        if self._given is not None:
            return [NOT_TRIED if self._given.modules else NONE_CALLED]
        return [] if self._compiling.heard else [NO_FURTHER_STEP]

    def _again(self) -> None:
        """Handle a module's second call: the next step has begun, and the program didn't say so."""
        if self.step_ended():
            self._finish()
