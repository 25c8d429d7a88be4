"""syncscan finds the lines where a PyTorch program makes its host wait for its device, and says what each costs.

    analysis = syncscan.analyze("trace.json.gz")
    with syncscan.profile() as prof: ... prof.step()

Importing the package costs nothing: each public name is imported when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from syncscan.api import analyze as analyze
    from syncscan.capture.session import profile as profile
    from syncscan.capture.timing import time_step as time_step
    from syncscan.errors import SyncscanError as SyncscanError
    from syncscan.model.analysis import Analysis as Analysis

__version__ = "0.1.0"

_HOMES = {
    "Analysis": "syncscan.model.analysis",
    "SyncscanError": "syncscan.errors",
    "analyze": "syncscan.api",
    "time_step": "syncscan.capture.timing",
    "profile": "syncscan.capture.session",
    "load_ipython_extension": "syncscan.notebook",
    "unload_ipython_extension": "syncscan.notebook",
}

__all__ = ["Analysis", "SyncscanError", "__version__", "analyze", "profile", "time_step"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name == "tensorboard":
        return importlib.import_module("syncscan.tensorboard")
    raise AttributeError(f"module 'syncscan' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
