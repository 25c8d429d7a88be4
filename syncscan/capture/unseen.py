"""Keep torch's compiler from compiling syncscan's own functions.

Dynamo compiles every Python function that starts on a thread inside a compiled one, where a graph broke: a handler of a
signal, a callback of the garbage collector or of `sys.monitoring`, a filter of warnings too. It skips the files of a
list (`torch/_dynamo/trace_rules.py`), and those of a capture, a watch and a guard belong there. `guarding/allowed.py`
doesn't: `with syncscan.allow(…)` may stand in a compiled function, and breaks no graph.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from types import ModuleType

from syncscan.patches import when_imported

TRACED = "allowed.py"
"""The file of `guarding` that dynamo may trace."""

_asked = False


def unseen() -> None:
    """Let dynamo pass over syncscan's functions, now or once the program imports it; the first call does it all."""
    global _asked
    if not _asked:
        _asked = True
        when_imported("torch._dynamo", _skip)


def _skip(dynamo: ModuleType) -> None:
    with contextlib.suppress(Exception):  # a torch without such a list; whatever it is, the program's import goes on
        add = importlib.import_module("torch._dynamo.trace_rules").add
        for name in _names():
            add(name)


def _names() -> Iterator[str]:
    """Yield the packages and modules that dynamo passes over."""
    from pathlib import Path  # no process that only waits for torch imports it

    yield from ("syncscan.capture", "syncscan.watching")
    files = (Path(__file__).parents[1] / "guarding").glob("*.py")
    yield from (f"syncscan.guarding.{file.stem}" for file in files if file.name not in (TRACED, "__init__.py"))
