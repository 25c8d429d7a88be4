"""Parses a file and adds probes that report the value of each expression to a recorder.

A node's number is its place in `ast.walk` of the text as it is, so that who reads the recorder's notes needs the text
alone. Lines and columns stay, for what the dry run says of lines.
"""

from __future__ import annotations

import ast
import builtins
from typing import Any

SEEN, BEGIN, INSIDE, MARK, MARKED = (
    "_syncscan_seen_",
    "_syncscan_begin_",
    "_syncscan_inside_",
    "_syncscan_mark_",
    "_syncscan_marked_",
)
"""Names of the recorder's functions among the builtins."""
_VALUES = (
    ast.Name,
    ast.Attribute,
    ast.Subscript,
    ast.Call,
    ast.BinOp,
    ast.UnaryOp,
    ast.Compare,
    ast.BoolOp,
    ast.IfExp,
    ast.List,
    ast.Tuple,
    ast.Dict,
)
_UNSEEN_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {
    ast.AnnAssign: ("annotation",),
    ast.AsyncFunctionDef: ("args", "decorator_list", "returns", "type_params"),
    ast.ClassDef: ("bases", "keywords", "decorator_list", "type_params"),
    ast.Delete: ("targets",),
    ast.FormattedValue: ("format_spec",),
    ast.FunctionDef: ("decorator_list", "returns", "type_params"),
    ast.arg: ("annotation",),
    ast.match_case: ("pattern",),
}
"""Parts of nodes that hold no values of a step: annotations, decorators, what is deleted."""


def probed(text: str, file: int = 0) -> ast.Module:
    """Return a text as a tree, with probes; a recorder tells the nodes of several files apart by `file`."""
    tree = ast.parse(text)
    prober = _Prober({node: (file, number) for number, node in enumerate(ast.walk(tree))})
    prober.with_probes_inside(tree)
    return ast.fix_missing_locations(tree)


class _Prober:
    def __init__(self, numbers: dict[ast.AST, tuple[int, int]]) -> None:
        self._numbers = numbers

    def with_probes_inside(self, node: ast.AST) -> None:
        """Put probes around the parts of a node."""
        for field, value in ast.iter_fields(node):
            if field in _UNSEEN_FIELDS.get(type(node), ()):
                continue
            if isinstance(value, list):
                value[:] = [part for old in value for part in self._probed(old)]
            elif _has_no_value(node, field, value):
                self.with_probes_inside(value)
            elif isinstance(value, ast.AST):
                setattr(node, field, *self._probed(value))

    def _probed(self, node: Any) -> list[Any]:
        """Return a node with probes inside and around it; a statement may become several."""
        if not isinstance(node, ast.AST):
            return [node]
        self.with_probes_inside(node)
        match node:
            case ast.expr() if _showable(node):
                return [_wrap(node, self._numbers[node])]
            case ast.FunctionDef() if not _yields(node):
                docstring = node.body[:1] if ast.get_docstring(node, clean=False) is not None else []
                inner = node.body[len(docstring) :] or [ast.Pass()]
                node.body = [*docstring, _within(inner, self._numbers[node], node)]
            case ast.For() | ast.While() if not _yields(node):
                return [_within([node], self._numbers[node], node)]
            case ast.Assign(targets=targets) if any(isinstance(target, ast.Subscript) for target in targets):
                return self._marked(node)
            case ast.AugAssign(target=ast.Subscript()) | ast.AnnAssign(target=ast.Subscript()):
                return self._marked(node)
        return [node]

    def _marked(self, node: ast.stmt) -> list[ast.stmt]:
        """Return a statement between two marks, as its target can wait by itself."""
        number = _place(self._numbers[node])
        begin, end = (ast.Expr(ast.Call(ast.Name(name, ast.Load()), [number], [])) for name in (MARK, MARKED))
        return [ast.copy_location(begin, node), node, ast.copy_location(end, node)]


def _has_no_value(node: ast.AST, field: str, part: ast.AST) -> bool:
    """Return whether a part of a node is no value of its own: a called method or built-in, an index with slices."""
    if isinstance(node, ast.Call) and field == "func":
        return isinstance(part, ast.Attribute) or (isinstance(part, ast.Name) and hasattr(builtins, part.id))
    return isinstance(node, ast.Subscript) and field == "slice" and isinstance(part, ast.Tuple)


def _showable(node: ast.expr) -> bool:
    """Return whether a probe may wrap an expression: not a literal, and no name that the compiler treats specially."""
    loaded = isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
    special = isinstance(node, ast.Name) and node.id in ("super", "__class__", "__debug__")
    return isinstance(node, _VALUES) and loaded and not special


def _place(number: tuple[int, int]) -> ast.expr:
    return ast.Tuple([ast.Constant(part) for part in number], ast.Load())


def _wrap(node: ast.expr, number: tuple[int, int]) -> ast.expr:
    begin = ast.Call(ast.Name(BEGIN, ast.Load()), [], [])
    call = ast.Call(ast.Name(SEEN, ast.Load()), [_place(number), begin, node], [])
    return ast.fix_missing_locations(ast.copy_location(call, node))


def _within(body: list[ast.stmt], number: tuple[int, int], at: ast.stmt) -> ast.stmt:
    context = ast.Call(ast.Name(INSIDE, ast.Load()), [_place(number)], [])
    block = ast.With([ast.withitem(context)], body)
    place = ast.copy_location(block, at)
    return ast.fix_missing_locations(place)


def _yields(node: ast.AST) -> bool:
    """Return whether a node, apart from nested functions, hands control back before it ends."""
    todo: list[ast.AST] = list(ast.iter_child_nodes(node))
    while todo:
        inner = todo.pop()
        if isinstance(inner, ast.Yield | ast.YieldFrom | ast.Await | ast.AsyncFor | ast.AsyncWith):
            return True
        if not isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            todo += ast.iter_child_nodes(inner)
    return False
