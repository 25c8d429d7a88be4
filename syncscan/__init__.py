"""syncscan finds the lines where a PyTorch program makes its host wait for its device, and their cost.

    analysis = syncscan.analyze("trace.json.gz")
    with syncscan.profile() as prof: ... prof.step()
    with syncscan.guard() as guard: ... guard.step()

Importing the package costs nothing: each public name is imported when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from syncscan.version import __version__

if TYPE_CHECKING:
    from syncscan.allow_blocks import allow as allow
    from syncscan.api import analyze as analyze
    from syncscan.capture.session import Session as Session
    from syncscan.capture.session import profile as profile
    from syncscan.dryrun.pretend import pretend_gpu as pretend_gpu
    from syncscan.errors import MissingExtra as MissingExtra
    from syncscan.errors import ProgramFailed as ProgramFailed
    from syncscan.errors import SyncscanError as SyncscanError
    from syncscan.errors import TraceEmpty as TraceEmpty
    from syncscan.errors import TraceError as TraceError
    from syncscan.errors import TraceNotFound as TraceNotFound
    from syncscan.errors import TraceTooLarge as TraceTooLarge
    from syncscan.errors import TraceUnreadable as TraceUnreadable
    from syncscan.errors import UsageError as UsageError
    from syncscan.fixing import fix as fix
    from syncscan.fleet import analyze_fleet as analyze_fleet
    from syncscan.guarding.guard import Guard as Guard
    from syncscan.guarding.guard import SyncWarning as SyncWarning
    from syncscan.guarding.guard import UnexpectedSync as UnexpectedSync
    from syncscan.guarding.guard import guard as guard
    from syncscan.guarding.guarded_sync import GuardedSync as GuardedSync
    from syncscan.model.analysis import Analysis as Analysis
    from syncscan.model.analysis import Picture as Picture
    from syncscan.model.finding import Finding as Finding
    from syncscan.model.finding import SyncPoint as SyncPoint
    from syncscan.model.fix import Fixed as Fixed
    from syncscan.model.habit import Habit as Habit
    from syncscan.model.projection import Projection as Projection
    from syncscan.model.trace import Category as Category
    from syncscan.proof.outcome import Proof as Proof
    from syncscan.proof.prove import prove as prove
    from syncscan.watching.start import watch as watch
    from syncscan.watching.watch import Watch as Watch

_HOMES = {
    "Analysis": "syncscan.model.analysis",
    "Category": "syncscan.model.trace",
    "Finding": "syncscan.model.finding",
    "Fixed": "syncscan.model.fix",
    "Guard": "syncscan.guarding.guard",
    "GuardedSync": "syncscan.guarding.guarded_sync",
    "Habit": "syncscan.model.habit",
    "MissingExtra": "syncscan.errors",
    "Picture": "syncscan.model.analysis",
    "ProgramFailed": "syncscan.errors",
    "Projection": "syncscan.model.projection",
    "Proof": "syncscan.proof.outcome",
    "Session": "syncscan.capture.session",
    "SyncPoint": "syncscan.model.finding",
    "SyncWarning": "syncscan.guarding.guard",
    "SyncscanError": "syncscan.errors",
    "TraceEmpty": "syncscan.errors",
    "TraceError": "syncscan.errors",
    "TraceNotFound": "syncscan.errors",
    "TraceTooLarge": "syncscan.errors",
    "TraceUnreadable": "syncscan.errors",
    "UnexpectedSync": "syncscan.guarding.guard",
    "UsageError": "syncscan.errors",
    "Watch": "syncscan.watching.watch",
    "allow": "syncscan.allow_blocks",
    "analyze": "syncscan.api",
    "analyze_fleet": "syncscan.fleet",
    "fix": "syncscan.fixing",
    "guard": "syncscan.guarding.guard",
    "pretend_gpu": "syncscan.dryrun.pretend",
    "profile": "syncscan.capture.session",
    "prove": "syncscan.proof.prove",
    "watch": "syncscan.watching.start",
}
"""Module of each public name."""

_EXTENSION = ("load_ipython_extension", "unload_ipython_extension")
"""Names that `%load_ext syncscan` looks up, for IPython only."""

__all__ = [
    "Analysis",
    "Category",
    "Finding",
    "Fixed",
    "Guard",
    "GuardedSync",
    "Habit",
    "MissingExtra",
    "Picture",
    "ProgramFailed",
    "Projection",
    "Proof",
    "Session",
    "SyncPoint",
    "SyncWarning",
    "SyncscanError",
    "TraceEmpty",
    "TraceError",
    "TraceNotFound",
    "TraceTooLarge",
    "TraceUnreadable",
    "UnexpectedSync",
    "UsageError",
    "Watch",
    "__version__",
    "allow",
    "analyze",
    "analyze_fleet",
    "fix",
    "guard",
    "pretend_gpu",
    "profile",
    "prove",
    "watch",
]

# Hidden from type checkers: a module with `__getattr__` has every name, and a misspelt one would pass.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name in _HOMES:
            value = globals()[name] = getattr(importlib.import_module(_HOMES[name]), name)
            return value  # and from now on without coming here: `syncscan.allow` stands in hot loops
        if name in _EXTENSION:
            return getattr(importlib.import_module("syncscan.notebook"), name)
        if name == "tensorboard":
            return importlib.import_module("syncscan.tensorboard")
        raise AttributeError(f"module 'syncscan' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
