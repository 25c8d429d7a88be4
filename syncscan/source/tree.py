"""One file's tree, with what lint, fix, attribution and capture ask of it; each answer is worked out once."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property, lru_cache

from syncscan.source.code_pattern import dotted

Function = ast.FunctionDef | ast.AsyncFunctionDef
Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Loop = ast.For | ast.AsyncFor | ast.While
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_CONVENTIONS = {
    "torch": "torch",
    "F": "torch.nn.functional",
    "nn": "torch.nn",
    "np": "numpy",
    "dist": "torch.distributed",
}
"""Meaning of these names in a file that doesn't import them, such as a notebook's later cells."""


def lines_of(node: ast.AST) -> range:
    """Return the lines of a node, those of its decorators too; none of what has no place in the text."""
    first = int(getattr(node, "lineno", 0))
    first_of_all = min([first, *(d.lineno for d in getattr(node, "decorator_list", ()))])
    return range(first_of_all, (getattr(node, "end_lineno", None) or first) + 1) if first else range(0)


def walk_own(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and what is in it, without inner functions and classes."""
    todo = [node]
    while todo:
        node = todo.pop()
        yield node
        todo += [n for n in ast.iter_child_nodes(node) if not isinstance(n, Function | ast.ClassDef | ast.Lambda)][::-1]


def hands_back(node: ast.AST) -> bool:
    """Return whether a node, apart from inner functions, hands control back before it ends: it yields or awaits."""
    kinds = ast.Yield | ast.YieldFrom | ast.Await | ast.AsyncFor | ast.AsyncWith
    return any(isinstance(inner, kinds) for inner in walk_own(node))


def calls_in(node: ast.AST) -> list[ast.Call]:
    return [inner for inner in ast.walk(node) if isinstance(inner, ast.Call)]


def contexts_of(node: ast.AST) -> list[ast.expr]:
    """Return the contexts of a `with` block, or the decorators of a function."""
    if isinstance(node, ast.With | ast.AsyncWith):
        return [item.context_expr for item in node.items]
    return node.decorator_list if isinstance(node, Function) else []


def each_round(loop: ast.AST) -> list[ast.AST]:
    """Return the parts of a loop or comprehension that each round runs: a `for` loop's header runs once."""
    match loop:
        case ast.For(body=body) | ast.AsyncFor(body=body):
            return [*body]
        case ast.While(test=test, body=body):
            return [test, *body]
        case ast.ListComp(elt=element) | ast.SetComp(elt=element) | ast.GeneratorExp(elt=element):
            return [element]
        case ast.DictComp(key=key, value=value):
            return [key, value]
    return []


