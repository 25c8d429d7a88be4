"""Tell by what a file shows which expressions make a module, whatever its name: `f = nn.Linear(4, 4).cuda()`."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from syncscan.lint.imported_names import FileNames, key

RETURN_THEMSELVES = frozenset(
    "to cuda cpu xpu mtia train eval half bfloat16 float double type requires_grad_ apply to_empty share_memory".split()
)
"""Methods that return the module that they are called on."""
_NO_MODULES = ("nn.Parameter", "nn.functional", "nn.utils", "nn.init", "nn.parameter")
_WRAPPERS = frozenset("compile jit.script jit.trace jit.freeze".split())
"""Functions of torch that return a module for a module."""
_OF_OTHERS = re.compile(r"^(torchvision\.models|timm)\.(\w+\.)*[a-z]\w*$|(Model|Network|Net)\w*\.from_pretrained$")
"""Functions of libraries that return one."""


def makes_module(node: ast.expr | None, names: FileNames, is_module: Callable[[str], bool]) -> bool:
    """Return whether an expression is a module that it makes, or one that `is_module` knows as it is written."""
    if not isinstance(node, ast.Call):
        return node is not None and is_module(key(node))
    called, of_torch = names.of(node.func), names.torch(node.func)
    if of_torch in _WRAPPERS or called in ("copy.deepcopy", "copy.copy"):
        return bool(node.args) and makes_module(node.args[0], names, is_module)
    if of_torch:
        return of_torch.startswith("nn.") and not of_torch.startswith(_NO_MODULES)
    if called in names.modules or _OF_OTHERS.search(called):
        return True
    returns_itself = isinstance(node.func, ast.Attribute) and node.func.attr in RETURN_THEMSELVES
    return returns_itself and makes_module(node.func.value, names, is_module)  # type: ignore[attr-defined]
