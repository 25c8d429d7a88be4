"""From Python frames to the user's line and the framework's, and to the modules around it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from syncscan.model.capture import Frame
from syncscan.model.finding import Source
from syncscan.model.libraries import in_package, is_library, passes_on
from syncscan.model.names import frame_parts

_MODULE = "nn.Module: "
_LOOPS = frozenset("fit train learn run fine_tune fit_one_cycle evaluate validate test predict".split())
"""What libraries call the method that runs a whole training or evaluation: `Trainer.train` and `evaluate` in
transformers and TRL, `fit`, `validate`, `test` and `predict` in Lightning, `Engine.run` in ignite, `Learner.fine_tune`
and `fit_one_cycle` in fastai, `learn` in stable_baselines3 (their documentation)."""


class Place(msgspec.Struct, frozen=True):
    """The user's line, the framework's line inside it, and whose the sync is: `user`, `framework` or `unknown`."""

    user: Source | None
    framework: Source | None
    owner: str
    in_loop: bool = False
    """Whether the user's line only starts a framework's loop, `Trainer(…).train()`: it is the same for every sync."""


def pick(frames: Sequence[Frame], exact: bool) -> Place:
    """The innermost user frame, and the framework frame below it that made the call.

    Args:
        frames: outermost first.
        exact: whether the frames' lines are the lines being executed (capture) or those of the `def` (the profiler).
    """
    inner: list[Frame] = []
    for frame in reversed(frames):
        if not is_library(frame.file):
            return Place(_source(frame, exact), _decides(inner, exact), _owner(inner), _in_loop(inner))
        if not frame.file.startswith("<"):
            inner.append(frame)
    return Place(None, _decides(inner, exact), "framework" if _owner(inner) == "framework" else "unknown")


def _decides(inner: Sequence[Frame], exact: bool) -> Source | None:
    """Of a framework's frames, innermost first, the first that doesn't only pass the call on; else the innermost."""
    frame = next((f for f in inner if not passes_on(f.file)), inner[0] if inner else None)
    return _source(frame, exact) if frame else None


def _owner(inner: Sequence[Frame]) -> str:
    return "user" if all(passes_on(f.file) for f in inner) else "framework"


def _in_loop(inner: Sequence[Frame]) -> bool:
    """Whether the outermost of a framework's frames, innermost first, is its training loop; `Module.train` is none."""
    entry = next((f for f in reversed(inner) if not passes_on(f.file)), None)
    return entry is not None and entry.function in _LOOPS and not in_package(entry.file, "torch")


def _source(frame: Frame, exact: bool) -> Source:
    return Source(frame.file, frame.line, frame.function, exact)


def parse(names: Sequence[str]) -> tuple[Frame, ...]:
    """The frames among recorded names, `file.py(LINE): function`; built-ins and modules are left out."""
    return tuple([Frame(*parts) for parts in map(frame_parts, names) if parts])


def modules(names: Sequence[str]) -> tuple[str, ...]:
    """The nn.Modules among recorded names, outermost first."""
    return tuple([n.removeprefix(_MODULE) for n in names if n.startswith(_MODULE)])
