"""Parses a file and adds probes that report the value of each expression to a recorder.

A node's number is its place in `ast.walk` of the text as it is, so that who reads the recorder's notes needs the text
alone. Lines and columns stay, for what the dry run says of lines.
"""

from __future__ import annotations

import ast
import builtins

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
    ast.Constant,
)
_FUNCTIONS = (ast.FunctionDef,)


def probed(text: str, file: int = 0) -> ast.Module:
    """Return a text as a tree, with probes; a recorder tells the nodes of several files apart by `file`."""
    tree = ast.parse(text)
    numbers = {id(node): (file, number) for number, node in enumerate(ast.walk(tree))}
    changed = ast.fix_missing_locations(_Prober(numbers).visit(tree))
    assert isinstance(changed, ast.Module)
    return changed


class _Prober(ast.NodeTransformer):
    def __init__(self, numbers: dict[int, tuple[int, int]]) -> None:
        self._numbers = numbers

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, _VALUES):
            return self._value(node)
        changed: ast.AST = super().visit(node)
        return changed

    def _value(self, node: ast.expr) -> ast.AST:
        number = self._numbers[id(node)]
        loaded = isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
        inner = self._inner(node)
        return _wrap(inner, number) if loaded and _showable(node) else inner

    def _inner(self, node: ast.expr) -> ast.expr:
        """Return an expression with probes around its parts; a called method stays as it is."""
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute):
                node.func.value = self.visit(node.func.value)  # type: ignore[assignment]
            elif not (isinstance(node.func, ast.Name) and hasattr(builtins, node.func.id)):
                node.func = self.visit(node.func)  # type: ignore[assignment]
            node.args = [self.visit(a) for a in node.args]  # type: ignore[misc]
            for keyword in node.keywords:
                keyword.value = self.visit(keyword.value)  # type: ignore[assignment]
            return node
        if isinstance(node, ast.Subscript):
            node.value = self.visit(node.value)  # type: ignore[assignment]
            node.slice = self._index(node.slice)
            return node
        self.generic_visit(node)
        return node

    def _index(self, index: ast.expr) -> ast.expr:
        if isinstance(index, ast.Slice):
            self.generic_visit(index)
            return index
        if isinstance(index, ast.Tuple):  # one that holds slices is no value of its own
            index.elts = [self._index(e) for e in index.elts]
            return index
        return self.visit(index)  # type: ignore[return-value]

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        """Put probes around an f-string's values, which have no positions before Python 3.12."""
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                part.value = self.visit(part.value)  # type: ignore[assignment]
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.target = self.visit(node.target)  # type: ignore[assignment]
        if node.value is not None:
            node.value = self.visit(node.value)  # type: ignore[assignment]
        return self._mark(node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        return self._mark(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        return self._mark(node)

    def _mark(self, node: ast.stmt) -> ast.AST:
        """Return a statement between two marks if its target can wait by itself."""
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]  # type: ignore[attr-defined]
        if not any(isinstance(t, ast.Subscript) for t in targets):
            return node
        number = _place(self._numbers[id(node)])
        marks = [ast.Expr(ast.Call(ast.Name(name, ast.Load()), [number], [])) for name in (MARK, MARKED)]
        return [ast.copy_location(marks[0], node), node, ast.copy_location(marks[1], node)]  # type: ignore[return-value]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        number = self._numbers[id(node)]
        node.args.defaults = [self.visit(d) for d in node.args.defaults]  # type: ignore[misc]
        node.body = self._statements(node.body)
        if not _yields(node):
            docstring = node.body[:1] if ast.get_docstring(node, clean=False) is not None else []
            node.body = [*docstring, _within(node.body[len(docstring) :] or [ast.Pass()], number, node)]
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        node.body = self._statements(node.body)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.body = self._statements(node.body)
        return node

    def visit_Match(self, node: ast.Match) -> ast.AST:
        node.subject = self.visit(node.subject)  # type: ignore[assignment]
        for case in node.cases:
            case.body = self._statements(case.body)
        return node

    def visit_For(self, node: ast.For) -> ast.AST:
        return self._loop(node)

    def visit_While(self, node: ast.While) -> ast.AST:
        return self._loop(node)

    def _loop(self, node: ast.For | ast.While) -> ast.AST:
        number, holds = self._numbers[id(node)], _yields(node)
        self.generic_visit(node)
        return node if holds else _within([node], number, node)

    def visit_Delete(self, node: ast.Delete) -> ast.AST:
        return node

    def _statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        changed: list[ast.stmt] = []
        for statement in body:
            result = self.visit(statement)
            changed += result if isinstance(result, list) else [result]  # type: ignore[list-item]
        return changed


def _showable(node: ast.expr) -> bool:
    """Return whether a probe may wrap an expression: not a literal, and no name that the compiler treats specially."""
    if isinstance(node, ast.Constant):
        return False
    return not (isinstance(node, ast.Name) and node.id in ("super", "__class__", "__debug__"))


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
