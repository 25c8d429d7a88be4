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

    Args:
        by: what marks the steps.
        name: glob of the scopes, or name of the framework.
        calls: of a repeated sequence, how many it has.
        asked: whether the caller wanted the whole as one step.
        chosen: of the steps found the first that is analyzed, and the first behind, where the caller chose some.
        count: how many were found, where some of them were chosen.
    """

    by: FoundBy = FoundBy.NONE
    name: str = ""
    calls: int = 0
    asked: bool = False
    chosen: tuple[int, int] | None = None
    count: int = 0


NO_STEPS = StepsFound()
