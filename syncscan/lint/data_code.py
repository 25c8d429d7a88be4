"""Tell code that makes data on the host, in a loader's workers, from code that runs on the device."""

from __future__ import annotations

import ast
import re

from syncscan.lint.imported_names import last_name
from syncscan.lint.tree import walk


def imports_transforms(tree: ast.Module) -> bool:
    """Return whether a file works with torchvision's transforms of images."""
    names = (
        f"{node.module}.{alias.name}" if isinstance(node, ast.ImportFrom) else alias.name
        for node in tree.body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    )
    return any(name.startswith(("torchvision.transforms", "torchvision.tv_tensors")) for name in names)


def made_for_data(tree: ast.Module) -> frozenset[str]:
    """Return the names of classes that a dataset of the file makes instances of, for its `__getitem__` to call."""
    datasets = (
        node
        for node in walk(tree)
        if isinstance(node, ast.ClassDef)
        and any(isinstance(part, ast.FunctionDef) and part.name == "__getitem__" for part in node.body)
    )
    return frozenset(
        part.func.id
        for dataset in datasets
        for part in walk(dataset)
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Name)
    )


_DATA = re.compile(r"^(img|image|images|pic|clip|video|sample|inpt|batch|target)$")


def transforms_data(node: ast.FunctionDef | ast.AsyncFunctionDef, owner: ast.ClassDef) -> bool:
    """Return whether a forward is a transform's, which a loader's workers run: it takes data and has no layers."""
    given = [argument.arg for argument in node.args.args[1:2]]
    layers = any(
        isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and last_name(part.func.value) == "nn"
        for part in walk(owner)
    )
    return bool(given) and _DATA.match(given[0]) is not None and not layers
