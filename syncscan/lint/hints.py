"""Infer what a function's parameters and its class's attributes are, from annotations and from their use."""

from __future__ import annotations

import ast

from syncscan.lint import values as known
from syncscan.lint.evaluate import Environment, Evaluator
from syncscan.lint.values import HOST, TENSOR, UNKNOWN, Value, ValueKind
from syncscan.source.code_pattern import constant, key, parameters
from syncscan.source.modules import Modules
from syncscan.source.tree import Function, SourceTree, walk_own

_ELEMENTWISE = frozenset(
    "isnan isinf isfinite abs exp log sqrt square sigmoid tanh softmax log_softmax relu gelu silu where masked_select "
    "unique nonzero bmm matmul argmax topk sort argsort logsumexp clamp nan_to_num cumsum layer_norm dropout linear "
    "cross_entropy mse_loss nll_loss binary_cross_entropy_with_logits one_hot interpolate conv2d normalize".split()
)
"""Functions of torch whose first argument is a tensor rather than a list of tensors."""
_ONLY_CALLED = frozenset("size dim".split())
"""Methods of tensors that arrays have as attributes or not at all."""
_NOT_TELLING = frozenset("cuda data_ptr".split())
"""Method that modules have too."""


def parameters_of(function: Function) -> Environment:
    """Return the kinds of a function's parameters by their annotations; unknown without one."""
    extra = [a.arg for a in (function.args.vararg, function.args.kwarg) if a is not None]
    return {a.arg: _annotated(a.annotation) for a in parameters(function)} | dict.fromkeys(extra, UNKNOWN)


def _annotated(annotation: ast.expr | None) -> Value:
    if annotation is None:
        return UNKNOWN
    text = str(constant(annotation)) if isinstance(constant(annotation), str) else ast.unparse(annotation)
    if known.TENSOR_TYPES.search(text):
        whole = text.replace("torch.", "").replace("Optional[", "").replace(" | None", "").strip("[]")
        return TENSOR if known.TENSOR_TYPES.fullmatch(whole) else UNKNOWN
    return HOST if known.HOST_TYPES.match(text) else UNKNOWN


def hints_of(scope: Function | ast.Module, names: SourceTree) -> frozenset[str]:
    """Return the names and attributes that a function or a module's own code uses as only tensors can be."""
    used: set[str] = set()
    for node in walk_own(scope):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Attribute) and not names.torch_name(node.func):
            name = node.func.attr
            if (name in known.ONLY_TENSORS and name not in _NOT_TELLING) or (
                name in _ONLY_CALLED and not node.keywords
            ):
                used.add(key(node.func.value))
        elif names.torch_name(node.func).rpartition(".")[2] in _ELEMENTWISE and node.args:
            used.add(key(node.args[0]))
    return frozenset(used - {"", "self", "super"})


def attributes_of(owner: ast.ClassDef, modules: Modules) -> tuple[Environment, frozenset[str]]:
    """Return a class's attributes as `self.name`, by what its methods assign; and those that are submodules."""
    values: Environment = {}
    submodules: set[str] = set()
    changed: set[str] = set()
    evaluator = Evaluator(modules, {})
    for node in ast.walk(owner):
        if isinstance(node, ast.AugAssign):
            changed.add(key(node.target))
        elif isinstance(node, ast.Call) and key(node.func) == "self.register_buffer" and node.args:
            values[f"self.{constant(node.args[0])}"] = TENSOR
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Attribute) and (written := key(target)).startswith("self."):
                    if modules.makes(node.value, submodules.__contains__):
                        submodules.add(written)
                    else:
                        value = evaluator.value(node.value)
                        values[written] = value if values.get(written, value) == value else UNKNOWN
    telling = (ValueKind.TENSOR, ValueKind.HOST, ValueKind.CPU, ValueKind.LOADER, ValueKind.EVENT)
    stored = {
        name: v
        for name, v in values.items()
        if v.kind in telling and not (v.kind is ValueKind.HOST and name in changed)
    }
    return stored, frozenset(submodules)


__all__ = ["attributes_of", "hints_of", "parameters_of"]
