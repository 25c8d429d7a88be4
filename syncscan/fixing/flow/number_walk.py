"""Follows a deferred number through its file, and writes the changes that it needs.

It goes by names, lists, dictionaries and what functions of the file return. What else gets the number may look at it:
an attribute, a tuple, a function that is called with it, a name of another function.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from syncscan.fixing.edits import Draft
from syncscan.fixing.flow import callees, deferred_arithmetic, deferred_values, read_back
from syncscan.fixing.flow.deferred_arithmetic import CONTROLS
from syncscan.fixing.flow.deferred_values import ContainerShape, Local, Origin, Stuck, Taint
from syncscan.fixing.flow.number_reads import Deferral, NumberRead, copies, in_double, written
from syncscan.fixing.program_file import File
from syncscan.source.code_pattern import matched
from syncscan.source.tree import Function, Loop, hands_back

NO_FLOAT64 = "would need double precision, which Apple's devices don't have"
UNFOLLOWED = "is stored where the analysis can't follow it"
ATTRIBUTE = "is stored in an attribute, which other code may read"
SECOND_NAME = "is stored in a container with a second name"
LOGGED = "is printed or logged in every step"
_NEEDED = {
    "While": CONTROLS,
    "Assert": CONTROLS,
    "BoolOp": CONTROLS,
    "UnaryOp": CONTROLS,
    "IfExp": CONTROLS,
    "comprehension": CONTROLS,
    "Subscript": "is an index, which the host needs",
    "Slice": "is a size, which the host needs",
    "Dict": "is a key, which the host needs",
    "DictComp": "is a key, which the host needs",
    "Tuple": "is put in a tuple, which the analysis doesn't follow",
    "GeneratorExp": "is iterated over by the host",
}
"""By the kind of expression or statement that holds the number: what the host needs it for."""
_LOGS = ("info", "debug", "log", "write", "add_scalar", ".format")
_HOLDS = (ast.Assign, ast.AnnAssign, ast.Return, ast.Call, ast.List, ast.Dict, ast.Tuple, ast.IfExp)
"""Kinds of expression that may hold the tensor of a name."""
MOST = 40
"""Choices of loops that are tried."""


def followed(file: File, site: NumberRead, reads: Iterable[ast.expr]) -> NumberWalk | Stuck:
    """Return the way of a number whose read is deferred as far as possible, or where and why the host needs it.

    It is read behind the outermost loop in which nothing needs it.
    """
    walk = NumberWalk(file, site, frozenset(reads))
    first: Stuck | None = None
    for _ in range(MOST):
        walk.anew()
        try:
            walk.go()
            return walk
        except Stuck as stuck:
            first = first or stuck
            if not walk.takes_closer_loop(stuck):
                return stuck
        except RecursionError:
            break
    return first or Stuck(site.node, "takes a path that the analysis can't follow")


class NumberWalk:
    """Follows one deferred number; what the file's other `reads` give is a number, and may be deferred too.

    What follows it into something returns why the host needs it there, as the end of a sentence; empty where it
    doesn't.
    """

    def __init__(self, file: File, site: NumberRead, reads: frozenset[ast.expr]) -> None:
        self.file, self.site, self.reads = file, site, reads
        self.clocks = callees.clocks(file)
        self.origins: dict[ast.expr, Origin] = {}
        self.anew()

    def anew(self) -> None:
        """Forget the way, and keep which loops were chosen."""
        self.draft = Draft(self.file.text)
        self.how = Deferral()
        self.tainted: dict[ast.expr, Taint] = {}
        self.cells: dict[tuple[Local, Origin], Taint] = {}
        self.shown: list[ast.AST] = []
        """Where the number is written out, seldom: there a tensor is read."""
        self.converted: list[tuple[tuple[ast.expr, ...], Origin]] = []
        """Expressions of which one has to be a tensor, as it is written so, and the origins of their numbers."""

    def go(self) -> None:
        if self.file.hides_names():
            raise Stuck(
                self.site.node, "may be reached under any name, because the file uses locals(), exec() or similar"
            )
        self.push(self.site.node, Taint(self.origin(self.site.node, None), frozenset({self.site.type})))
        for nodes, origin in self.converted:
            if not any(read_back.is_tensor(self, node) for node in nodes):
                raise Stuck(nodes[0], "may still be a plain number, if its loop has no turn", origin)
        self._write_site()
        self._write_sums()
        for origin in self.origins.values():
            if origin.home is not None and self.held_by(origin):
                read_back.check_handlers(self, origin, origin.home)
                read_back.write(self, origin, origin.home)
        for origin in self.origins.values():
            read_back.check_clocks(self, origin)

    # origins and regions

    def origin(self, node: ast.expr, behind: Origin | None) -> Origin:
        """Return where the number comes in by this expression; `Stuck` where no loop is around it."""
        if node not in self.origins:
            outside = isinstance(self.file.function_of(node), ast.Module)
            homes: list[Loop | None] = [*([] if outside else [None]), *self.file.loops_of(node)]
            if not homes:
                raise Stuck(node, "is read outside of any loop", behind)
            self.origins[node] = Origin(node, homes, behind)
        return self.origins[node]

    def takes_closer_loop(self, stuck: Stuck) -> bool:
        """Take the next loop for what led to where the host needs the number; False where there is none."""
        origin = stuck.origin or self.origins.get(self.site.node)
        while origin is not None and len(origin.homes) == 1:
            origin = origin.behind
        if origin is not None:
            del origin.homes[0]
            self._forget_behind(origin)
        return origin is not None

    def _forget_behind(self, origin: Origin) -> None:
        """Forget the origins that came of this one: with another loop they may not be there."""
        for call in [call for call, other in self.origins.items() if other.behind is origin]:
            self._forget_behind(self.origins.pop(call))

    def held_by(self, origin: Origin) -> dict[Local, Taint]:
        """Return the names that hold a number of this origin."""
        return {cell: taint for (cell, of), taint in self.cells.items() if of is origin}

    def in_region(self, node: ast.AST, origin: Origin) -> bool:
        """Return whether a node may run before the number is read."""
        own_function, function = self.file.function_of(origin.node), self.file.function_of(node)
        outer = own_function if origin.home is None else origin.home
        if self.file.within(node, outer):
            return True
        if function is own_function:
            inside = self.file.scope_of(node)
            return isinstance(inside, ast.Lambda) and inside.lineno < outer.lineno  # type: ignore[union-attr]
        return self._runs_in(function, outer)

    def _runs_in(self, function: Function | ast.Module, outer: ast.AST) -> bool:
        """Return whether another function runs while a loop or function does, or may."""
        if isinstance(function, ast.Module):
            return False
        if hands_back(function):
            return True
        if self.file.entered(function).count:
            return self.file.ran_inside(function, outer) or callees.runs_on_its_own(self.file, function)
        named = any(function.name in (getattr(n, "id", ""), getattr(n, "attr", "")) for n in ast.walk(outer))
        return named or callees.is_value(self.file, function)

    # what becomes of an expression

    def push(self, node: ast.expr, taint: Taint) -> str:
        """Follow an expression that holds the number; `Stuck` where the host needs it and can't read it there."""
        if self.tainted.get(node) == taint:
            return ""
        self.tainted[node] = taint
        parent = self.file.parents[node]
        if taint.shape is ContainerShape.NUMBER:
            why = self._number_in(parent, node, taint)
        else:
            why = deferred_values.use(self, node, parent, taint)
        if why and not read_back.reads_rarely(self, node, taint.origin):
            raise Stuck(node, why, taint.origin)
        return ""

    def _number_in(self, parent: ast.AST, node: ast.expr, taint: Taint) -> str:
        match parent:
            case ast.Expr():
                return ""
            case ast.BinOp():
                return deferred_arithmetic.operation(self, parent, node, taint)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd()) if taint.types <= {"float", "int"}:
                return self.compute(parent, taint)
            case ast.Compare():
                return deferred_arithmetic.comparison(self, parent, node, taint)
            case ast.IfExp() if node is not parent.test:
                return self.push(parent, taint)
            case ast.If():
                return deferred_arithmetic.branch(self, parent, node, taint)
            case ast.FormattedValue():
                return LOGGED
            case ast.Call():
                return self._argument(parent, node, taint)
            case ast.keyword() if isinstance(call := self.file.parents[parent], ast.Call):
                return self._argument(call, node, taint)
            case ast.Dict(values=values) if node in values:
                return self.push(parent, taint.within(ContainerShape.DICT))
            case ast.DictComp(value=value) if node is value:
                return self.push(parent, taint.within(ContainerShape.DICT))
            case ast.List() | ast.ListComp():
                return self.push(parent, taint.within(ContainerShape.LIST))
            case ast.GeneratorExp() if matched("sum($x)", call := self.file.parents[parent]):
                return self.summed(call, taint)  # type: ignore[arg-type]
            case ast.Tuple() if matched("$text % $values", self.file.parents[parent]):
                return LOGGED
            case ast.Assign() | ast.AnnAssign():
                return self.assigned(parent, taint)
            case ast.AugAssign():
                return deferred_arithmetic.added(self, parent, node, taint)
            case ast.Return():
                return self.returned(parent, taint)
        kind = type(parent).__name__
        return _NEEDED.get(kind, f"is needed by the host here ({kind.lower()})")

    def compute(self, node: ast.expr, taint: Taint) -> str:
        self.how.computed = True
        return self.push(node, taint)

    def is_number(self, node: ast.expr) -> bool:
        """Return whether an expression is a Python number, deferred or not."""
        return node in self.tainted or self.file.is_number(node)

    def _argument(self, call: ast.Call, node: ast.expr, taint: Taint) -> str:
        why = deferred_arithmetic.function(self, call, node, taint)
        if why is None:
            why = deferred_values.added(self, call, taint)
        if why is not None:
            return why
        name = ast.unparse(call.func)
        shown = name in ("print", "str", "repr", "format") or name.endswith(_LOGS)
        return LOGGED if shown else f"is passed to {name}(), which may need it"

    def summed(self, call: ast.Call, taint: Taint) -> str:
        """Follow `sum(…)` of deferred numbers, which adds tensors in the same order."""
        types = self.file.types(call)
        if "float" in types and taint.types != {"float"}:
            return "is added to other numbers"
        return self.compute(call, taint.number(types))

    def assigned(self, statement: ast.Assign | ast.AnnAssign, taint: Taint) -> str:
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        return next(filter(None, [self.bind(target, taint) for target in targets]), "")

    def returned(self, statement: ast.Return, taint: Taint) -> str:
        """Follow what a function returns to its calls."""
        function, origin = self.file.function_of(statement), taint.origin
        if origin.home is not None or isinstance(function, ast.Module):
            return "is returned from within the loop"
        calls = callees.calls_of(self.file, function)
        if not calls:
            raise Stuck(function, f"is returned by {function.name}(), which has unknown callers", origin)
        for call in (call for call in calls if self.file.seen(call).count):
            self.push(call, Taint(self.origin(call, origin), taint.types, taint.shape))
        return ""

    # names

    def bind(self, target: ast.expr, taint: Taint) -> str:
        """Follow an assignment of the number, or of a container with it, to a name or element."""
        cell = self.cell(target)
        if isinstance(target, ast.Subscript) and taint.shape is ContainerShape.NUMBER:
            return deferred_values.inside(self, target.value, taint)
        if cell is None:
            return ATTRIBUTE if isinstance(target, ast.Attribute) else UNFOLLOWED
        return self.hold(cell, target, taint)

    def cell(self, node: ast.AST) -> Local | None:
        """Return what a name stands for; None for what can't be followed."""
        return Local(self.file.home_of(node), node.id) if isinstance(node, ast.Name) else None

    def hold(self, cell: Local, path: ast.expr, taint: Taint) -> str:
        """Follow all uses of a name that holds the number from here on."""
        origin, earlier = taint.origin, self.cells.get((cell, taint.origin))
        if earlier is not None and earlier.shape is not taint.shape:
            raise Stuck(path, "is stored in a name that also holds other values", origin)
        joined = Taint(origin, taint.types | (earlier.types if earlier else frozenset()), taint.shape)
        if earlier == joined:
            return ""
        function = self.file.function_of(origin.node)
        is_container = joined.shape is not ContainerShape.NUMBER
        if cell.scope is not function or self.file.function_of(path) is not function:
            raise Stuck(path, "is stored in a name that other functions may read", origin)
        if is_container and callees.has_parameter(function, cell.name):
            raise Stuck(path, "is stored in an object of the function's callers", origin)
        self.cells[cell, origin] = joined
        if is_container:
            self._check_second_names(cell, origin)
        for use in self.uses(cell):
            if self.in_region(use, origin):
                self.push(use, joined)
        for statement in () if is_container else self._sums(cell, origin):
            if why := deferred_arithmetic.why_not_in_place(self, statement, joined):
                raise Stuck(statement.target, why, origin)
            self.how.computed = True
        return ""

    def _check_second_names(self, cell: Local, origin: Origin) -> None:
        """Refuse a container that other code may hold under another name before the loop is over."""
        for use in (use for use in self.uses(cell) if not self._is_after(use, origin)):
            parent = self.file.parents[use]
            holder = self.file.parents[parent] if isinstance(parent, ast.Tuple) else parent
            held = isinstance(parent, ast.Dict | ast.List | ast.Set)
            if held or isinstance(holder, ast.Assign | ast.AnnAssign | ast.NamedExpr):
                raise Stuck(use, SECOND_NAME, origin)
        for store in self.stores(cell):
            value = self.file.value_given(store)
            if isinstance(value, ast.Name | ast.Attribute | ast.Subscript) and not self._is_after(store, origin):
                raise Stuck(store, SECOND_NAME, origin)

    def _is_after(self, node: ast.expr, origin: Origin) -> bool:
        """Return whether a node stands after the loop, in its function."""
        end = getattr(origin.home, "end_lineno", None)
        same = self.file.function_of(node) is self.file.function_of(origin.node)
        return same and end is not None and node.lineno > end

    def stores(self, cell: Local) -> Iterator[ast.Name]:
        return (n for n in self.file.names(*cell) if isinstance(n.ctx, ast.Store))

    def uses(self, cell: Local) -> Iterator[ast.Name]:
        return (n for n in self.file.names(*cell) if isinstance(n.ctx, ast.Load))

    def types_read(self, cell: Local | None) -> set[str]:
        return {kind for use in (self.uses(cell) if cell is not None else ()) for kind in self.file.types(use)}

    def _sums(self, cell: Local, origin: Origin) -> Iterator[ast.AugAssign]:
        """Yield the statements that compute with a name in place before it is read: `x += y`."""
        for target in self.stores(cell):
            statement = self.file.parents[target]
            if isinstance(statement, ast.AugAssign) and self.in_region(statement, origin):
                yield statement

    def as_tensor(self, taint: Taint, *nodes: ast.expr) -> None:
        """Note that what is written needs one of some expressions to be a tensor: `x.sqrt()`, `torch.where(…)`."""
        self.converted.append((nodes, taint.origin))

    # what is written

    def _write_site(self) -> None:
        site, how, origin = self.site, self.how, self.origins[self.site.node]
        around = self.file.function_of(site.node)
        loop = origin.home is not None
        region = [n for n in self.file.nodes if self.in_region(n, origin)] if loop else list(ast.walk(around))
        how.copied = copies(self.file, site, region)
        if not self.file.has_float64 and in_double(site, how):
            raise Stuck(site.node, NO_FLOAT64, origin)
        self.draft.replace(site.node, written(self.file, site, how))

    def _write_sums(self) -> None:
        """Write `x = x + y` for `x += y` if something else may hold x: a second name, or who took an entry out."""
        for (cell, origin), taint in self.cells.items():
            if taint.shape is ContainerShape.NUMBER:
                for statement in self._sums(cell, origin) if self._is_shared(cell) else ():
                    deferred_arithmetic.write_sum(self, statement)
                continue
            for entry in (self.file.parents[use] for use in self.uses(cell) if self.in_region(use, origin)):
                holder = self.file.parents[entry]
                if isinstance(holder, ast.AugAssign) and holder.target is entry:
                    deferred_arithmetic.write_sum(self, holder)

    def _is_shared(self, cell: Local) -> bool:
        """Return whether something else may hold the tensor of a name."""
        parents = (self.file.parents[use] for use in self.uses(cell) if use in self.tainted)
        given = (self.file.value_given(store) for store in self.stores(cell))
        return any(isinstance(p, _HOLDS) for p in parents) or any(isinstance(value, ast.Name) for value in given)
