"""Load the function that `SCRIPT:FUNCTION` names; a script is imported as a module, without its main part."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from syncscan.errors import UsageError


def function_of(script: str, name: str) -> Callable[..., Any]:
    """Return a script's function; it is imported under a name other than `__main__`, its folder first on `sys.path`."""
    module = _imported(Path(script))
    function = getattr(module, name, None)
    if callable(function):
        return function  # type: ignore[no-any-return]
    names = [n for n, v in vars(module).items() if callable(v) and not n.startswith("_")]
    own = [n for n in names if getattr(getattr(module, n), "__module__", "") == module.__name__]
    what = f"has no function '{name}'" if function is None else f"has '{name}', which is not a function"
    raise UsageError(f"{script} {what}.", f"It has: {', '.join(own[:8]) or 'no functions'}.")


def _imported(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"There is no script at {path}.")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} can't be imported as a Python module.", "Its name must end in .py.")
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.resolve().parent))
    spec.loader.exec_module(module)
    return module
