"""How the steps of a trace were found, which decides how far to trust times per step."""

from __future__ import annotations

import enum

import msgspec


class FoundBy(str, enum.Enum):
    """The source of a trace's steps; NONE: nothing, so that the whole trace is one step."""

    SCOPE = "scope"
    PROFILER = "profiler"
    FRAMEWORK = "framework"
    REPETITION = "repetition"
    NONE = "none"


class StepsFound(msgspec.Struct, frozen=True):
    """How steps were found.

    `name` is the glob of the scopes or the framework's name; `calls` is how many a repeated sequence has; `asked` says
    that the caller wanted the whole as one step. Where the caller chose some of `count` steps, `chosen` is the first
    that is analyzed, and the first behind.
    """

    by: FoundBy = FoundBy.NONE
    name: str = ""
    calls: int = 0
    asked: bool = False
    chosen: tuple[int, int] | None = None
    count: int = 0


NO_STEPS = StepsFound()
