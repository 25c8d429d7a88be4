"""Find the lint warnings in one file's tree: walk each function in order, with what is known of its names."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from msgspec.structs import replace

from syncscan.lint.contexts import (
    NOWHERE,
    CodeContext,
    CodeContexts,
    branch_off_device,
    gives_up,
    guard_of,
    is_off_device,
    made_once,
    reads_clock,
)
from syncscan.lint.evaluate import Environment, Evaluator
from syncscan.lint.hints import attributes_of, hints_of, parameters_of
from syncscan.lint.pattern import Around, Hit, LintSite, Pattern
from syncscan.lint.values import HOST, UNKNOWN, ValueKind
from syncscan.source.code_pattern import constant, key, matched
from syncscan.source.modules import Modules
from syncscan.source.tree import Function, Loop, SourceTree

_SHOWN = ("print", "logging", "logger", "log", "wandb", "writer", "tqdm", "pbar", "progress_bar", "warnings")
_LOG_METHODS = frozenset(
    "debug info warning error critical log add_scalar add_scalars set_postfix set_description write print "
    "log_metrics".split()
)


Found = tuple[Hit, LintSite]


class FileWalk(ast.NodeVisitor):
    """Walks one file.

    It looks for `patterns` in code that runs often; the first that matches an expression names it. Those of them in
    `anywhere` look at all code.
    """

    def __init__(self, tree: ast.Module, patterns: Sequence[Pattern], anywhere: Sequence[Pattern]) -> None:
        self._tree = tree
        self._often, self._anywhere = _by_kind(patterns), _by_kind(anywhere)
        self._names = SourceTree(tree)
        self._modules = Modules(self._names)
        self._places = CodeContexts(self._modules)
        self._found: dict[tuple[int, int, str], Found] = {}
        self._later: list[Callable[[], None]] = []
        self._evaluator = Evaluator(self._modules, {}, hints_of(tree, self._names))
        self._attributes: dict[ast.ClassDef, tuple[Environment, frozenset[str]]] = {}
        self._made: list[ast.expr] = []
        """Expressions that are in no source; kept, as values are remembered by identity."""
        self._around = Around(timed=reads_clock(tree))
        """The code around what is looked at."""

    def found(self) -> list[Found]:
        self._block(self._tree.body)
        while self._later:
            self._later.pop()()
        return [self._found[place] for place in sorted(self._found, key=lambda place: place[:2])]

    def generic_visit(self, node: ast.AST) -> None:
        """Look at all inside of a node, and then match the patterns on it if it is an expression."""
        self._parts(node)
        if isinstance(node, ast.expr):
            self._match_patterns(node)

    def _parts(self, node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr | ast.stmt | ast.keyword):
                self.visit(child)

    @contextmanager
    def _within(self, **changes: object) -> Iterator[None]:
        """Look at code around which something else holds."""
        before, self._around = self._around, replace(self._around, **changes)
        yield
        self._around = before

    def _block(self, statements: Sequence[ast.stmt], **changes: object) -> None:
        with self._within(**changes):
            for statement in statements:
                self.visit(statement)

    # Statements

    def visit_FunctionDef(self, node: Function, owner: ast.ClassDef | None = None) -> None:
        self._evaluator.environment.pop(node.name, None)
        evaluator, around = self._evaluator, self._around
        self._later.append(lambda: self._function(node, around, owner, dict(evaluator.environment)))

    visit_AsyncFunctionDef = visit_FunctionDef

    def _function(self, node: Function, around: Around, owner: ast.ClassDef | None, outer: Environment) -> None:
        context = self._places.of_function(node)
        nested = bool(around.function) and not owner
        attributes, submodules = self._attributes_of(owner) if owner else ({}, frozenset())
        environment = {**outer, **attributes, **parameters_of(node)}
        self._around = Around(
            _below(around, node),
            context or (around.place if nested else NOWHERE),
            allowed=self._allowed_by(node.decorator_list) or around.allowed,
            cold=is_off_device(node) or (around.cold and not context),
            timed=reads_clock(node),
        )
        before = self._evaluator
        hints = hints_of(node, self._names)
        self._evaluator = Evaluator(self._modules, environment, hints, submodules.__contains__)
        self._block(node.body)
        self._evaluator = before

    def _attributes_of(self, owner: ast.ClassDef) -> tuple[Environment, frozenset[str]]:
        if owner not in self._attributes:
            self._attributes[owner] = attributes_of(owner, self._modules)
        return self._attributes[owner]

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        with self._within(function=_below(self._around, node)):
            for statement in node.body:
                if isinstance(statement, Function):
                    self.visit_FunctionDef(statement, node)
                elif isinstance(statement, ast.ClassDef):
                    self.visit(statement)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self._target(target, node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)
            self._target(node.target, node.value)

    def _target(self, target: ast.expr, value: ast.expr) -> None:
        self._assigned(target, value)
        names, values = getattr(target, "elts", None), getattr(value, "elts", None)
        if names and isinstance(value, ast.Tuple | ast.List) and values and len(names) == len(values):
            for one, its in zip(names, [self._evaluator.value(v) for v in values], strict=True):
                self._evaluator.assign(one, its)
        elif matched("None", value):
            self._evaluator.forget(target)
        else:
            known_as = self._evaluator.value(value)
            self._evaluator.assign(target, known_as.but(scalar=False) if names and known_as.tensor else known_as)

    def _assigned(self, target: ast.expr, value: ast.expr) -> None:
        """Look at the targets that are expressions themselves: `x[mask] = value`."""
        if isinstance(target, ast.Tuple | ast.List):
            for element in target.elts:
                self._assigned(element, value)
        elif isinstance(target, ast.Subscript):
            self.visit(target.value)
            self.visit(target.slice)
            self._evaluator.assigned_value = value
            self._match_patterns(target)
            self._evaluator.assigned_value = None

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.visit(node.value)
        if isinstance(node.target, ast.Subscript):
            self.visit(node.target.value)
            self.visit(node.target.slice)
            read = ast.copy_location(ast.Subscript(node.target.value, node.target.slice, ast.Load()), node.target)
            self._made.append(read)
            self._match_patterns(read)
        elif written := key(node.target):
            read_name = ast.copy_location(ast.BinOp(_as_read(node.target), node.op, node.value), node)
            self._made.append(read_name)
            self._evaluator.bind(written, self._evaluator.value(read_name))

    def visit_If(self, node: ast.If) -> None:
        self._truth(node.test, "if")
        unused, cold = branch_off_device(node.test), self._around.cold
        guard = self._around.guard or guard_of(node.test) or made_once(node)
        before = dict(self._evaluator.environment)
        self._block(node.body, guard=guard, cold=cold or unused == "body" or gives_up(node.body))
        if_true = self._evaluator.replace(before)
        self._block(node.orelse, cold=cold or unused == "else" or gives_up(node.orelse))
        if_false = self._evaluator.environment
        if unused:  # what the branch of another device makes of a name doesn't hold on this one
            self._evaluator.replace(if_false if unused == "body" else if_true)
        else:
            values = if_true | if_false
            same = {name: if_true.get(name, v) == v for name, v in values.items()}
            self._evaluator.replace({name: v if same[name] else UNKNOWN for name, v in values.items()})

    def visit_While(self, node: ast.While) -> None:
        with self._within(**self._turn(node)):
            self._truth(node.test, "while")
            self._block(node.body)
            self._truth(node.test, "while")
        self._block(node.orelse)

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        self.visit(node.iter)
        self._loop_target(node.target, node.iter)
        self._block(node.body, **self._turn(node))
        self._block(node.orelse)

    visit_AsyncFor = visit_For

    def _loop_target(self, target: ast.expr, iterated: ast.expr) -> None:
        element = self._evaluator.element(iterated)
        name = self._names.full_name(iterated.func).rpartition(".")[2] if isinstance(iterated, ast.Call) else ""
        pair = target.elts if isinstance(target, ast.Tuple) and len(target.elts) == 2 else None
        if pair and name in ("enumerate", "items", "named_parameters"):
            self._evaluator.assign(pair[0], HOST)
            target = pair[1]
        self._evaluator.assign(target, element)

    def _turn(self, loop: Loop) -> dict[str, object]:
        """Return what is around the body of a loop."""
        place = self._places.of_loop(loop) or self._around.place or self._places.of_running(loop)
        return {"loops": self._around.loops + 1, "place": place}

    def visit_With(self, node: ast.With | ast.AsyncWith) -> None:
        before = self._around
        for item in node.items:
            self.visit(item.context_expr)
            if item.optional_vars is not None:
                self._evaluator.assign(item.optional_vars, UNKNOWN)
            self._enter(item.context_expr)
        self._block(node.body)
        self._around = before

    visit_AsyncWith = visit_With

    def _enter(self, context: ast.expr) -> None:
        label = matched("$record($label, ...)", context)
        if label and self._names.full_name(label.record).endswith("record_function"):
            name = label.label.value if isinstance(label.label, ast.Constant) else f"{{{ast.unparse(label.label)}}}"
            self._around = replace(self._around, scope=(*self._around.scope, str(name)[:80]))
        elif allowed := self._allowed_by([context]):
            self._around = replace(self._around, allowed=allowed)

    def _allowed_by(self, contexts: Sequence[ast.expr]) -> str:
        """Return the reason of `syncscan.allow("…")` among contexts or decorators; empty without."""
        for context in contexts:
            if allow := matched("syncscan.allow($reason, ...)", context, self._names.full_name):
                return str(constant(allow.reason) or "a computed reason")
        return ""

    def visit_Try(self, node: ast.Try) -> None:
        self._block(node.body)
        for handler in node.handlers:
            self._block(handler.body, cold=True)
        self._block((*node.orelse, *node.finalbody))

    visit_TryStar = visit_Try

    def visit_Match(self, node: ast.Match) -> None:
        self.visit(node.subject)
        for case in node.cases:
            self._block(case.body)

    def visit_Assert(self, node: ast.Assert) -> None:
        self._truth(node.test, "assert")

    def visit_Raise(self, node: ast.Raise) -> None:
        """Skip a raise: what its message costs doesn't matter."""

    # Expressions

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """Skip a lambda: it runs elsewhere, if at all."""

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        turn = {"loops": self._around.loops + 1, "place": self._around.place or self._place_of(node)}
        with self._evaluator.apart():
            for generator in node.generators:
                self.visit(generator.iter)
                self._loop_target(generator.target, generator.iter)
                with self._within(**turn):
                    for test in generator.ifs:
                        self._truth(test, "if")
            with self._within(**turn):
                for element in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
                    self.visit(element)

    def _place_of(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> CodeContext:
        """Return the place of a comprehension that goes over a data loader; `NOWHERE` for others."""
        names = (n for generator in node.generators for n in ast.walk(generator.iter) if isinstance(n, ast.expr))
        if any(self._evaluator.value(name).kind is ValueKind.LOADER for name in names):
            return CodeContext(f"a loop over a data loader (line {node.lineno})", evaluation=True)
        return NOWHERE

    visit_SetComp = visit_GeneratorExp = visit_DictComp = visit_ListComp

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        self._evaluator.assign(node.target, self._evaluator.value(node.value))

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._truth(node.test, "if")
        self.visit(node.body)
        self.visit(node.orelse)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        for value in node.values[:-1]:
            self._truth(value, "and" if isinstance(node.op, ast.And) else "or")
        self.visit(node.values[-1])

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._truth(node.operand, "not")
        else:
            self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                self.visit(part.value)
                self._match_patterns(part.value, shown_by="an f-string")

    def visit_Call(self, node: ast.Call) -> None:
        self._parts(node)
        name = self._names.full_name(node.func)
        if name == "bool" and len(node.args) == 1:
            self._match_patterns(node.args[0], question="bool")
        elif name in ("any", "all") and len(node.args) == 1:
            self._asks_of_elements(name, node.args[0])
        elif name in ("max", "min") and len(node.args) > 1 and any(self._evaluator.value(a).tensor for a in node.args):
            self._match_patterns(node, question=name)
        if shown := self._shows(node, name):
            for value in (*node.args, *(k.value for k in node.keywords)):
                for one in value.values if isinstance(value, ast.Dict) else [value]:
                    self._match_patterns(one, shown_by=shown)
        self._match_patterns(node)

    def _asks_of_elements(self, name: str, of: ast.expr) -> None:
        if isinstance(of, ast.GeneratorExp | ast.ListComp) and self._evaluator.value(of).tensor:
            with self._evaluator.apart(), self._within(loops=self._around.loops + 1):
                for generator in of.generators:
                    self._loop_target(generator.target, generator.iter)
                self._match_patterns(of.elt, question=name)

    def _shows(self, call: ast.Call, name: str) -> str:
        """Return the name of what a call prints or logs with; empty for others."""
        if name in ("print", "str", "repr", "format"):
            return name
        if not isinstance(call.func, ast.Attribute) or call.func.attr not in _LOG_METHODS:
            return ""
        owner = name.rpartition(".")[0].rpartition(".")[2].lstrip("_")
        if call.func.attr in ("add_scalar", "add_scalars", "set_postfix", "set_description"):
            return call.func.attr
        return f"{owner}.{call.func.attr}" if owner in _SHOWN else ""

    def _truth(self, node: ast.expr, word: str) -> None:
        """Python asks for the truth value of an expression: of its parts, where it is `and`, `or` or `not`."""
        if isinstance(node, ast.BoolOp):
            for value in node.values:
                self._truth(value, word)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self._truth(node.operand, word)
        else:
            self.visit(node)
            self._match_patterns(node, question=word)

    def _match_patterns(self, node: ast.expr, question: str = "", shown_by: str = "") -> None:
        kind, around = "question" if question else "shown" if shown_by else type(node), self._around
        patterns = (self._often if (around.place or around.loops) and not around.cold else self._anywhere).get(kind, ())
        if not patterns:
            return
        site = LintSite(node, self._evaluator, around, question, shown_by)
        hit = next((hit for pattern in patterns if (hit := pattern.find(site))), None)
        if hit:
            self._found.setdefault((node.lineno, node.col_offset, hit.rule), (hit, site))


def _below(around: Around, node: Function | ast.ClassDef) -> str:
    """Return the qualified name of a function or class."""
    return f"{around.function}.{node.name}" if around.function else node.name


def _as_read(target: ast.expr) -> ast.expr:
    """Return an expression that reads the name of a target."""
    return ast.copy_location(ast.parse(key(target), mode="eval").body, target)


def _by_kind(patterns: Sequence[Pattern]) -> dict[object, list[Pattern]]:
    by_kind: dict[object, list[Pattern]] = defaultdict(list)
    for pattern in patterns:
        by_kind[pattern.looks_at].append(pattern)
    return by_kind
