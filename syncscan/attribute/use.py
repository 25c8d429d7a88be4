"""Decide what a program does with a value that it reads: steer by it, only show it, or something unknown."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from syncscan.attribute.candidate_lines import reads_on
from syncscan.attribute.source_file import OWN, SourceFiles, function_with
from syncscan.model.finding import Source, Use

_SHOWS = frozenset(
    "print info debug warning error critical log log_metrics log_dict add_scalar add_scalars set_postfix "
    "set_description write append".split()
)
"""Functions and methods that print, log or store their arguments without deciding anything by them: `print`, and those
of `logging`, tqdm, TensorBoard, Weights & Biases, MLflow, Lightning, files and lists."""

_COMPUTES = frozenset("math cmath np numpy torch jnp".split())
"""Modules whose `log` is the logarithm and whose `append` returns a new array."""

_KEEPS = frozenset("float int bool round abs str repr format".split())
"""Functions that return their argument in another form."""


def use_of(source: Source, ops: Sequence[str], files: SourceFiles = OWN) -> Use:
    """Return what a function does with the value that it reads in a line.

    Args:
        source: the line, or the candidate lines.
        ops: ops around the call, outermost first.
        files: source files that may be read.

    Returns:
        UNKNOWN if the source isn't available, or if the value leaves the function.
    """
    tree = files.tree_of(source.file)
    function = function_with(tree, source) if tree else None
    lines = (source.line,) if source.exact else source.candidates
    if function is None or not lines:
        return Use.UNKNOWN
    parents = {child: node for node in ast.walk(function) for child in ast.iter_child_nodes(node)}
    reads = (node for line in lines for node in reads_on(function, line, ops))
    return _all_of(_becomes(node, function, parents, follow=True) for node in reads)


def _all_of(uses: Iterator[Use]) -> Use:
    """Return STEERS if any use steers, SHOWN if every use only shows the value, else UNKNOWN."""
    distinct = set(uses)
    if Use.STEERS in distinct:
        return Use.STEERS
    return Use.SHOWN if distinct == {Use.SHOWN} else Use.UNKNOWN


def _becomes(node: ast.AST, function: ast.AST, parents: dict[ast.AST, ast.AST], follow: bool) -> Use:
    """Return the use of an expression's value: by the expression around it, or by the names it is assigned to."""
    if isinstance(node, ast.Call) and _name(node) in ("print", "range"):  # these read their argument's value themselves
        return Use.SHOWN if _name(node) == "print" else Use.STEERS
    while node in parents and node is not function:
        child, node = node, parents[node]
        if _decides(node, child):
            return Use.STEERS
        if isinstance(node, ast.Call) and child is not node.func and _name(node) not in _KEEPS:
            return Use.SHOWN if _shows(node) else Use.UNKNOWN
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            return _of_names(node, function, parents) if follow else Use.UNKNOWN
        if isinstance(node, ast.stmt | ast.Lambda):
            return Use.UNKNOWN
    return Use.UNKNOWN


def _decides(node: ast.AST, child: ast.AST) -> bool:
    """Return whether `child` decides what `node` runs, how often, or which element it takes."""
    if isinstance(node, ast.If | ast.While | ast.IfExp | ast.Assert):
        return child is node.test
    if isinstance(node, ast.comprehension):
        return child in node.ifs or child is node.iter
    if isinstance(node, ast.For | ast.AsyncFor):
        return child is node.iter
    if isinstance(node, ast.Call):
        return child in node.args and _name(node) == "range"
    return (isinstance(node, ast.Subscript) and child is node.slice) or isinstance(node, ast.Match)


def _of_names(
    node: ast.Assign | ast.AnnAssign | ast.AugAssign, function: ast.AST, parents: dict[ast.AST, ast.AST]
) -> Use:
    """Return the use of the names that a value is assigned to; UNKNOWN for attributes and elements."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    names = {target.id for target in targets if isinstance(target, ast.Name)}
    if len(names) < len(targets):
        return Use.UNKNOWN
    if any(isinstance(n, ast.Global | ast.Nonlocal) and names & set(n.names) for n in ast.walk(function)):
        return Use.UNKNOWN
    uses = [n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id in names]
    loads = (n for n in uses if isinstance(n.ctx, ast.Load))
    use = _all_of(_becomes(load, function, parents, follow=False) for load in loads)
    given = [n for n in uses if isinstance(n.ctx, ast.Store) and not _is_given_a_constant(n, parents)]
    return use if use is Use.SHOWN or len(given) == len(targets) else Use.UNKNOWN


def _is_given_a_constant(name: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Return whether a constant is assigned to the name, as in `total = 0.0`, before values are added to it."""
    node = parents[name]
    return isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)


def _shows(call: ast.Call) -> bool:
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    if owner is None:
        return _name(call) == "print"
    return _name(call) in _SHOWS and not (isinstance(owner, ast.Name) and owner.id in _COMPUTES)


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


__all__ = ["use_of"]
