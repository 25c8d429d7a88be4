"""Skip what only a GPU can run: launches of Triton kernels, which wait for nothing; name extensions that are built."""

from __future__ import annotations

import functools
import importlib
import importlib.util
from collections.abc import Callable
from typing import Any

from syncscan.dryrun.patches import Patches
from syncscan.dryrun.recorder import DryRunSession

_LAUNCHERS = {"triton.runtime.jit": ("JITFunction",), "triton.runtime.autotuner": ("Autotuner", "Heuristics")}

_MISSING = (
    "Triton kernels were launched and not run: what they would compute is missing, so values such as a loss may be NaN,"
    " and where the program branches on them, waits may differ from a GPU's."
)


def pretend(session: DryRunSession, patches: Patches) -> None:
    """Skip launches of Triton's kernels, and note builds of extensions, until the patches are restored."""
    if importlib.util.find_spec("triton") is not None:
        for module, kinds in _LAUNCHERS.items():
            _triton(session, patches, module, kinds)
    extensions = importlib.import_module("torch.utils.cpp_extension")
    for name in ("load", "load_inline"):
        patches.set(extensions, name, _building(session, getattr(extensions, name)))


def _triton(session: DryRunSession, patches: Patches, module: str, kinds: tuple[str, ...]) -> None:
    try:
        owner = importlib.import_module(module)
    except ImportError:
        return
    for kind in kinds:
        launcher = getattr(owner, kind, None)
        if launcher is not None:
            patches.set(launcher, "run", _left_out(session))


def _left_out(session: DryRunSession) -> Callable[..., None]:
    """Return a launch that runs nothing, and that says so: its results are missing."""

    def run(kernel: Any, *args: Any, **kwargs: Any) -> None:
        session.seen += 1
        session.say(_MISSING)

    return run


def _building(session: DryRunSession, build: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(build)
    def built(name: str, *args: Any, **kwargs: Any) -> Any:
        session.seen += 1
        session.not_understood(f"extension {name}, built by torch.utils.cpp_extension.{build.__name__}")
        return build(name, *args, **kwargs)

    return built
