"""Load the function that `SCRIPT:FUNCTION` names; a script is imported as a module, without its main part."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from syncscan.errors import UsageError


@dataclass(frozen=True, slots=True)
class Target:
    """An imported script, and how long its import took in µs."""

    module: ModuleType
    path: Path
    import_us: float

    def function(self, name: str) -> Callable[..., Any]:
        """Return the callable of that name in the script.

        Raises:
            UsageError: there is none, or it can't be called.
        """
        function = getattr(self.module, name, None)
        if callable(function):
            return function  # type: ignore[no-any-return]
        names = [n for n, v in vars(self.module).items() if callable(v) and not n.startswith("_")]
        own = [n for n in names if getattr(getattr(self.module, n), "__module__", "") == self.module.__name__]
        what = f"has no function '{name}'" if function is None else f"has '{name}', which is not a function"
        raise UsageError(f"{self.path} {what}.", f"It has: {', '.join(own[:8]) or 'no functions'}.")


def split(spec: str) -> tuple[str, str]:
    """Split `infer.py:step` into (`infer.py`, `step`).

    Raises:
        UsageError: it isn't of that form.
    """
    script, colon, name = spec.rpartition(":")
    if not colon or not script or not name.isidentifier():
        raise UsageError(f"'{spec}' is not of the form SCRIPT:FUNCTION.", "Write, for example, infer.py:step.")
    return script, name


def load(script: str) -> Target:
    """Import a script under a name other than `__main__`, with its folder first on `sys.path`, as in Python.

    Raises:
        UsageError: there is no such file, or its name can't be a module's.
    """
    path = Path(script)
    if not path.is_file():
        raise UsageError(f"There is no script at {script}.")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{script} can't be imported as a Python module.", "Its name must end in .py.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    sys.path.insert(0, str(path.resolve().parent))
    began = time.perf_counter_ns()
    spec.loader.exec_module(module)
    return Target(module, path, (time.perf_counter_ns() - began) / 1e3)