class SourceTree:
    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        return {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        """Every function, outer functions first; only statements can hold one."""
        statements: list[ast.AST] = [self.tree]
        for node in statements:
            for part in ("body", "orelse", "handlers", "finalbody", "cases"):
                inner = getattr(node, part, ())
                statements += inner if isinstance(inner, list) else ()
        return tuple(node for node in statements if isinstance(node, Function))

    def function_at(self, name: str, line: int) -> Function | None:
        """Return the innermost function of this name around a line."""
        around = [f for f in self.functions if f.name == name and line in lines_of(f)]
        return around[-1] if around else None

    def statement_at(self, line: int) -> ast.stmt | None:
        """Return the innermost statement of a line."""
        over = [n for n in self.nodes if isinstance(n, ast.stmt) and line in lines_of(n)]
        return min(over, key=lambda n: len(lines_of(n)), default=None)

    # imports

    @cached_property
    def imported(self) -> dict[str, str]:
        """Names → what the file's imports give them, dotted; empty where two imports give a name different things."""
        full: dict[str, str] = {}
        for node in self.nodes:
            if isinstance(node, ast.Import):
                pairs = [(a.asname, a.name) if a.asname else (a.name.partition(".")[0],) * 2 for a in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                pairs = [(a.asname or a.name, f"{node.module}.{a.name}") for a in node.names]
            else:
                continue
            full |= {name: whole if full.get(name, whole) == whole else "" for name, whole in pairs}
        return full

    @cached_property
    def _meanings(self) -> dict[str, str]:
        return _CONVENTIONS | {name: whole for name, whole in self.imported.items() if whole}

    def full_name(self, node: ast.expr) -> str:
        """Return the dotted name of an expression with its first part resolved; empty if it isn't a name."""
        return dotted(node, self._meanings)

    def torch_name(self, node: ast.expr) -> str:
        """Return the full name without `torch.` in front; empty if it isn't torch's."""
        name = self.full_name(node)
        return name.removeprefix("torch.") if name.startswith("torch.") else ""

    # places in the tree

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the nodes around a node, innermost first."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def within(self, node: ast.AST, outer: ast.AST) -> bool:
        """Return whether a node is another one or lies inside it."""
        return node is outer or any(n is outer for n in self.ancestors(node))

    def statement_of(self, node: ast.AST) -> ast.stmt:
        """Return the innermost statement that holds a node, or that it is."""
        return next(n for n in (node, *self.ancestors(node)) if isinstance(n, ast.stmt))

    def block_of(self, statement: ast.stmt) -> list[ast.stmt]:
        fields = (value for _, value in ast.iter_fields(self.parents[statement]) if isinstance(value, list))
        return next((block for block in fields if statement in block), [statement])

    def above(self, statement: ast.stmt) -> list[ast.stmt]:
        """Return the statements in front of one in its block."""
        block = self.block_of(statement)
        return block[: block.index(statement)]

    def below(self, statement: ast.stmt) -> list[ast.stmt]:
        return self.block_of(statement)[len(self.above(statement)) + 1 :]

    def before(self, node: ast.AST) -> Iterator[ast.stmt]:
        """Yield the statements that are run before a node whenever its function comes to it, the nearest first."""
        inner: ast.AST = self.statement_of(node)
        while isinstance(inner, ast.stmt) and not isinstance(inner, Function):
            yield from reversed(self.above(inner))
            inner = self.parents[inner]

    def scope_of(self, node: ast.AST) -> Scope:
        """Return the function, lambda or module in whose body a node is; a function is outside of itself."""
        for outer in self.ancestors(node):
            in_body = isinstance(outer, Function) and node in outer.body
            if in_body or (isinstance(outer, ast.Lambda) and node is outer.body):
                return outer  # type: ignore[return-value]
            node = outer
        return self.tree

    def function_of(self, node: ast.AST) -> Function | ast.Module:
        scope = self.scope_of(node)
        while isinstance(scope, ast.Lambda):
            scope = self.scope_of(scope)
        return scope

    @cached_property
    def _defined(self) -> dict[str, list[Function | ast.ClassDef]]:
        defined = defaultdict(list)
        for node in self.nodes:
            if isinstance(node, Function | ast.ClassDef):
                defined[node.name].append(node)
        return defined

    def classes(self, name: str) -> list[ast.ClassDef]:
        """Return the classes of this name, also where it is written with its module's."""
        return [node for node in self._defined[name.rpartition(".")[2]] if isinstance(node, ast.ClassDef)]

    def definitions(self, name: ast.Name) -> list[Function | ast.ClassDef]:
        """Return the functions and classes that a name stands for, if it never stands for anything else."""
        home = self.home_of(name)
        defined = (n for n in self._defined[name.id] if self.class_of(n) is None and self.scope_of(n) is home)
        return list(defined) if not self.stores(name) else []

    def is_called(self, node: ast.AST) -> bool:
        """Return whether an expression is what a call calls."""
        call = self.parents.get(node)
        return isinstance(call, ast.Call) and call.func is node

    def class_of(self, function: ast.AST) -> ast.ClassDef | None:
        parent = self.parents.get(function)
        return parent if isinstance(parent, ast.ClassDef) else None

    def loops_of(self, node: ast.AST, *, over: bool = False) -> list[Loop]:
        """Return the loops of the same function that run a node in each round, outermost first.

        With `over`, also those that go over what it gives: a generator runs in each round.
        """
        loops: list[Loop] = []
        for outer in self.ancestors(node):
            if isinstance(outer, Function | ast.Lambda | ast.ClassDef):
                break
            if isinstance(outer, Loop) and (
                node in each_round(outer) or (over and node is getattr(outer, "iter", None))
            ):
                loops.insert(0, outer)
            node = outer
        return loops

    # names

    @cached_property
    def _names(self) -> dict[tuple[Scope, str], list[ast.Name]]:
        names = defaultdict(list)
        for node in self.nodes:
            if isinstance(node, ast.Name):
                names[self.home_of(node), node.id].append(node)
        return names

    @cached_property
    def _attributes(self) -> dict[str, list[ast.Attribute]]:
        attributes = defaultdict(list)
        for node in self.nodes:
            if isinstance(node, ast.Attribute):
                attributes[node.attr].append(node)
        return attributes

    def names(self, scope: Scope, name: str) -> list[ast.Name]:
        """Return all uses of a name that is bound in a scope, those in functions inside of it too."""
        return self._names[scope, name]

    def stores(self, name: ast.Name) -> list[ast.Name]:
        """Return where what a name stands for is bound or deleted by this name."""
        return [n for n in self.names(self.home_of(name), name.id) if not isinstance(n.ctx, ast.Load)]

    def loads(self, name: ast.Name) -> list[ast.Name]:
        return [n for n in self.names(self.home_of(name), name.id) if isinstance(n.ctx, ast.Load)]

    def attributes(self, name: str) -> list[ast.Attribute]:
        return self._attributes[name]

    def value_given(self, target: ast.AST) -> ast.expr | None:
        """Return what an assignment gives a target, alone or in a tuple of targets; None where that isn't beside it."""
        parent = self.parents[target]
        match parent, self.parents.get(parent):
            case ((ast.Assign(value=value) | ast.AnnAssign(value=value)), _):
                return value
            case ast.Tuple(elts=targets), ast.Assign(value=ast.Tuple(elts=values)) if len(values) == len(targets):
                return values[targets.index(target)]  # type: ignore[arg-type]
        return None

    def only_value(self, name: ast.Name) -> ast.expr | None:
        """Return what the only assignment of a name gives it; None where there are several."""
        stores = self.stores(name)
        return self.value_given(stores[0]) if len(stores) == 1 else None

    def home_of(self, name: ast.Name) -> Scope:
        """Return the scope that a name is bound in; the module for what is bound nowhere."""
        for outer in self.ancestors(name):
            if isinstance(outer, _COMPREHENSIONS) and name.id in _targets(outer):
                return outer  # type: ignore[return-value]
        scope = self.scope_of(name)
        while name.id not in self._bound[scope] and not isinstance(scope, ast.Module):
            scope = self.tree if name.id in self._declared[scope, ast.Global] else self.scope_of(scope)
        return scope

    def is_free(self, name: ast.Name) -> bool:
        """Return whether nothing in the file binds what a name stands for, so that it is Python's own."""
        home = self.home_of(name)
        return home is self.tree and name.id not in self._bound[home]

    def is_new(self, name: str) -> bool:
        """Return whether no node of the file has this name."""
        return not any(getattr(node, key, None) == name for node in self.nodes for key in ("id", "arg", "name"))

    def fresh(self, name: str, *taken: str) -> str:
        """Return a name that the file doesn't use, and that isn't among others."""
        if self.is_new(name) and name not in taken:
            return name
        return next(n for k in range(2, 1000) if self.is_new(n := f"{name}_{k}") and n not in taken)

    @cached_property
    def _declared(self) -> dict[tuple[Scope, type], set[str]]:
        """Names in `global` and `nonlocal` statements."""
        names: dict[tuple[Scope, type], set[str]] = defaultdict(set)
        for node in self.nodes:
            if isinstance(node, ast.Global | ast.Nonlocal):
                names[self.scope_of(node), type(node)] |= set(node.names)
        return names

    @cached_property
    def _bound(self) -> dict[Scope, set[str]]:
        """The names that each scope binds."""
        bound: dict[Scope, set[str]] = defaultdict(set)
        for node in self.nodes:
            if isinstance(node, ast.arg):
                owner = next(n for n in self.ancestors(node) if isinstance(n, Function | ast.Lambda))
                bound[owner].add(node.arg)
            for name in self._binds(node):
                scope = self.scope_of(node)
                if name not in self._declared[scope, ast.Global] | self._declared[scope, ast.Nonlocal]:
                    bound[scope].add(name)
        return bound

    def _binds(self, node: ast.AST) -> list[str]:
        """Return the names that a node binds in the scope around it, but for parameters."""
        match node:
            case ast.Name(id=name) if not isinstance(node.ctx, ast.Load) and not self._in_comprehension(node):
                return [name]
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() if self.class_of(node) is None:
                return [node.name]
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                return [(alias.asname or alias.name).partition(".")[0] for alias in aliases]
            case ast.ExceptHandler(name=str() as name):
                return [name]
        return []

    def _in_comprehension(self, name: ast.Name) -> bool:
        for outer in self.ancestors(name):
            if isinstance(outer, ast.stmt | ast.comprehension):
                return isinstance(outer, ast.comprehension) and self.within(name, outer.target)
        return False


def _targets(comprehension: ast.AST) -> set[str]:
    generators = comprehension.generators  # type: ignore[attr-defined]
    return {n.id for g in generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}


@lru_cache(maxsize=64)
def tree_of(text: str) -> SourceTree | None:
    """Return the tree of a text; None if it isn't Python."""
    try:
        return SourceTree(ast.parse(text))
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
