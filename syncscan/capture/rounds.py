"""Call a function at the end of each round of loops, or passes of a statement, in a running program.

Python tells of single jumps and lines of one function since 3.12 (`sys.monitoring`): a function that isn't watched runs
as fast as before, and of the watched one a jump or line costs some 100 ns. The program itself stays as it is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from types import CodeType
from typing import Any

from syncscan.capture.imports import unseen
from syncscan.capture.stack_frames import line_of
from syncscan.facts.loops import Loop

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

    def __init__(self, loops: Sequence[tuple[CodeType, Loop]], ended: Callable[[int], None]) -> None:
        self._loops, self._ended = loops, ended
        self._heads: dict[tuple[int, int, int], int] = {}
        self._number = -1

    def start(self) -> bool:
        """Start watching; return False where this Python can't, or no tool id is free."""
        self._number = _begin([code for code, _ in self._loops], "JUMP", self._jumped)
        return self._number >= 0

    def close(self) -> None:
        self._number = _end(self._number, [code for code, _ in self._loops])

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


class LinePasses:
    """Calls `began` when the program reaches some lines of a function, and `ended` when it has left them."""

    def __init__(
        self, code: CodeType, first: int, last: int, began: Callable[[], None], ended: Callable[[], None]
    ) -> None:
        self._code, self._first, self._last = code, first, last
        self._began, self._ended = began, ended
        self._inside = False
        self._number = -1

    def start(self) -> bool:
        self._number = _begin([self._code], "LINE", self._came)
        return self._number >= 0

    def close(self) -> None:
        self._number = _end(self._number, [self._code])

    def _came(self, code: CodeType, line: int) -> None:
        inside = self._first <= line <= self._last
        if inside and not self._inside:
            self._inside = True
            self._began()
        elif self._inside and not inside:
            self._inside = False
            self._ended()


def _begin(codes: Iterable[CodeType], event: str, action: Callable[..., Any]) -> int:
    """Watch functions; return the tool id, -1 where that isn't possible."""
    monitoring: Any = getattr(sys, "monitoring", None)
    number = -1 if monitoring is None else next((n for n in _NUMBERS if monitoring.get_tool(n) is None), -1)
    if number < 0:
        return -1
    unseen()
    kind = getattr(monitoring.events, event)
    monitoring.use_tool_id(number, NAME)
    monitoring.register_callback(number, kind, action)
    for code in codes:
        monitoring.set_local_events(number, code, kind)
    return number


def _end(number: int, codes: Iterable[CodeType]) -> int:
    if number >= 0:
        monitoring: Any = getattr(sys, "monitoring")  # noqa: B009  (of 3.12)
        for code in codes:
            monitoring.set_local_events(number, code, 0)
        for kind in (monitoring.events.JUMP, monitoring.events.LINE):
            monitoring.register_callback(number, kind, None)
        monitoring.free_tool_id(number)
    return -1
