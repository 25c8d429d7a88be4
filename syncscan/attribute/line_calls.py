"""Tell from its source what a line calls and indexes, and what the host does with a value that it reads."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence, Set

from msgspec.structs import replace

from syncscan.attribute.source_file import OWN, SourceFiles
from syncscan.model.finding import Source, SyncPoint, Use
from syncscan.model.runtime_calls import is_synchronize
from syncscan.source.code_pattern import called, dotted, matched
from syncscan.source.tree import SourceTree, lines_of

_SPELLINGS = {
    "item": ("item", "float", "int", "bool", "complex", "tolist", "range"),
    "local_scalar_dense": (),
    "is_nonzero": ("bool", "any", "all"),
    "nonzero": ("nonzero", "where", "argwhere"),
    "nonzero_numpy": ("nonzero", "where"),
    "to": ("to", "cpu", "cuda", "tensor", "as_tensor", "tolist", "numpy", "type", "print", "new_tensor"),
    "copy": ("copy_", "to", "cpu", "cuda", "tolist"),
    "lift_fresh": ("tensor",),
    "unique_dim": ("unique",),
}
"""Op → how Python code spells it, where that isn't the op's own name."""
_BRANCH = (ast.If, ast.While, ast.Assert, ast.IfExp)


def candidates(source: Source, ops: Sequence[str], api: str, files: SourceFiles = OWN) -> tuple[int, ...]:
    """Return the lines of a function that can have made a sync call: those that call the outermost op it calls at all.

    Empty if the file isn't available. The source has the line of its `def`, as the profiler records it. Without an op,
    the runtime call (`api`) counts: `torch.cuda.synchronize()`.
    """
    tree = files.tree_of(source.file)
    function = tree.function_at(source.function, source.line) if tree else None
    if function is None or source.line > function.lineno:
        return ()
    per_op = (sorted(set(_lines(function, op))) for op in ops or [api])
    return tuple(next((lines for lines in per_op if lines), ()))


def reads_on(function: ast.AST, line: int, ops: Sequence[str]) -> list[ast.expr]:
    """Return the calls and subscripts of a line that can be one of these ops, the outermost op's first."""
    nodes = [n for n in ast.walk(function) if isinstance(n, ast.Call | ast.Subscript) and line in lines_of(n)]
    return [node for op in ops for node in nodes if _can_be(node, _short(op), _spelled(op))]


def _lines(function: ast.AST, op: str) -> Iterator[int]:
    name, names = _short(op), _spelled(op)
    for node in ast.walk(function):
        if isinstance(node, ast.Call | ast.Subscript) and _can_be(node, name, names):
            yield node.lineno
        elif isinstance(node, _BRANCH) and name == "is_nonzero":
            yield node.test.lineno


def _short(op: str) -> str:
    return op.removeprefix("aten::").strip("_").rstrip("0123456789")


def _spelled(op: str) -> set[str]:
    """Return the names by which Python code calls an op or a synchronize call."""
    name = _short(op)
    return {*_SPELLINGS.get(name, (name, f"{name}_")), *(("synchronize",) if is_synchronize(op) else ())}


def _can_be(node: ast.Call | ast.Subscript, op: str, spellings: Set[str]) -> bool:
    return called(node) in spellings if isinstance(node, ast.Call) else _subscripts(op, node)


def _subscripts(name: str, node: ast.Subscript) -> bool:
    """Return whether a subscript can be this op: `index` reads, `index_put` assigns."""
    if name == "index_put":
        return isinstance(node.ctx, ast.Store)
    return (
        name in ("index", "select", "slice")
        and isinstance(node.ctx, ast.Load)
        and not isinstance(node.slice, ast.Constant)
    )


_COPIES = frozenset("to cuda as_tensor asarray tensor".split())
"""Functions that copy a host array to the device."""


def diagnosed_by_line(points: Sequence[SyncPoint], files: SourceFiles = OWN) -> tuple[SyncPoint, ...]:
    """Return the sync points with the diagnosis that their rule gives once the source line is known."""
    known: dict[Source, bool] = {}
    return tuple(_diagnosed(point, point.where.source, files, known) for point in points)


