"""Pick the user's line, the framework's line and the enclosing modules from Python frames."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from syncscan.model.capture import Frame
from syncscan.model.finding import Source
from syncscan.model.libraries import in_package, is_library, passes_on
from syncscan.model.slice_names import frame_parts

_MODULE = "nn.Module: "
_LOOPS = frozenset("fit train learn run fine_tune fit_one_cycle evaluate validate test predict".split())
"""Library methods that run a whole training or evaluation: `Trainer.train` and `evaluate` in transformers and TRL,
`fit`, `validate`, `test` and `predict` in Lightning, `Engine.run` in ignite, `Learner.fine_tune` and `fit_one_cycle` in
fastai, `learn` in stable_baselines3 (source: their documentation)."""


class PickedLines(msgspec.Struct, frozen=True):
    """The user's line, the framework's line inside it, and the owner of the sync: `user`, `framework` or `unknown`."""

    user: Source | None
    framework: Source | None
    owner: str
    in_loop: bool = False
    """Whether the user's line only starts a framework's loop, such as `Trainer(…).train()`, and so is the same for
    every sync."""


def pick(frames: Sequence[Frame], exact: bool) -> PickedLines:
    """Return the innermost user frame and the framework frame below it that made the call.

    Args:
        frames: outermost first.
        exact: whether frames have the executed line (capture) or the line of the `def` (profiler).
    """
    inner: list[Frame] = []
    for frame in reversed(frames):
        if not is_library(frame.file):
            return PickedLines(_source(frame, exact), _decides(inner, exact), _owner(inner), _in_loop(inner))
        if not frame.file.startswith("<"):
            inner.append(frame)
    return PickedLines(None, _decides(inner, exact), "framework" if _owner(inner) == "framework" else "unknown")


def _decides(inner: Sequence[Frame], exact: bool) -> Source | None:
    """Return the first framework frame, innermost first, that doesn't merely forward the call; else the innermost."""
    frame = next((f for f in inner if not passes_on(f.file)), inner[0] if inner else None)
    return _source(frame, exact) if frame else None


def _owner(inner: Sequence[Frame]) -> str:
    return "user" if all(passes_on(f.file) for f in inner) else "framework"


def _in_loop(inner: Sequence[Frame]) -> bool:
    """Return whether the outermost framework frame is a training loop; `Module.train` isn't one."""
    entry = next((f for f in reversed(inner) if not passes_on(f.file)), None)
    return entry is not None and entry.function in _LOOPS and not in_package(entry.file, "torch")


def _source(frame: Frame, exact: bool) -> Source:
    return Source(frame.file, frame.line, frame.function, exact)


def parse(names: Sequence[str]) -> tuple[Frame, ...]:
    """Return the frames among recorded names `file.py(LINE): function`, without built-ins and modules."""
    return tuple([Frame(*parts) for parts in map(frame_parts, names) if parts])


def modules(names: Sequence[str]) -> tuple[str, ...]:
    """Return the nn.Modules among recorded names, outermost first."""
    return tuple([n.removeprefix(_MODULE) for n in names if n.startswith(_MODULE)])
