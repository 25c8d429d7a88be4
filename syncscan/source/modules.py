"""Tell which expressions of a file make a network or a layer of one: a module of torch."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from syncscan.source.code_pattern import key, matched
from syncscan.source.tree import SourceTree

_CLASSES = re.compile(r"^torch\.nn\.([A-Z]|modules\.)|(^|\.)(Lightning)?Module$|PreTrainedModel$")
"""Full names of classes that are modules."""
_RETURN_THEMSELVES = frozenset(
    "to cuda cpu xpu mtia train eval half bfloat16 float double type requires_grad_ apply to_empty share_memory".split()
)
"""Methods that return the module that they are called on."""
_NO_MODULES = tuple(f"torch.nn.{name}" for name in ("Parameter", "functional", "utils", "init", "parameter"))
_GIVE_ONE = frozenset("torch.compile torch.jit.script torch.jit.trace torch.jit.freeze copy.deepcopy copy.copy".split())
"""Functions that return a module for a module."""
_OF_OTHERS = re.compile(r"^(torchvision\.models|timm)\.(\w+\.)*[a-z]\w*$|(Model|Network|Net)\w*\.from_pretrained$")
"""Functions of libraries that return one."""


class Modules:
    """The modules of one file, by what makes them."""

    def __init__(self, tree: SourceTree) -> None:
        self.tree = tree
        classes = [node for node in tree.nodes if isinstance(node, ast.ClassDef)]
        bases = {c.name: [tree.full_name(base) for base in c.bases] for c in classes}
        names: set[str] = set()
        while more := {c for c, of in bases.items() if any(b in names or _CLASSES.search(b) for b in of)} - names:
            names |= more
        self._classes = names

    def makes(self, node: ast.expr | None, is_module: Callable[[str], bool]) -> bool:
        """Return whether an expression is a module that it makes, or one that `is_module` knows as it is written."""
        if not isinstance(node, ast.Call):
            return node is not None and is_module(key(node))
        name = self.tree.full_name(node.func)
        if name in _GIVE_ONE:
            return bool(node.args) and self.makes(node.args[0], is_module)
        if name.startswith("torch."):
            return name.startswith("torch.nn.") and not name.startswith(_NO_MODULES)
        if name in self._classes or _OF_OTHERS.search(name):
            return True
        method = matched("$module.$name(...)", node)
        return method is not None and method.name in _RETURN_THEMSELVES and self.makes(method.module, is_module)
