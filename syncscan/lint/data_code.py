"""Tell code that makes data on the host, in a loader's workers, from code that runs on the device."""

from __future__ import annotations

import ast
import re

from syncscan.source.code_pattern import matched
from syncscan.source.names import last_name, parameters
from syncscan.source.tree import Function, SourceTree

_TRANSFORMS = ("torchvision.transforms", "torchvision.tv_tensors")
_DATA = re.compile(r"^(img|image|images|pic|clip|video|sample|inpt|batch|target)$")


def imports_transforms(tree: SourceTree) -> bool:
    """Return whether a file works with torchvision's transforms of images."""
    return any(name.startswith(_TRANSFORMS) for name in tree.imported.values())


def made_for_data(tree: SourceTree) -> frozenset[str]:
    """Return the names of classes that a dataset of the file makes instances of, for its `__getitem__` to call."""
    datasets = (tree.class_of(function) for function in tree.functions if function.name == "__getitem__")
    made = (matched("$name(...)", part) for dataset in datasets if dataset for part in ast.walk(dataset))
    return frozenset(call.name.id for call in made if call and isinstance(call.name, ast.Name))


def transforms_data(node: Function, owner: ast.ClassDef) -> bool:
    """Return whether a forward is a transform's, which a loader's workers run: it takes data and has no layers."""
    given = parameters(node)[1:2]
    calls = (matched("$of.$layer(...)", part) for part in ast.walk(owner))
    layers = any(call and last_name(call.of) == "nn" for call in calls)
    return bool(given) and _DATA.match(given[0].arg) is not None and not layers
