"""Libraries whose own code in C opens files by their paths: their functions get the path of the copy."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from types import BuiltinFunctionType, ModuleType
from typing import Any

from syncscan.patches import Patches
from syncscan.scratch.redirect.functions import PathFunctions

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
