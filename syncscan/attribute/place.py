"""From Python frames to the user's line and the framework's, and to the modules around it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from syncscan.model.capture import Frame
from syncscan.model.finding import Source
from syncscan.model.libraries import is_library
from syncscan.model.names import frame_parts

_MODULE = "nn.Module: "
_WRAPPERS = re.compile(
    r"(^|/)torch/(_tensor|functional|_jit_internal|_ops|_compile|nn/functional|nn/modules/module|cuda/\w+|cuda/__init__"
    r"|autograd/\w+|utils/_contextlib|_dynamo/eval_frame|accelerator/\w+|xpu/\w+)\.py$"
)
"""Torch files that only pass a call on: a sync in them is the caller's."""


@dataclass(frozen=True, slots=True)
class Place:
    """The user's line, the framework's line inside it, and whose the sync is: `user`, `framework` or `unknown`."""

    user: Source | None
    framework: Source | None
    owner: str


def pick(frames: Sequence[Frame], exact: bool) -> Place:
    """The innermost user frame, and the framework frame below it that made the call.

    Args:
        frames: outermost first.
        exact: whether the frames' lines are the lines being executed (capture) or those of the `def` (the profiler).
    """
    inner: list[Frame] = []
    for frame in reversed(frames):
        if not is_library(frame.file):
            return Place(_source(frame, exact), _source(inner[0], exact) if inner else None, _owner(inner))
        if not frame.file.startswith("<"):
            inner.append(frame)
    return Place(None, _source(inner[0], exact) if inner else None, "framework" if inner else "unknown")


def _owner(inner: Sequence[Frame]) -> str:
    return "user" if all(_WRAPPERS.search(f.file) for f in inner) else "framework"


def _source(frame: Frame, exact: bool) -> Source:
    return Source(frame.file, frame.line, frame.function, exact)


def parse(names: Sequence[str]) -> tuple[Frame, ...]:
    """The frames among recorded names, `file.py(LINE): function`; built-ins and modules are left out."""
    return tuple(Frame(*parts) for parts in map(frame_parts, names) if parts)


def modules(names: Sequence[str]) -> tuple[str, ...]:
    """The nn.Modules among recorded names, outermost first."""
    return tuple(n.removeprefix(_MODULE) for n in names if n.startswith(_MODULE))
