"""Resolve an expression to its full name by a file's imports: `F.one_hot` is `torch.nn.functional.one_hot`."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from syncscan.lint.tree import walk

_CONVENTIONS = {
    "torch": "torch",
    "F": "torch.nn.functional",
    "nn": "torch.nn",
    "np": "numpy",
    "dist": "torch.distributed",
}
"""Meaning of these names in a file that doesn't import them, such as a notebook's later cells."""


_MODULES = re.compile(r"^torch\.nn\.([A-Z]|modules\.)|(^|\.)(Lightning)?Module$|PreTrainedModel$")
"""Full names of classes that are modules."""


class FileNames:
    """The names of one file; `modules` are its classes that are modules."""

    def __init__(self, tree: ast.AST) -> None:
        self._full = dict(_CONVENTIONS)
        classes = []
        for node in walk(tree):
            if isinstance(node, ast.ClassDef):
                classes.append(node)
            if isinstance(node, ast.Import):
                for alias in node.names:
                    whole = alias.name if alias.asname else alias.name.partition(".")[0]
                    self._full[alias.asname or whole] = whole
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for alias in node.names:
                    self._full[alias.asname or alias.name] = f"{node.module}.{alias.name}"

        self.modules = self._modules_among(classes)

    def _modules_among(self, classes: list[ast.ClassDef]) -> frozenset[str]:
        names: set[str] = set()
        for _ in range(len(classes)):
            more = {c.name for c in classes if any((n := self.of(b)) in names or _MODULES.search(n) for b in c.bases)}
            if more <= names:
                break
            names |= more
        return frozenset(names)

    def of(self, node: ast.expr) -> str:
        """Return the dotted name of an expression with its first part resolved; empty if it isn't a name."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        return ".".join([self._full.get(node.id, node.id), *reversed(parts)])

    def torch(self, node: ast.expr) -> str:
        """Return the dotted name without `torch.` in front; empty if it isn't torch's."""
        name = self.of(node)
        return name.removeprefix("torch.") if name.startswith("torch.") else ""


def key(node: ast.expr) -> str:
    """Return the spelling of a name, an attribute or a constant item of one, as in environments; empty for others."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        inner = key(node.value)
        return f"{inner}.{node.attr}" if inner else ""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        inner = key(node.value)
        return f"{inner}[{node.slice.value!r}]" if inner else ""
    return ""


def argument(call: ast.Call, name: str, at: int = -1) -> ast.expr | None:
    """Return an argument of a call by name or position; None if it isn't given."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    return call.args[at] if 0 <= at < len(call.args) and not isinstance(call.args[at], ast.Starred) else None


def last_name(node: ast.expr) -> str:
    """Return the last part of a name or attribute, through subscripts: `agents[0].optimizer` → `optimizer`."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def constant(node: ast.expr | None) -> object:
    """Return a literal's value; None for anything else."""
    return node.value if isinstance(node, ast.Constant) else None


def is_true(node: ast.expr | None) -> bool:
    return constant(node) is True


def splats(call: ast.Call) -> bool:
    """Return whether a call forwards arguments that the source doesn't name: `f(*args)`, `f(**options)`."""
    return any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords)


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


__all__ = ["FileNames", "argument", "constant", "is_true", "key", "last_name", "makes_module", "splats"]
