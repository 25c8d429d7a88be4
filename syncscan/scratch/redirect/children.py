"""Programs that a program starts: Python's join the view, and others can only write where all may."""

from __future__ import annotations

import functools
import inspect
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from syncscan.scratch.redirect.functions import PathFunctions

SITE = "site"
"""In a scratch folder: a `sitecustomize.py`, which Python runs at its start, from the first folder of `PYTHONPATH`."""
_JOINS = """\
import sys
sys.path[:] = [entry for entry in sys.path if entry != {site!r}]
sys.path.insert(0, {root!r})
try:
    from pathlib import Path
    from syncscan.scratch import redirect
    redirect.join(Path({folder!r}), [Path(path) for path in {passed!r}])
finally:
    sys.path.remove({root!r})
own = sys.modules.pop("sitecustomize", None)
try:
    import sitecustomize  # the user's, if there is one
except ImportError:
    sys.modules["sitecustomize"] = own
"""


class NotHeldBack(UserWarning):
    """A program is started whose writing isn't redirected, on a system that can't forbid it either."""


def let_python_join(folder: Path, passed: Sequence[Path]) -> None:
    """Have Python interpreters that are started from here on work in the view too."""
    site = folder / SITE
    site.mkdir()
    root = str(Path(__file__).parents[3])
    text = _JOINS.format(site=str(site), root=root, folder=str(folder), passed=[str(path) for path in passed])
    (site / "sitecustomize.py").write_text(text)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(site), os.environ.get("PYTHONPATH", ""))))


def popen(functions: PathFunctions, folder: Path, *, warned: bool) -> Callable[..., None]:
    """Return what stands in for `subprocess.Popen.__init__`: the folder where the program runs is that of the view.

    With `warned` it warns of programs that aren't held back.
    """
    original = subprocess.Popen.__init__
    parameters = inspect.signature(original)

    @functools.wraps(original)
    def started(self: Any, *arguments: Any, **options: Any) -> None:
        given = parameters.bind_partial(self, *arguments, **options)
        if given.arguments.get("cwd") is not None:
            given.arguments["cwd"] = functions.tree.where(functions.tree.path(given.arguments["cwd"]))
        if given.arguments.get("env") is not None:
            given.arguments["env"] = _with_site(given.arguments["env"], str(folder / SITE))
        if warned:
            _warn(given.arguments.get("args"))
        original(*given.args, **given.kwargs)

    return started


def _with_site(environment: Any, site: str) -> dict[Any, Any]:
    return {**environment, "PYTHONPATH": os.pathsep.join(filter(None, (site, environment.get("PYTHONPATH", ""))))}


def _warn(arguments: Any) -> None:
    first = arguments if isinstance(arguments, str | bytes | os.PathLike) else next(iter(arguments or ()), "")
    name = os.fsdecode(first)
    if name and name != sys.executable:
        warnings.warn(f"What '{name}' writes isn't redirected to a scratch copy.", NotHeldBack, stacklevel=4)
