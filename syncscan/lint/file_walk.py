"""Find the lint warnings in one file's tree: walk each function in order, with what is known of its names."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from types import SimpleNamespace

from msgspec.structs import replace

from syncscan.lint.contexts import NOWHERE, CodeContext, CodeContexts, seldom
from syncscan.lint.evaluate import Environment, Evaluator, is_cpu
from syncscan.lint.hints import attributes_of, hints_of, parameters_of
from syncscan.lint.pattern import Around, Hit, LintSite, Pattern
from syncscan.lint.values import HOST, UNKNOWN, ValueKind
from syncscan.source.code_pattern import matched
from syncscan.source.modules import Modules
from syncscan.source.names import constant, key
from syncscan.source.tree import Function, Loop, SourceTree, walk_own

_COLD = re.compile(r"is_tracing|is_scripting|is_compiling|is_exporting|is_torchdynamo_compiling|is_fx_tracing")
_SHOWN = ("print", "logging", "logger", "log", "wandb", "writer", "tqdm", "pbar", "progress_bar", "warnings")
_LOG_METHODS = frozenset(
    "debug info warning error critical log add_scalar add_scalars set_postfix set_description write print "
    "log_metrics".split()
)
_ASKS = ("bool", "any", "all", "max", "min", "sorted")
"""Builtins that ask for truth values: of what they are given, or of what comparing its elements gives."""
_OTHERS = ("mps", "xpu", "hpu", "npu", "xla", "tpu", "meta")
"""Devices that aren't CUDA's, as a program asks for them."""
_CLOCKS = re.compile(r"(perf_counter|monotonic|time\.time|elapsed_time|\btime\(\))")


Found = tuple[Hit, LintSite]


class FileWalk:
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

    def found(self) -> list[Found]:
        self._block(self._tree.body, Around(timed=_reads_clock(self._tree)))
        while self._later:
            self._later.pop()()
        return [self._found[place] for place in sorted(self._found, key=lambda place: place[:2])]

    # Statements

    def _block(self, statements: Sequence[ast.stmt], around: Around) -> None:
        for statement in statements:
            self._statement(statement, around)

    def _statement(self, node: ast.stmt, around: Around) -> None:
        method = getattr(self, f"_of_{type(node).__name__}", None)
        if method:
            method(node, around)
            return
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self._look(child, around)
            elif isinstance(child, ast.stmt):
                self._statement(child, around)

    def _of_FunctionDef(self, node: Function, around: Around, owner: ast.ClassDef | None = None) -> None:
        self._evaluator.environment.pop(node.name, None)
        evaluator = self._evaluator
        self._later.append(lambda: self._function(node, around, owner, dict(evaluator.environment)))

    _of_AsyncFunctionDef = _of_FunctionDef

    def _function(self, node: Function, around: Around, owner: ast.ClassDef | None, outer: Environment) -> None:
        context = self._places.of_function(node)
        nested = bool(around.function) and not owner
        attributes, submodules = self._attributes_of(owner) if owner else ({}, frozenset())
        environment = {**outer, **attributes, **parameters_of(node)}
        inner = Around(
            _below(around, node),
            context or (around.place if nested else NOWHERE),
            allowed=_allowed_by(node.decorator_list, self._names) or around.allowed,
            cold=_is_never(node) or (around.cold and not context),
            timed=_reads_clock(node),
        )
        before = self._evaluator
        hints = hints_of(node, self._names)
        self._evaluator = Evaluator(self._modules, environment, hints, submodules.__contains__)
        self._block(node.body, inner)
        self._evaluator = before

    def _attributes_of(self, owner: ast.ClassDef) -> tuple[Environment, frozenset[str]]:
        if owner not in self._attributes:
            self._attributes[owner] = attributes_of(owner, self._modules)
        return self._attributes[owner]

    def _of_ClassDef(self, node: ast.ClassDef, around: Around) -> None:
        inside = replace(around, function=_below(around, node))
        for statement in node.body:
            if isinstance(statement, Function):
                self._of_FunctionDef(statement, inside, node)
            elif isinstance(statement, ast.ClassDef):
                self._of_ClassDef(statement, inside)

    def _of_Assign(self, node: ast.Assign, around: Around) -> None:
        self._look(node.value, around)
        for target in node.targets:
            self._target(target, node.value, around)

    def _of_AnnAssign(self, node: ast.AnnAssign, around: Around) -> None:
        if node.value is not None:
            self._look(node.value, around)
            self._target(node.target, node.value, around)

    def _target(self, target: ast.expr, value: ast.expr, around: Around) -> None:
        self._assigned(target, value, around)
        names, values = getattr(target, "elts", None), getattr(value, "elts", None)
        if names and isinstance(value, ast.Tuple | ast.List) and values and len(names) == len(values):
            for one, its in zip(names, [self._evaluator.value(v) for v in values], strict=True):
                self._evaluator.assign(one, its)
        elif matched("None", value):
            self._evaluator.forget(target)
        else:
            known_as = self._evaluator.value(value)
            self._evaluator.assign(target, known_as.but(scalar=False) if names and known_as.tensor else known_as)

    def _assigned(self, target: ast.expr, value: ast.expr, around: Around) -> None:
        """Look at the targets that are expressions themselves: `x[mask] = value`."""
        if isinstance(target, ast.Tuple | ast.List):
            for element in target.elts:
                self._assigned(element, value, around)
        elif isinstance(target, ast.Subscript):
            self._look(target.value, around)
            self._look(target.slice, around)
            self._evaluator.assigned_value = value
            self._match_patterns(target, around)
            self._evaluator.assigned_value = None

    def _of_AugAssign(self, node: ast.AugAssign, around: Around) -> None:
        self._look(node.value, around)
        if isinstance(node.target, ast.Subscript):
            self._look(node.target.value, around)
            self._look(node.target.slice, around)
            read = ast.copy_location(ast.Subscript(node.target.value, node.target.slice, ast.Load()), node.target)
            self._made.append(read)
            self._match_patterns(read, around)
        elif written := key(node.target):
            read_name = ast.copy_location(ast.BinOp(_as_read(node.target), node.op, node.value), node)
            self._made.append(read_name)
            self._evaluator.bind(written, self._evaluator.value(read_name))

    def _of_If(self, node: ast.If, around: Around) -> None:
        self._truth(node.test, "if", around)
        unused = _is_cold_test(node.test)
        body = replace(around, guard=around.guard or _guard(node.test) or _made_once(node))
        body = replace(body, cold=around.cold or unused == "body" or _gives_up(node.body))
        other = replace(around, cold=around.cold or unused == "else" or _gives_up(node.orelse))
        before = dict(self._evaluator.environment)
        self._block(node.body, body)
        if_true = self._evaluator.replace(before)
        self._block(node.orelse, other)
        if_false = self._evaluator.environment
        if unused:  # what the branch of another device makes of a name doesn't hold on this one
            self._evaluator.replace(if_false if unused == "body" else if_true)
        else:
            values = if_true | if_false
            same = {name: if_true.get(name, v) == v for name, v in values.items()}
            self._evaluator.replace({name: v if same[name] else UNKNOWN for name, v in values.items()})

    def _of_While(self, node: ast.While, around: Around) -> None:
        inner = self._inside(node, around)
        self._truth(node.test, "while", inner)
        self._block(node.body, inner)
        self._truth(node.test, "while", inner)
        self._block(node.orelse, around)

    def _of_For(self, node: ast.For, around: Around) -> None:
        self._look(node.iter, around)
        self._loop_target(node.target, node.iter)
        self._block(node.body, self._inside(node, around))
        self._block(node.orelse, around)

    _of_AsyncFor = _of_For

    def _loop_target(self, target: ast.expr, iterated: ast.expr) -> None:
        element = self._evaluator.element(iterated)
        name = self._names.full_name(iterated.func).rpartition(".")[2] if isinstance(iterated, ast.Call) else ""
        pair = target.elts if isinstance(target, ast.Tuple) and len(target.elts) == 2 else None
        if pair and name in ("enumerate", "items", "named_parameters"):
            self._evaluator.assign(pair[0], HOST)
            target = pair[1]
        self._evaluator.assign(target, element)

    def _inside(self, loop: Loop, around: Around) -> Around:
        place = self._places.of_loop(loop) or around.place or self._places.of_running(loop)
        return replace(around, loops=around.loops + 1, place=place)

    def _of_With(self, node: ast.With | ast.AsyncWith, around: Around) -> None:
        for item in node.items:
            self._look(item.context_expr, around)
            if item.optional_vars is not None:
                self._evaluator.assign(item.optional_vars, UNKNOWN)
            around = self._within(item.context_expr, around)
        self._block(node.body, around)

    _of_AsyncWith = _of_With

    def _within(self, context: ast.expr, around: Around) -> Around:
        if not isinstance(context, ast.Call):
            return around
        name = self._names.full_name(context.func)
        if name.endswith("record_function") and context.args:
            label = context.args[0]
            text = label.value if isinstance(label, ast.Constant) else f"{{{ast.unparse(label)}}}"
            return replace(around, scope=(*around.scope, str(text)[:80]))
        return replace(around, allowed=_allowed_by([context], self._names) or around.allowed)

    def _of_Try(self, node: ast.Try, around: Around) -> None:
        self._block(node.body, around)
        for handler in node.handlers:
            self._block(handler.body, replace(around, cold=True))
        self._block(node.orelse, around)
        self._block(node.finalbody, around)

    _of_TryStar = _of_Try

    def _of_Match(self, node: ast.Match, around: Around) -> None:
        self._look(node.subject, around)
        for case in node.cases:
            self._block(case.body, around)

    def _of_Assert(self, node: ast.Assert, around: Around) -> None:
        self._truth(node.test, "assert", around)

    def _of_Raise(self, node: ast.Raise, around: Around) -> None:
        """Skip a raise: what its message costs doesn't matter."""

    # Expressions

    def _look(self, node: ast.expr, around: Around) -> None:
        """Match the patterns on an expression and all inside of it, innermost first."""
        special = getattr(self, f"_look_{type(node).__name__}", None)
        if special:
            special(node, around)
            return
        self._children(node, around)
        self._match_patterns(node, around)

    def _children(self, node: ast.AST, around: Around) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self._look(child, around)
            elif isinstance(child, ast.keyword):
                self._look(child.value, around)

    def _look_Lambda(self, node: ast.Lambda, around: Around) -> None:
        """Skip a lambda: it runs elsewhere, if at all."""

    def _look_ListComp(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, around: Around
    ) -> None:
        inner = replace(around, loops=around.loops + 1, place=around.place or self._place_of(node))
        with self._evaluator.apart():
            for generator in node.generators:
                self._look(generator.iter, around)
                self._loop_target(generator.target, generator.iter)
                for test in generator.ifs:
                    self._truth(test, "if", inner)
            for element in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
                self._look(element, inner)

    def _place_of(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> CodeContext:
        """Return the place of a comprehension that goes over a data loader; `NOWHERE` for others."""
        names = (n for generator in node.generators for n in ast.walk(generator.iter) if isinstance(n, ast.expr))
        if any(self._evaluator.value(name).kind is ValueKind.LOADER for name in names):
            return CodeContext(f"a loop over a data loader (line {node.lineno})", evaluation=True)
        return NOWHERE

    _look_SetComp = _look_GeneratorExp = _look_DictComp = _look_ListComp

    def _look_NamedExpr(self, node: ast.NamedExpr, around: Around) -> None:
        self._look(node.value, around)
        self._evaluator.assign(node.target, self._evaluator.value(node.value))

    def _look_IfExp(self, node: ast.IfExp, around: Around) -> None:
        self._truth(node.test, "if", around)
        self._look(node.body, around)
        self._look(node.orelse, around)

    def _look_BoolOp(self, node: ast.BoolOp, around: Around) -> None:
        for value in node.values[:-1]:
            self._truth(value, "and" if isinstance(node.op, ast.And) else "or", around)
        self._look(node.values[-1], around)

    def _look_UnaryOp(self, node: ast.UnaryOp, around: Around) -> None:
        if isinstance(node.op, ast.Not):
            self._truth(node.operand, "not", around)
        else:
            self._children(node, around)

    def _look_JoinedStr(self, node: ast.JoinedStr, around: Around) -> None:
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                self._look(part.value, around)
                self._match_patterns(part.value, around, shown_by="an f-string")

    def _look_Call(self, node: ast.Call, around: Around) -> None:
        self._children(node, around)
        name = self._names.full_name(node.func)
        arguments = [*node.args, *(k.value for k in node.keywords)]
        if name in _ASKS[:1] and len(node.args) == 1:
            self._match_patterns(node.args[0], around, question="bool")
        elif name in ("any", "all") and len(node.args) == 1:
            self._asks_of_elements(name, node.args[0], around)
        elif name in ("max", "min") and len(node.args) > 1 and any(self._evaluator.value(a).tensor for a in node.args):
            self._match_patterns(node, around, question=name)
        if shown := self._shows(node, name):
            for value in arguments:
                inner = value.values if isinstance(value, ast.Dict) else [value]
                for one in inner:
                    self._match_patterns(one, around, shown_by=shown)
        self._match_patterns(node, around)

    def _asks_of_elements(self, name: str, of: ast.expr, around: Around) -> None:
        if isinstance(of, ast.GeneratorExp | ast.ListComp) and self._evaluator.value(of).tensor:
            with self._evaluator.apart():
                for generator in of.generators:
                    self._loop_target(generator.target, generator.iter)
                self._match_patterns(of.elt, replace(around, loops=around.loops + 1), question=name)

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

    def _truth(self, node: ast.expr, word: str, around: Around) -> None:
        """Python asks for the truth value of an expression: of its parts, where it is `and`, `or` or `not`."""
        if isinstance(node, ast.BoolOp):
            for value in node.values:
                self._truth(value, word, around)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self._truth(node.operand, word, around)
        else:
            self._look(node, around)
            self._match_patterns(node, around, question=word)

    def _match_patterns(self, node: ast.expr, around: Around, question: str = "", shown_by: str = "") -> None:
        kind = "question" if question else "shown" if shown_by else type(node)
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


def _guard(test: ast.expr) -> str:
    """Return a condition as written if what it guards runs in some steps only; empty for others."""
    return _short(test) if seldom(test) else ""


def _made_once(node: ast.If) -> str:
    """Return a condition as written if what it guards is made where it isn't there yet: `if self.mask is None`."""
    missing = {key(test.x) for part in ast.walk(node.test) if (test := matched("$x is None", part))}
    made = {key(target) for part in node.body if isinstance(part, ast.Assign) for target in part.targets}
    return _short(node.test) if any("." in name for name in missing & made) else ""


def _short(node: ast.expr) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _gives_up(body: Sequence[ast.stmt]) -> bool:
    """Return whether a block ends in an error: it runs once at most."""
    return bool(body) and isinstance(body[-1], ast.Raise)


def _is_cold_test(test: ast.expr) -> str:
    """Return the branch that doesn't run on a device, or only while a graph is captured: `body`, `else` or none."""
    negation = matched("not $test", test)
    inner, yes, no = (negation.test, "else", "body") if negation else (test, "body", "else")
    if call := matched("$function(...)", inner):
        name = key(call.function)
        if _COLD.search(name):
            return yes
        return no if name.endswith("cuda.is_available") else ""
    same = matched("$a == $b", inner)
    sides = vars(same or matched("$a != $b", inner) or SimpleNamespace()).values()
    if any(is_cpu(side) or constant(side) in _OTHERS for side in sides):
        return yes if same else no
    if any(constant(side) == "cuda" for side in sides):
        return no if same else yes
    return ""


def _is_never(node: Function) -> bool:
    """Return whether a function does work that doesn't run on a device: collating, reading data, tests."""
    return bool(re.search(r"collate|__getitem__|^test_|^setUp$|__init__$|^__repr__$", node.name))


def _reads_clock(scope: Function | ast.Module) -> bool:
    return any(
        isinstance(part, ast.Attribute | ast.Name) and _CLOCKS.search(key(part)) is not None for part in walk_own(scope)
    )


def _allowed_by(contexts: Sequence[ast.expr], names: SourceTree) -> str:
    """Return the reason of `syncscan.allow("…")` among contexts or decorators; empty without."""
    for context in contexts:
        if isinstance(context, ast.Call) and names.full_name(context.func) == "syncscan.allow" and context.args:
            reason = constant(context.args[0])
            return str(reason) if reason else "a computed reason"
    return ""


def _by_kind(patterns: Sequence[Pattern]) -> dict[object, list[Pattern]]:
    by_kind: dict[object, list[Pattern]] = defaultdict(list)
    for pattern in patterns:
        by_kind[pattern.looks_at].append(pattern)
    return by_kind