def _diagnosed(point: SyncPoint, source: Source | None, files: SourceFiles, decided: dict[Source, bool]) -> SyncPoint:
    other = point.diagnosis.copied
    if other is None or source is None:
        return point
    if source not in decided:
        decided[source] = copies_what_it_indexes(source, files)
    if not decided[source]:
        return point
    return replace(point, diagnosis=replace(other, intended=point.diagnosis.intended))


def copies_what_it_indexes(source: Source, files: SourceFiles = OWN) -> bool:
    """Return whether a line copies something to the device and then indexes it; False if it isn't exact."""
    tree = files.tree_of(source.file)
    if tree is None or not source.exact:
        return False
    function = tree.function_at(source.function, source.line) or tree.tree
    indexed = {id(inner) for value in _indexed(function) for inner in ast.walk(value)}
    return any(
        isinstance(node, ast.Call) and called(node) in _COPIES and source.line in lines_of(node) and id(node) in indexed
        for node in ast.walk(function)
    )


def _indexed(function: ast.AST) -> Iterator[ast.expr]:
    """Yield the expressions before brackets, and the values assigned to names that stand before brackets."""
    names: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            names.add(node.value.id)
        elif isinstance(node, ast.Subscript):
            yield node.value
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id in names for t in node.targets):
            yield node.value


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
    """Return what a function does with the value that it reads in a line (or in candidate lines).

    UNKNOWN if the source isn't available, or if the value leaves the function.
    """
    tree = files.tree_of(source.file)
    function = tree.function_at(source.function, source.line) if tree else None
    lines = (source.line,) if source.exact else source.candidates
    if tree is None or function is None or not lines:
        return Use.UNKNOWN
    reads = (node for line in lines for node in reads_on(function, line, ops))
    return _all_of(_becomes(tree, node, function, follow=True) for node in reads)


def _all_of(uses: Iterator[Use]) -> Use:
    """Return STEERS if any use steers, SHOWN if every use only shows the value, else UNKNOWN."""
    distinct = set(uses)
    if Use.STEERS in distinct:
        return Use.STEERS
    return Use.SHOWN if distinct == {Use.SHOWN} else Use.UNKNOWN


def _becomes(tree: SourceTree, node: ast.AST, function: ast.AST, follow: bool) -> Use:
    """Return the use of an expression's value: by the expression around it, or by the names it is assigned to."""
    if matched("print(...) | range(...)", node):  # these read their argument's value themselves
        return Use.SHOWN if called(node) == "print" else Use.STEERS
    child = node
    for outer in tree.ancestors(node):
        if _decides(outer, child):
            return Use.STEERS
        if isinstance(outer, ast.Call) and child is not outer.func and called(outer) not in _KEEPS:
            return Use.SHOWN if _shows(outer) else Use.UNKNOWN
        if isinstance(outer, ast.Assign | ast.AnnAssign | ast.AugAssign):
            return _of_names(tree, outer, function) if follow else Use.UNKNOWN
        if isinstance(outer, ast.stmt | ast.Lambda):
            break
        child = outer
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
        return child in node.args and called(node) == "range"
    return (isinstance(node, ast.Subscript) and child is node.slice) or isinstance(node, ast.Match)


def _of_names(tree: SourceTree, node: ast.Assign | ast.AnnAssign | ast.AugAssign, function: ast.AST) -> Use:
    """Return the use of the names that a value is assigned to; UNKNOWN for attributes and elements."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    names = [target for target in targets if isinstance(target, ast.Name) and tree.home_of(target) is function]
    if len(names) < len(targets):
        return Use.UNKNOWN
    use = _all_of(_becomes(tree, load, function, follow=False) for name in names for load in tree.loads(name))
    given = [n for name in names for n in tree.stores(name) if not isinstance(tree.value_given(n), ast.Constant)]
    return use if use is Use.SHOWN or len(given) == len(targets) else Use.UNKNOWN


def _shows(call: ast.Call) -> bool:
    method = matched("$owner.$name(...)", call)
    if method is None:
        return called(call) == "print"
    return method.name in _SHOWS and dotted(method.owner) not in _COMPUTES
