"""One file of the program: its tree, the observations of a run, and queries about names, loops and functions."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence

from syncscan.fixing.messages import Entered, Observations, Observed, Tensor, WaitingLine
from syncscan.fixing.source_text import Text

Function = ast.FunctionDef | ast.AsyncFunctionDef
Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Loop = ast.For | ast.AsyncFor | ast.While
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
NOTHING = Observations()
NUMBERS = frozenset({"int", "float", "bool"})
"""Types of Python's numbers."""
_BY_ANY_NAME = frozenset("locals globals exec eval".split())
"""Functions that may read or assign names that the source doesn't show."""


class File:
    """A file that ran, with the observations of a run of exactly this text, and that run's waits at its lines.

    `main` says that it is the script itself, whose module-level names no other file imports; `has_float64`, that each
    device that the program names has double precision.
    """

    def __init__(
        self,
        text: Text,
        observed: Observed,
        *,
        main: bool = False,
        places: Sequence[WaitingLine] = (),
        has_float64: bool = True,
    ) -> None:
        self.text = text
        self.main = main
        self.has_float64 = has_float64
        self.places = places
        self.tree = ast.parse(text.text)
        self.nodes = list(ast.walk(self.tree))
        self._numbers = {node: number for number, node in enumerate(self.nodes)}
        self.parents = {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}
        self._observed = observed
        self._names: dict[tuple[Scope, str], list[ast.Name]] = defaultdict(list)
        self._bound: dict[Scope, set[str]] = defaultdict(set)
        self._elsewhere: dict[Scope, set[str]] = defaultdict(set)
        self._outer: dict[Scope, set[str]] = defaultdict(set)
        self._attributes: dict[str, list[ast.Attribute]] = defaultdict(list)
        self._bind()
        for node in self.nodes:
            if isinstance(node, ast.Name):
                self._names[self.home_of(node), node.id].append(node)
            elif isinstance(node, ast.Attribute):
                self._attributes[node.attr].append(node)

    # what a run saw

    def seen(self, node: ast.AST) -> Observations:
        """Return what was seen of an expression; of a literal nothing, as its text tells all."""
        return self._observed.seen.get(self._numbers[node], NOTHING)

    def entered(self, node: ast.AST) -> Entered:
        return self._observed.entered.get(self._numbers[node], Entered())

    def ran_inside(self, function: ast.AST, loop: ast.AST) -> bool:
        return self._numbers[loop] in self.entered(function).inside

    def is_steady(self, node: ast.expr, loop: ast.AST) -> bool:
        """Return whether each run of a loop saw one unchanged object in an expression and in each of its parts."""
        parts = (n for n in ast.walk(node) if isinstance(n, ast.Name | ast.Attribute | ast.Subscript))
        return not any(self._numbers[loop] in self.seen(part).changes_in for part in parts)

    def own_waits(self, node: ast.AST) -> int:
        """Return how often the host waited for an expression or assignment itself, without its parts."""
        return self.seen(node).waits - sum(self._waits_inside(child) for child in ast.iter_child_nodes(node))

    def _waits_inside(self, node: ast.AST) -> int:
        own = self._observed.seen.get(self._numbers[node])
        if own is not None:
            return own.waits
        if isinstance(node, ast.Lambda):
            return 0
        return sum(self._waits_inside(child) for child in ast.iter_child_nodes(node))

    def waits_for(self, node: ast.AST, words: str) -> int:
        """Return how often the lines of a node waited for what the advice with these words avoids."""
        begin, end = node.lineno, node.end_lineno or node.lineno  # type: ignore[attr-defined]
        return sum(place.count for place in self.places if begin <= place.line <= end and words in place.advice)

    def waiting_for(self, words: str) -> list[ast.stmt | ast.expr]:
        """Return the statements that waited for what the advice with these words avoids; of a loop what it is over."""
        lines = sorted({place.line for place in self.places if words in place.advice})
        return [node for line in lines if (node := self._at(line)) is not None]

    def _at(self, line: int) -> ast.stmt | ast.expr | None:
        over = [n for n in self.nodes if isinstance(n, ast.stmt) and n.lineno <= line <= (n.end_lineno or n.lineno)]
        if not over:
            return None
        statement = min(over, key=lambda n: (n.end_lineno or n.lineno) - n.lineno)
        return statement.iter if isinstance(statement, ast.For) else statement

    def types(self, node: ast.expr) -> set[str]:
        """Return the types of an expression's values; empty where it never ran."""
        if isinstance(node, ast.Constant):
            return {type(node.value).__name__}
        return set(self.seen(node).types)

    def tensors(self, node: ast.expr) -> tuple[Tensor, ...]:
        """Return the kinds of tensors that an expression gave; empty where it gave something else too, or never ran."""
        seen = self.seen(node)
        return tuple(seen.tensors) if seen.types == ["torch.Tensor"] else ()

    def device_tensor(self, node: ast.expr) -> Tensor | None:
        """Return the kind of tensor that an expression always gave, where that lay on the device; None for others."""
        tensors = self.tensors(node)
        if not tensors or not all(t.on_device for t in tensors):
            return None
        first = tensors[0]
        return first if all((t.dtype, t.dims) == (first.dtype, first.dims) for t in tensors) else None

    def is_number(self, node: ast.expr) -> bool:
        """Return whether an expression always was a Python number."""
        types = self.types(node)
        return bool(types) and types <= NUMBERS

    # the tree

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the nodes around a node, innermost first."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def statement_of(self, node: ast.AST) -> ast.stmt:
        """Return the innermost statement that holds a node, or that it is."""
        if isinstance(node, ast.stmt):
            return node
        return next(n for n in self.ancestors(node) if isinstance(n, ast.stmt))

    def scope_of(self, node: ast.AST) -> Scope:
        """Return the function, lambda or module in whose body a node is; a function is outside of itself."""
        for inner, outer in zip([node, *self.ancestors(node)], self.ancestors(node), strict=False):
            if isinstance(outer, ast.Module):
                return outer
            in_body = isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef) and inner in outer.body
            if in_body or (isinstance(outer, ast.Lambda) and inner is outer.body):
                return outer  # type: ignore[return-value]
        return self.tree

    def function_of(self, node: ast.AST) -> Function | ast.Module:
        scope: ast.AST = self.scope_of(node)
        while isinstance(scope, ast.Lambda):
            scope = self.scope_of(scope)
        return scope  # type: ignore[return-value]

    def class_of(self, function: ast.AST) -> ast.ClassDef | None:
        parent = self.parents.get(function)
        return parent if isinstance(parent, ast.ClassDef) else None

    def loops_of(self, node: ast.AST) -> list[Loop]:
        """Return the loops of the same function in whose body a node stands, outermost first."""
        loops: list[Loop] = []
        inner = node
        for outer in self.ancestors(node):
            if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
                break
            if (isinstance(outer, ast.For | ast.AsyncFor) and (inner in outer.body)) or (
                isinstance(outer, ast.While) and (inner in outer.body or inner is outer.test)
            ):
                loops.append(outer)
            inner = outer
        return loops[::-1]

    def block_of(self, statement: ast.stmt) -> list[ast.stmt]:
        parent = self.parents[statement]
        for _, field in ast.iter_fields(parent):
            if isinstance(field, list) and statement in field:
                return field
        return [statement]

    def within(self, node: ast.AST, outer: ast.AST) -> bool:
        """Return whether a node is another one or lies inside it."""
        return node is outer or any(n is outer for n in self.ancestors(node))

    # names

    def names(self, scope: Scope, name: str) -> list[ast.Name]:
        """Return all uses of a name that is bound in a scope, those in functions inside of it too."""
        return self._names[scope, name]

    def stores(self, name: ast.Name) -> list[ast.Name]:
        """Return where what a name stands for is bound or deleted by this name."""
        return [n for n in self.names(self.home_of(name), name.id) if not isinstance(n.ctx, ast.Load)]

    def loads(self, name: ast.Name) -> list[ast.Name]:
        return [n for n in self.names(self.home_of(name), name.id) if isinstance(n.ctx, ast.Load)]

    def value_given(self, target: ast.AST) -> ast.expr | None:
        """Return what an assignment gives a target, alone or in a tuple of targets; None where that isn't beside it."""
        parent = self.parents[target]
        if isinstance(parent, ast.Assign | ast.AnnAssign):
            return parent.value
        assign = self.parents.get(parent)
        values = assign.value if isinstance(parent, ast.Tuple) and isinstance(assign, ast.Assign) else None
        if isinstance(values, ast.Tuple) and len(values.elts) == len(parent.elts):  # type: ignore[attr-defined]
            return values.elts[parent.elts.index(target)]  # type: ignore[attr-defined]
        return None

    def only_value(self, name: ast.Name) -> ast.expr | None:
        """Return what the only assignment of a name gives it; None where there are several."""
        stores = self.stores(name)
        return self.value_given(stores[0]) if len(stores) == 1 else None

    def attributes(self, name: str) -> list[ast.Attribute]:
        return self._attributes[name]

    def home_of(self, name: ast.Name) -> Scope:
        """Return the scope that a name is bound in; the module for what is bound nowhere."""
        for outer in self.ancestors(name):
            if isinstance(outer, _COMPREHENSIONS) and name.id in _targets(outer):
                return outer  # type: ignore[return-value]
        scope: Scope = self.scope_of(name)
        while True:
            if name.id in self._bound[scope] or isinstance(scope, ast.Module):
                return scope
            if name.id in self._elsewhere[scope]:
                return self.tree
            scope = self.scope_of(scope)

    def declares_global(self, scope: Scope, name: str) -> bool:
        return scope is self.tree or name in self._elsewhere[scope]

    def hides_names(self) -> bool:
        """Return whether the file may reach its names without writing them: by `locals()`, `exec()`, `vars()`."""
        return any(isinstance(n, ast.Name) and (n.id in _BY_ANY_NAME or self._lists_names(n)) for n in self.nodes)

    def _lists_names(self, name: ast.Name) -> bool:
        """Return whether a name is `vars` without an object of its own: of an object it gives only the attributes."""
        call = self.parents[name]
        if name.id != "vars":
            return False
        if not isinstance(call, ast.Call) or call.func is not name or len(call.args) != 1:
            return True
        plain = isinstance(call.args[0], ast.Name | ast.Attribute)
        return not plain or "module" in self.types(call.args[0])

    def is_new(self, name: str) -> bool:
        """Return whether no node of the file has this name."""
        return not any(
            getattr(node, "id", None) == name
            or getattr(node, "arg", None) == name
            or getattr(node, "name", None) == name
            for node in self.nodes
        )

    def fresh(self, name: str, *taken: str) -> str:
        """Return a name that the file doesn't use, and that isn't among others."""
        if self.is_new(name) and name not in taken:
            return name
        return next(n for k in range(2, 1000) if self.is_new(n := f"{name}_{k}") and n not in taken)

    def _bind(self) -> None:
        for node in self.nodes:
            if isinstance(node, ast.Global):
                self._elsewhere[self.scope_of(node)] |= set(node.names)
            elif isinstance(node, ast.Nonlocal):
                self._outer[self.scope_of(node)] |= set(node.names)
        for node in self.nodes:
            scope = self.scope_of(node)
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                if not self._in_comprehension(node):
                    self._add(scope, node.id)
            elif isinstance(node, ast.arg):
                owner = next(
                    n
                    for n in self.ancestors(node)
                    if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
                )
                self._bound[owner].add(node.arg)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                if not isinstance(self.parents[node], ast.ClassDef):
                    self._add(scope, node.name)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                for alias in node.names:
                    self._add(scope, (alias.asname or alias.name).partition(".")[0])
            elif isinstance(node, ast.ExceptHandler) and node.name:
                self._add(scope, node.name)

    def _add(self, scope: Scope, name: str) -> None:
        if name not in self._elsewhere[scope] | self._outer[scope]:
            self._bound[scope].add(name)

    def _in_comprehension(self, name: ast.Name) -> bool:
        for outer in self.ancestors(name):
            if isinstance(outer, ast.stmt):
                return False
            if isinstance(outer, ast.comprehension):
                return self.within(name, outer.target)
        return False


def _targets(comprehension: ast.AST) -> set[str]:
    generators = comprehension.generators  # type: ignore[attr-defined]
    return {n.id for g in generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
