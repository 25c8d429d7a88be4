"""How the steps of a trace were found: what a reader has to know before believing any time a step."""

from __future__ import annotations

import enum

import msgspec


class FoundBy(str, enum.Enum):
    """What makes the steps of a trace; NONE: nothing does, so that it is one as a whole."""

    SCOPE = "scope"
    PROFILER = "profiler"
    FRAMEWORK = "framework"
    REPETITION = "repetition"
    NONE = "none"


class StepsFound(msgspec.Struct, frozen=True):
    """How steps were found.

    Args:
        by: what makes them.
        name: glob of the scopes, or name of the framework.
        calls: of a repeated sequence, how many it has.
        asked: whether the caller wanted the whole as one step.
        chosen: of the steps found the first that is analysed, and the first behind, where the caller chose some.
        count: how many were found, where some of them were chosen.
    """

    by: FoundBy = FoundBy.NONE
    name: str = ""
    calls: int = 0
    asked: bool = False
    chosen: tuple[int, int] | None = None
    count: int = 0


NO_STEPS = StepsFound()
