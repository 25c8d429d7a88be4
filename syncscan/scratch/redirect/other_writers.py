"""Writers past Python's functions: programs that a program starts, and libraries whose own code in C opens files.

Other Pythons join the view, and other programs can only write where all may. Functions of known libraries get the path
of the copy.
"""

from __future__ import annotations

import functools
import inspect
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import BuiltinFunctionType, ModuleType
from typing import Any

from syncscan.patches import Patches
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


WRITES, READS, EITHER = "writes", "reads", "either"
FUNCTIONS: Mapping[str, Mapping[str, str]] = {
    "torch": {
        "_C.PyTorchFileWriter": WRITES,
        "_C.PyTorchFileReader": READS,
        "jit.save": WRITES,
        "jit.load": READS,
        "jit.ScriptModule.save": WRITES,
        "jit.RecursiveScriptModule.save": WRITES,
        "from_file": EITHER,
        "UntypedStorage.from_file": EITHER,
    },
    "sqlite3": {"connect": EITHER, "dbapi2.connect": EITHER},
    "safetensors": {"serialize_file": WRITES, "safe_open": READS},
    "tokenizers": {"Tokenizer.save": WRITES, "Tokenizer.from_file": READS, "models.Model.save": WRITES},
    "h5py": {"h5f.open": EITHER, "h5f.create": WRITES, "h5f.is_hdf5": READS},
    "cv2": {"imwrite": WRITES, "imread": READS, "VideoWriter": WRITES, "VideoCapture": READS},
}
"""Functions that take a path among their first arguments, by library, with how they use it."""


def redirect(functions: PathFunctions, module: ModuleType, patches: Patches) -> None:
    """Have the functions of a library that was just imported get the paths of copies."""
    for dotted, does in FUNCTIONS[module.__name__].items():
        holder: Any = module
        *outer, name = dotted.split(".")
        for part in outer:
            holder = getattr(holder, part, None)
        original = vars(holder).get(name, getattr(holder, name, None)) if holder is not None else None
        if original is None:
            continue
        bound = isinstance(holder, type) and isinstance(original, (staticmethod, classmethod, BuiltinFunctionType))
        call = getattr(holder, name) if bound else original
        stand_in = _with_copies(functions, call, does, skip=isinstance(holder, type) and not bound)
        patches.set(holder, name, staticmethod(stand_in) if bound else stand_in)


def _with_copies(functions: PathFunctions, call: Callable[..., Any], does: str, *, skip: bool) -> Callable[..., Any]:
    """Return a function that calls another with the copy in place of the first path among its arguments."""

    @functools.wraps(call, updated=())
    def called(*arguments: Any, **named: Any) -> Any:
        given = list(arguments)
        for number, value in enumerate(given):
            if not (skip and number == 0) and _is_path(value):
                given[number] = _copy(functions, value, does)
                return call(*given, **named)
        for name, value in named.items():
            if name in ("filename", "file", "f", "database", "name", "path") and _is_path(value):
                return call(*given, **{**named, name: _copy(functions, value, does)})
        return call(*given, **named)

    return called


def _is_path(value: Any) -> bool:
    return isinstance(value, str | bytes | os.PathLike)


def _copy(functions: PathFunctions, value: Any, does: str) -> Any:
    """Return where a library finds a path of the user's."""
    text = os.fsdecode(value)
    if text in ("", ":memory:") or "://" in text:
        return value
    if text.startswith("file:"):
        path, mark, query = text[len("file:") :].partition("?")
        return (
            value
            if "mode=memory" in query or path == ":memory:"
            else f"file:{_found(functions, path, does)}{mark}{query}"
        )
    found = _found(functions, text, does)
    return os.fsencode(found) if isinstance(value, bytes) else found


def _found(functions: PathFunctions, path: str, does: str) -> str:
    tree = functions.tree
    inner = tree.path(path)
    if does == READS:
        return tree.where(inner)
    if tree.is_there(inner):
        return tree.written(inner, keep=does == EITHER)
    return tree.made(inner)
