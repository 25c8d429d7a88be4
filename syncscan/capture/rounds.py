"""Call a function at the end of each round of loops in a running program.

Python tells of single jumps of one function since 3.12 (`sys.monitoring`): a function that isn't watched runs as fast
as before, and of the watched one a jump costs some 100 ns. The program itself stays as it is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any

from syncscan.capture.stack_frames import line_of
from syncscan.capture.unseen import unseen
from syncscan.source.loops import LoopLines

NAME = "syncscan"
_NUMBERS = (4, 3, 2, 5)
"""Tool ids for monitoring, those that debuggers and coverage don't use first."""


def can_watch() -> bool:
    """Return whether this Python reports single jumps, and has a free tool id."""
    monitoring = getattr(sys, "monitoring", None)
    return monitoring is not None and any(monitoring.get_tool(number) is None for number in _NUMBERS)


class Rounds:
    """Calls `ended` when a round of one of the loops is over, from `start` until `close`.

    A round ends where the loop jumps back to its header; one that `break` or an error leaves doesn't end. A loop is
    given by the function that it stands in and its lines; `ended` gets its place among them, on the loop's own thread.
    What that raises is raised in the loop.
    """

    def __init__(self, loops: Sequence[tuple[CodeType, LoopLines]], ended: Callable[[int], None]) -> None:
        self._loops, self._ended = loops, ended
        self._heads: dict[tuple[int, int, int], int] = {}
        self._number = -1

    def start(self) -> bool:
        """Start watching; return False where this Python can't, or no tool id is free."""
        monitoring: Any = getattr(sys, "monitoring", None)
        free = [] if monitoring is None else [n for n in _NUMBERS if monitoring.get_tool(n) is None]
        if not free:
            return False
        unseen()
        self._number = free[0]
        monitoring.use_tool_id(self._number, NAME)
        monitoring.register_callback(self._number, monitoring.events.JUMP, self._jumped)
        for code, _ in self._loops:
            monitoring.set_local_events(self._number, code, monitoring.events.JUMP)
        return True

    def close(self) -> None:
        if self._number < 0:
            return
        monitoring: Any = getattr(sys, "monitoring")  # noqa: B009  (of 3.12)
        for code, _ in self._loops:
            monitoring.set_local_events(self._number, code, 0)
        monitoring.register_callback(self._number, monitoring.events.JUMP, None)
        monitoring.free_tool_id(self._number)
        self._number = -1

    def _jumped(self, code: CodeType, at: int, to: int) -> Any:
        head = self._heads.get((id(code), at, to))
        if head is None:
            head = self._heads[id(code), at, to] = self._headed(code, at, to) if to < at else -1
        if head < 0:
            return getattr(sys, "monitoring").DISABLE  # noqa: B009  (of 3.12)
        self._ended(head)
        return None

    def _headed(self, code: CodeType, at: int, to: int) -> int:
        """Return the index of the loop that jumps back here; -1 for none.

        To its header; or, of a `while`, from its condition, which is compiled a second time at the end, to its body.
        """
        ends = line_of(code, at), line_of(code, to)
        for number, (its, loop) in enumerate(self._loops):
            if its is code and any(loop.first <= line < max(loop.body, loop.first + 1) for line in ends):
                return number
        return -1
