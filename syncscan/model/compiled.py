"""Breaks, skipped frames and recompiles that torch.compile's dynamo reported while a program ran."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import msgspec

MOST = 10_000
"""Events of one record; capture stores fewer."""
Line = Annotated[int, msgspec.Meta(ge=-1, le=2**31)]


class CompileKind(Enum):
    """Outcomes of a frame that dynamo tried to compile."""

    BREAK = "break"
    """A graph ends at this line, it runs eagerly, and another graph goes on behind it."""
    SKIPPED = "skipped"
    """The whole frame runs eagerly."""
    RECOMPILED = "recompiled"
    """The frame was compiled once more, as a guard of an earlier compilation failed."""

    NO_CUDA_GRAPH = "no CUDA graph"
    """Inductor compiled the frame, and launches its kernels one by one though CUDA graphs were asked for."""


class CompileEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A graph break, a skipped frame or a recompile, with dynamo's reason."""

    kind: CompileKind
    reason: Annotated[str, msgspec.Meta(max_length=2000)]
    hint: Annotated[str, msgspec.Meta(max_length=2000)] = ""
    """Dynamo's advice; older versions of torch give none."""
    file: str
    line: Line
    """That stopped it; of a recompile, and where dynamo names no line, the frame's first."""
    function: str
    frame: str
    """The function that was to be compiled; another one where it had `function` inlined."""
    frame_file: str = ""
    frame_line: Line = -1
    """Its first."""
    frame_last: Line = -1
    """Its last, of a skipped frame whose file was at hand."""
    count: Annotated[int, msgspec.Meta(ge=1, le=2**62)] = 1
    """Number of such reports from dynamo."""


class CompileRecord(msgspec.Struct, frozen=True, kw_only=True):
    """All messages of dynamo, and the code that they are about."""

    torch: str
    """Its version."""
    frames: Annotated[int, msgspec.Meta(ge=0, le=2**62)] = 0
    """That dynamo took up, a recompile and what goes on behind a break each counted."""
    graphs: Annotated[int, msgspec.Meta(ge=0, le=2**62)] = 0
    """That it made of them."""
    events: Annotated[tuple[CompileEvent, ...], msgspec.Meta(max_length=MOST)] = ()
    notes: tuple[str, ...] = ()
    """Facts that aren't known, and why."""
