"""Follows a deferred number through its file, and writes the changes that it needs."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from syncscan.facts.code_pattern import matched
from syncscan.fixing import clock_reads, questions
from syncscan.fixing.edits import Draft, Template
from syncscan.fixing.flow import callees, clocks, containers, deferred_arithmetic, onlookers, read_back, surely
from syncscan.fixing.flow.number_reads import Deferral, NumberRead, copies, in_double, written
from syncscan.fixing.flow.taint import Attribute, Cell, ContainerShape, Local, Origin, Stuck, Taint, number
from syncscan.fixing.program_file import File, Function, Loop, Scope

NO_FLOAT64 = "would need double precision, which Apple's devices don't have"
_CONTROLS = "controls what runs next"
_NEEDED = {
    "While": _CONTROLS,
    "Assert": _CONTROLS,
    "BoolOp": _CONTROLS,
    "Subscript": "is an index, which the host needs",
    "Slice": "is a size, which the host needs",
}
"""By the kind of expression or statement that holds the number: what the host needs it for."""
RARE = 2
"""The number may be read where the host needs it, if that runs at most once per this many deferred reads."""


class NumberWalk:
    """Follows one deferred number; what the file's other `reads` give is a number, and may be deferred too."""

    def __init__(self, file: File, site: NumberRead, reads: frozenset[ast.expr]) -> None:
        self.file, self.site, self.reads = file, site, reads
        self.clocks = clock_reads.clocks(file)
        self.origins: dict[ast.expr, Origin] = {}
        self.anew()

    def anew(self) -> None:
        """Forget the way, and keep which loops were chosen."""
        self.draft = Draft(self.file.text)
        self.how = Deferral()
        self.tainted: dict[ast.expr, Taint] = {}
        self.cells: dict[tuple[Cell, Origin], Taint] = {}
        self.lasting: dict[Origin, dict[str, tuple[Cell, Taint]]] = {}
        self.changed: set[ast.AST] = set()
        """Functions that are written differently, so that all their calls must put their numbers off."""
        self.parameters: dict[tuple[Function, str], set[ast.Call]] = {}
        self.shown: list[ast.AST] = []
        """Where the number is written out, seldom: there a tensor is read."""
        self.converted: list[tuple[tuple[ast.expr, ...], Origin]] = []
        """Expressions of which one has to be a tensor, as it is written so, and the origins of their numbers."""
        self.copied: set[Cell] = set()
        """Cells whose tensor something else holds too, so that nothing may be added to it in place."""
        self.added: dict[ast.AugAssign, Cell] = {}

    def go(self) -> None:
        if self.file.hides_names():
            raise Stuck(
                self.site.node, "may be reached under any name, because the file uses locals(), exec() or similar"
            )
        origin = self.origin(self.site.node, None)
        self.push(self.site.node, Taint(types=frozenset([self.site.type])), origin)
        self._check_parameters()
        self._check_converted()
        self._write_site()
        self._write_sums()
        for source in [o for o in self.origins.values() if o in self.lasting]:
            if source.home is not None:
                onlookers.check(self, source)
                read_back.write(self, source)
        for source in list(self.origins.values()):
            clocks.check(self, source)

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

    def in_region(self, node: ast.AST, origin: Origin) -> bool:
        """Return whether a node may run before the number is read."""
        home, own_function = origin.home, self.file.function_of(origin.node)
        function = self.file.function_of(node)
        if home is None:
            return self.file.within(node, own_function) or self._runs_in(function, own_function)
        if self.file.within(node, home):
            return True
        if function is own_function:
            inside = self.file.scope_of(node)
            return isinstance(inside, ast.Lambda) and inside.lineno < home.lineno
        return self._runs_in(function, home)

    def _runs_in(self, function: Function | ast.Module, outer: ast.AST) -> bool:
        """Return whether another function runs while a loop or function does, or may."""
        if isinstance(function, ast.Module):
            return False
        if _has_yield(function):
            return True
        if self.file.entered(function).count:
            return self.file.ran_inside(function, outer) or callees.runs_on_its_own(self.file, function)
        return self._is_named_in(outer, function) or callees.is_value(self.file, function)

    def region(self, origin: Origin) -> list[ast.AST]:
        """Return the nodes that may run before the number is read."""
        return [node for node in self.file.nodes if self.in_region(node, origin)]

    def _is_named_in(self, home: ast.AST, function: Function | ast.Module) -> bool:
        name = getattr(function, "name", "")
        return any(name in (getattr(n, "id", ""), getattr(n, "attr", "")) for n in ast.walk(home))

    # what becomes of an expression

    def push(self, node: ast.expr, taint: Taint, origin: Origin) -> None:
        """Follow an expression that holds the number."""
        if self.tainted.get(node) == taint:
            return
        self.tainted[node] = taint
        parent = self.file.parents[node]
        if taint.shape is not ContainerShape.NUMBER:
            containers.use(self, node, parent, taint, origin)
            return
        follow: Callable[..., None] | None = getattr(self, f"_in_{type(parent).__name__}", None)
        if follow is None:
            kind = type(parent).__name__
            self.stuck(node, _NEEDED.get(kind, f"is needed by the host here ({kind.lower()})"), origin)
            return
        follow(parent, node, taint, origin)

    def stuck(self, node: ast.AST, why: str, origin: Origin, *, shown: bool = False) -> None:
        """Read the number right here if that happens rarely; otherwise raise `Stuck`."""
        if not self._rarely(node, origin, shown):
            raise Stuck(node, why, origin, shown)

    def write(self, node: ast.AST, template: Template) -> None:
        """Give a node new source, so that its function only works with numbers that are put off."""
        self.draft.replace(node, template)
        self.changed.add(self.file.function_of(node))

    def compute(self, node: ast.expr, taint: Taint, origin: Origin) -> None:
        self.how.computed = True
        self.push(node, taint, origin)

    def is_number(self, node: ast.expr) -> bool:
        """Return whether an expression is a Python number, deferred or not."""
        return self.file.is_number(node)

    def _in_Expr(self, parent: ast.Expr, node: ast.expr, taint: Taint, origin: Origin) -> None:
        """Accept an expression whose value is unused."""

    def _in_BinOp(self, parent: ast.BinOp, node: ast.expr, taint: Taint, origin: Origin) -> None:
        deferred_arithmetic.arithmetic(self, parent, node, taint, origin)

    def _in_UnaryOp(self, parent: ast.UnaryOp, node: ast.expr, taint: Taint, origin: Origin) -> None:
        if isinstance(parent.op, ast.USub | ast.UAdd) and taint.types <= {"float", "int"}:
            self.compute(parent, taint, origin)
        else:
            self.stuck(node, _CONTROLS, origin)

    def _in_Compare(self, parent: ast.Compare, node: ast.expr, taint: Taint, origin: Origin) -> None:
        deferred_arithmetic.comparison(self, parent, node, taint, origin)

    def _in_IfExp(self, parent: ast.IfExp, node: ast.expr, taint: Taint, origin: Origin) -> None:
        if node is parent.test:
            self.stuck(node, _CONTROLS, origin)
        else:
            self.push(parent, taint, origin)

    def _in_If(self, parent: ast.If, node: ast.expr, taint: Taint, origin: Origin) -> None:
        deferred_arithmetic.branch(self, parent, node, origin)

    def _in_FormattedValue(self, parent: ast.FormattedValue, node: ast.expr, taint: Taint, origin: Origin) -> None:
        self.stuck(node, "is printed or logged in every step", origin, shown=parent.conversion == -1)

    def _in_keyword(self, parent: ast.keyword, node: ast.expr, taint: Taint, origin: Origin) -> None:
        call = self.file.parents[parent]
        if isinstance(call, ast.Call):
            self._in_Call(call, node, taint, origin)
        else:
            self.stuck(node, "is needed by the host here", origin)

    def _in_Call(self, parent: ast.Call, node: ast.expr, taint: Taint, origin: Origin) -> None:
        if deferred_arithmetic.function(self, parent, node, taint, origin):
            return
        if containers.method(self, parent, node, taint, origin):
            return
        if (function := callees.callee(self.file, parent)) is not None:
            self.enter(function, parent, node, taint, origin)
            return
        name = ast.unparse(parent.func)
        shown = name in ("print", "str", "repr", "format") or name.endswith(
            ("info", "debug", "log", "write", "add_scalar", ".format")
        )
        self.stuck(
            node, "is printed or logged in every step" if shown else f"is passed to {name}(), which may need it", origin
        )

    def _in_Dict(self, parent: ast.Dict, node: ast.expr, taint: Taint, origin: Origin) -> None:
        if node in parent.keys:
            self.stuck(node, "is a key, which the host needs", origin)
        else:
            self.push(parent, taint.holding(ContainerShape.DICT), origin)

    def _in_List(self, parent: ast.List, node: ast.expr, taint: Taint, origin: Origin) -> None:
        self.push(parent, taint.holding(ContainerShape.LIST), origin)

    def _in_GeneratorExp(
        self, parent: ast.GeneratorExp | ast.ListComp, node: ast.expr, taint: Taint, origin: Origin
    ) -> None:
        if node is not parent.elt:
            self.stuck(node, _CONTROLS, origin)
        elif isinstance(parent, ast.ListComp):
            self.push(parent, taint.holding(ContainerShape.LIST), origin)
        elif matched("sum($x)", self.file.parents[parent]):
            self._follow_sum(parent, taint, origin)
        else:
            self.stuck(node, "is iterated over by the host", origin)

    _in_ListComp = _in_GeneratorExp

    def _in_DictComp(self, parent: ast.DictComp, node: ast.expr, taint: Taint, origin: Origin) -> None:
        if node is parent.value:
            self.push(parent, taint.holding(ContainerShape.DICT), origin)
        else:
            self.stuck(node, "is a key, which the host needs", origin)

    def _follow_sum(self, parent: ast.expr, taint: Taint, origin: Origin) -> None:
        """Follow `sum(…)` of deferred numbers, which adds tensors in the same order."""
        call = self.file.parents[parent]
        assert isinstance(call, ast.Call)
        types = frozenset(self.file.types(call))
        if "float" in types and taint.types != {"float"}:
            self.stuck(parent, "is added to other numbers", origin)
            return
        self.compute(call, number(types), origin)

    def _in_Tuple(self, parent: ast.Tuple, node: ast.expr, taint: Taint, origin: Origin) -> None:
        assign = self.file.parents[parent]
        targets = assign.targets if isinstance(assign, ast.Assign) else []
        at = parent.elts.index(node)
        if isinstance(assign, ast.Return):
            self._in_Return(assign, node, taint, origin)
        elif isinstance(assign, ast.Call) and parent in assign.args:
            self.push(parent, taint.holding(ContainerShape.TUPLE), origin)
        elif targets and all(isinstance(t, ast.Tuple) and len(t.elts) == len(parent.elts) for t in targets):
            for target in targets:
                self.bind(target.elts[at], taint, origin)  # type: ignore[attr-defined]
        elif isinstance(assign, ast.BinOp) and isinstance(assign.op, ast.Mod):
            self.stuck(node, "is printed or logged in every step", origin)
        else:
            self.stuck(node, "is needed by the host here (tuple)", origin)

    def _in_Assign(self, parent: ast.Assign | ast.AnnAssign, node: ast.expr, taint: Taint, origin: Origin) -> None:
        for target in parent.targets if isinstance(parent, ast.Assign) else [parent.target]:
            self.bind(target, taint, origin)
            if isinstance(node, ast.Name | ast.Attribute):
                self.note_copy(target)
        self.note_copy(node)

    _in_AnnAssign = _in_Assign

    def _in_AugAssign(self, parent: ast.AugAssign, node: ast.expr, taint: Taint, origin: Origin) -> None:
        deferred_arithmetic.added(self, parent, node, taint, origin)

    def _in_Return(self, parent: ast.Return, node: ast.expr, taint: Taint, origin: Origin) -> None:
        function = self.file.function_of(parent)
        if origin.home is not None or isinstance(function, ast.Module):
            self.stuck(node, "is returned from within the loop", origin)
            return
        self.note_copy(node)
        at = (
            parent.value.elts.index(node) if isinstance(parent.value, ast.Tuple) and node in parent.value.elts else None
        )
        self.returned(function, taint, origin, at)

    # cells

    def bind(self, target: ast.expr, taint: Taint, origin: Origin) -> None:
        """Follow an assignment of the number, or of a container with it, to a name, attribute or element."""
        if isinstance(target, ast.Subscript):
            containers.store(self, target, taint, origin)
            return
        cell = self.cell(target)
        if cell is None:
            self.stuck(target, "is stored where the analysis can't follow it", origin)
            return
        self.hold(cell, target, taint, origin)

    def cell(self, node: ast.expr) -> Cell | None:
        """Return what a name or attribute is called by; None for what can't be followed."""
        if isinstance(node, ast.Name):
            return Local(self.file.home_of(node), node.id)
        if isinstance(node, ast.Attribute):
            owners = callees.owners(self.file, node.value)
            if len(owners) != 1 or any(callees.method(self.file, owner, node.attr) for owner in owners):
                return None
            return Attribute(next(iter(owners)), node.attr)
        return None

    def hold(self, cell: Cell, path: ast.expr, taint: Taint, origin: Origin) -> None:
        """Follow all uses of a cell that holds the number from here on."""
        earlier = self.cells.get((cell, origin))
        types = taint.types | (earlier.types if earlier else frozenset())
        joined = Taint(taint.shape, types)
        if earlier is not None and earlier.shape is not taint.shape:
            raise Stuck(path, "is stored in a name that also holds other values", origin)
        if earlier == joined:
            return
        self.cells[cell, origin] = joined
        if joined.shape is not ContainerShape.NUMBER:
            self._check_second_names(cell, origin)
        self._lasts(cell, path, joined, origin)
        self._use_all(cell, joined, origin)

    def _use_all(self, cell: Cell, taint: Taint, origin: Origin) -> None:
        """Follow what reads a cell before the loop is over, and what computes with it in place."""
        inner = isinstance(cell, Local) and cell.scope not in self._scopes_of(origin.node)
        for use in self.uses(cell):
            if inner or self.in_region(use, origin):
                self.push(use, taint, origin)
        if isinstance(cell, Attribute):
            self._check_hidden(cell, origin)
        for statement in self.sums(cell):
            if taint.shape is ContainerShape.NUMBER and (inner or self.in_region(statement, origin)):
                deferred_arithmetic.in_place(self, cell, statement, taint, origin)

    def _check_second_names(self, cell: Cell, origin: Origin) -> None:
        """Refuse a container that other code may hold under another name before the loop is over."""
        for use in (use for use in self.uses(cell) if not self._is_after(use, origin)):
            parent = self.file.parents[use]
            if isinstance(parent, ast.Assign | ast.AnnAssign | ast.NamedExpr | ast.Dict | ast.List | ast.Set):
                raise Stuck(use, "is stored in a container with a second name", origin)
            if isinstance(parent, ast.Tuple) and isinstance(self.file.parents[parent], ast.Assign | ast.NamedExpr):
                raise Stuck(use, "is stored in a container with a second name", origin)
        for store in self.stores(cell):
            value = self.file.value_given(store)
            if isinstance(value, ast.Name | ast.Attribute | ast.Subscript) and not self._is_after(store, origin):
                raise Stuck(store, "is stored in a container with a second name", origin)

    def _is_after(self, node: ast.expr, origin: Origin) -> bool:
        """Return whether a node stands after the loop, in its function."""
        end = getattr(origin.home, "end_lineno", None)
        same = self.file.function_of(node) is self.file.function_of(origin.node)
        return same and end is not None and node.lineno > end

    def stores(self, cell: Cell) -> Iterator[ast.expr]:
        if isinstance(cell, Local):
            yield from (n for n in self.file.names(cell.scope, cell.name) if isinstance(n.ctx, ast.Store))
            return
        for node in self.file.attributes(cell.name):
            if isinstance(node.ctx, ast.Store) and cell.owner in callees.owners(self.file, node.value):
                yield node

    def _scopes_of(self, node: ast.AST) -> list[Scope]:
        """Return the function that contains a node, and those around it."""
        scopes: list[Scope] = [self.file.scope_of(node)]
        while not isinstance(scopes[-1], ast.Module):
            scopes.append(self.file.scope_of(scopes[-1]))
        return scopes

    def _check_hidden(self, cell: Attribute, origin: Origin) -> None:
        """Refuse reads of an attribute without its name: `x.__dict__`."""
        for node in self.file.attributes("__dict__"):
            if cell.owner in (callees.owners(self.file, node.value) or {cell.owner}) and self.in_region(node, origin):
                self.stuck(node, "may be read through __dict__", origin, shown=self._is_formatted(node))

    def _is_formatted(self, node: ast.AST) -> bool:
        """Return whether a node is the argument of `text.format(**node)`."""
        keyword = self.file.parents[node]
        call = self.file.parents.get(keyword)
        formats = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "format"
        return formats and isinstance(keyword, ast.keyword) and keyword.arg is None

    def sums(self, cell: Cell) -> list[ast.AugAssign]:
        """Return the statements that compute with a cell in place: `x += y`."""
        statements = [self.file.parents[target] for target in self.stores(cell)]
        return [statement for statement in statements if isinstance(statement, ast.AugAssign)]

    def uses(self, cell: Cell) -> Iterator[ast.expr]:
        if isinstance(cell, Local):
            yield from (n for n in self.file.names(cell.scope, cell.name) if isinstance(n.ctx, ast.Load))
            return
        for node in self.file.attributes(cell.name):
            owners = callees.owners(self.file, node.value)
            if isinstance(node.ctx, ast.Load) and (cell.owner in owners or self._may_be(node, owners)):
                yield node

    def types_read(self, cell: Cell | None) -> set[str]:
        return {kind for use in (self.uses(cell) if cell is not None else ()) for kind in self.file.types(use)}

    def _may_be(self, node: ast.Attribute, owners: set[str]) -> bool:
        """Return whether an attribute's owner is unknown and the attribute is no called method."""
        parent = self.file.parents[node]
        return not owners and not (isinstance(parent, ast.Call) and parent.func is node)

    def _lasts(self, cell: Cell, path: ast.expr, taint: Taint, origin: Origin) -> None:
        """Note what the cell is called where its loop ends; where it outlives its function, at the function's calls."""
        function = self.file.function_of(origin.node)
        code = self.file.text.code(path)
        root = _root(path)
        if root is None or not (isinstance(cell, Local) or questions.is_path(path)):
            raise Stuck(path, "is stored where no name reaches it after the loop", origin)
        holder = self.file.function_of(path)
        if holder is not function:
            self._lasts_outside(cell, code, root, taint, holder, origin)
            return
        if origin.home is not None:
            self.lasting.setdefault(origin, {})[code] = (cell, taint)
            return
        inner = isinstance(cell, Local) and cell.scope is function and cell.scope is not self.file.tree
        if inner and (taint.shape is ContainerShape.NUMBER or not callees.has_parameter(function, code)):
            return
        self._outlives(cell, code, root, taint, function, origin)

    def _lasts_outside(
        self, cell: Cell, path: str, root: ast.Name, taint: Taint, holder: Function | ast.Module, origin: Origin
    ) -> None:
        """Note a cell of a called function under the name that it has here."""
        if isinstance(cell, Local) and cell.scope is holder and not callees.has_parameter(holder, cell.name):
            return
        call, outer = origin.node, origin.behind
        if isinstance(call, ast.Call) and outer is not None and callees.callee(self.file, call) is holder:
            assert not isinstance(holder, ast.Module)
            tree = (
                callees.argument(self.file, call, root.id, holder) if callees.has_parameter(holder, root.id) else None
            )
            if tree is not None and questions.is_path(tree):
                self._hold_at(cell, self.file.text.code(tree) + path[len(root.id) :], tree, taint, outer)
                return
            if isinstance(cell, Local) and cell.scope is self.file.function_of(call):  # nonlocal, or global
                self._hold_at(cell, cell.name, None, taint, outer)
                return
        raise Stuck(holder, "is stored where no name reaches it after the loop", origin)

    def _outlives(
        self, cell: Cell, path: str, root: ast.Name, taint: Taint, function: Function | ast.Module, origin: Origin
    ) -> None:
        calls = None if isinstance(function, ast.Module) else callees.calls_of(self.file, function)
        if not calls:
            raise Stuck(function, "is stored by a function with unknown callers", origin)
        assert not isinstance(function, ast.Module)
        for call in calls:
            outer = self.origin(call, origin)
            given, tree = path, None
            if callees.has_parameter(function, root.id):
                tree = callees.argument(self.file, call, root.id, function)
                if tree is None or not questions.is_path(tree):
                    raise Stuck(function, "is stored in an object without a name after the loop", origin)
                given = self.file.text.code(tree) + path[len(root.id) :]
            elif self.file.home_of(root) not in (self.file.tree, *self._scopes_of(call)):
                raise Stuck(function, "is stored where no name reaches it after the loop", origin)
            self._hold_at(cell, given, tree, taint, outer)

    def _hold_at(self, cell: Cell, path: str, tree: ast.expr | None, taint: Taint, outer: Origin) -> None:
        """Mark a cell at a call of the function that fills it."""
        if isinstance(cell, Local) and tree is not None:
            named = self.cell(tree)
            if named is None:
                raise Stuck(tree, "is stored where the analysis can't follow it", outer)
            cell = named
        if self.cells.get((cell, outer)) == taint:
            return
        self.cells[cell, outer] = taint
        if outer.home is not None:
            self.lasting.setdefault(outer, {})[path] = (cell, taint)
        else:
            function = self.file.function_of(outer.node)
            root = tree if tree is not None else None
            name = _root(root) if root is not None else None
            if name is None:
                raise Stuck(function, "is stored by a nested function", outer)
            self._outlives(cell, path, name, taint, function, outer)
        self._use_all(cell, taint, outer)

    # functions

    def enter(self, function: Function, call: ast.Call, node: ast.expr, taint: Taint, origin: Origin) -> None:
        name = callees.parameter(self.file, call, node, function)
        if name is None or _has_yield(function):
            self.stuck(node, "is passed to a function in a way that the analysis can't follow", origin)
            return
        self.parameters.setdefault((function, name), set()).add(call)
        cell = Local(function, name)
        inner = self.origins.setdefault(call, Origin(call, origin.homes, origin))
        if (cell, inner) in self.cells:
            return
        self.cells[cell, inner] = taint
        self._use_all(cell, taint, inner)

    def returned(self, function: Function, taint: Taint, origin: Origin, at: int | None) -> None:
        calls = callees.calls_of(self.file, function)
        if not calls:
            raise Stuck(function, f"is returned by {function.name}(), which has unknown callers", origin)
        for call in calls:
            if not self.file.seen(call).count:
                continue
            outer = self.origin(call, origin)
            if at is None:
                self.push(call, taint, outer)
                continue
            assign = self.file.parents[call]
            target = assign.targets[0] if isinstance(assign, ast.Assign) and len(assign.targets) == 1 else None
            if not isinstance(target, ast.Tuple) or at >= len(target.elts):
                raise Stuck(call, "is returned in a tuple that isn't unpacked at once", outer)
            self.bind(target.elts[at], taint, outer)

    def _check_parameters(self) -> None:
        """Check that every call of a changed function passes a deferred number."""
        for (function, _), calls in self.parameters.items():
            known = callees.calls_of(self.file, function)
            if function in self.changed and (
                known is None or any(c not in calls and self.file.seen(c).count for c in known)
            ):
                raise Stuck(function, f"is passed to {function.name}(), which other calls give a plain number", None)

    def as_tensor(self, origin: Origin, *nodes: ast.expr, double: bool = False) -> None:
        """Note that what is written needs one of some expressions to be a tensor: `x.double()`, `torch.where(…)`."""
        if double and not self.file.has_float64:
            raise Stuck(nodes[0], NO_FLOAT64, origin)
        self.converted.append((nodes, origin))

    def _check_converted(self) -> None:
        """Check that whatever is written as a tensor is one, even if the loop that makes it one has no turn."""
        for nodes, origin in self.converted:
            if not any(surely.is_tensor(self, node) for node in nodes):
                raise Stuck(nodes[0], "may still be a plain number, if its loop has no turn", origin)

    def note_copy(self, node: ast.expr) -> None:
        """Note that the name's tensor has a second holder from here on."""
        cell = self.cell(node) if isinstance(node, ast.Name | ast.Attribute) else None
        if cell is not None:
            self.copied.add(cell)

    # what is written

    def _write_site(self) -> None:
        origin = self.origins[self.site.node]
        region = (
            self.region(origin) if origin.home is not None else list(ast.walk(self.file.function_of(self.site.node)))
        )
        if copies(self.file, self.site, region):
            self.how.kept = True
        if not self.file.has_float64 and in_double(self.site, self.how):
            raise Stuck(self.site.node, NO_FLOAT64, origin)
        site, how = self.site, self.how
        self.draft.replace(site.node, lambda render: written(self.file, site, how, render))

    def _write_sums(self) -> None:
        """Write `x = x + y` for `x += y` if x has a second holder."""
        for statement, cell in self.added.items():
            if cell in self.copied:
                deferred_arithmetic.write_sum(self, statement)
        for (held, origin), taint in self.cells.items():
            if taint.shape is not ContainerShape.NUMBER:
                for statement in containers.sums_of_shared_entries(self, held, origin):
                    deferred_arithmetic.write_sum(self, statement)

    def _rarely(self, node: ast.AST, origin: Origin, shown: bool) -> bool:
        """Read the number here, if this runs seldom beside the reads that are deferred."""
        if not self.is_rare(node) or self._is_behind_loop(node, origin):
            return False
        if shown:
            self.shown.append(node)
            return True
        statement = self.branch_of(node, origin)
        leaves = [n for n in ast.walk(node) if n in self.tainted]
        cells = [n for n in leaves if isinstance(n, ast.Name | ast.Attribute) and self.cell(n) is not None]
        if statement is None or not cells or any(n in self.origins for n in ast.walk(statement)):
            return False
        for leaf in cells:
            assert isinstance(leaf, ast.expr)
            cell = self.cell(leaf)
            assert cell is not None
            if not questions.is_path(leaf) or not self.may_assign(statement, cell):
                return False
            try:
                block = read_back.lines(self, self.file.text.code(leaf), cell, self.tainted[leaf])
            except Stuck:
                return False
            assign = self._assigned_above(statement, cell)
            if assign is not None:
                self.draft.put_behind(assign, "\n".join(block))
            else:
                self.draft.put_before(statement, "\n".join(block))
        return True

    def _assigned_above(self, statement: ast.stmt, cell: Cell) -> ast.Assign | None:
        """Return the only assignment of a name, if it stands above a statement in its block: there it is read."""
        stores = [self.file.parents[store] for store in self.stores(cell)] if isinstance(cell, Local) else []
        only = stores[0] if len(stores) == 1 else None
        block = self.file.block_of(statement)
        plain = isinstance(only, ast.Assign) and len(only.targets) == 1 and isinstance(only.targets[0], ast.Name)
        above = plain and only in block and block.index(only) < block.index(statement)
        return only if above else None  # type: ignore[return-value]

    def may_assign(self, statement: ast.stmt, cell: Cell) -> bool:
        """Return whether a statement may assign a cell; to a name of the module, if its function declares it."""
        scope = self.file.scope_of(statement)
        outside = isinstance(cell, Local) and cell.scope is self.file.tree and scope is not self.file.tree
        return not outside or self.file.declares_global(scope, cell.name)

    def _is_behind_loop(self, node: ast.AST, origin: Origin) -> bool:
        """Return whether a node stands outside of the loop, in its function, from which the number comes."""
        loops = [home for home in origin.homes if home is not None]
        same = self.file.function_of(node) is self.file.function_of(origin.node)
        return origin.home is None and bool(loops) and same and not self.file.within(node, loops[0])

    def is_rare(self, node: ast.AST) -> bool:
        """Return whether an expression runs seldom beside the reads that are deferred.

        Those are all the reads that enter the functions that take the number: three meters are shown together.
        """
        entered = [self.file.entered(function).count for function, _ in self.parameters]
        return self.file.seen(node).count * RARE <= max([self.site.count, *entered])

    def branch_of(self, node: ast.AST, origin: Origin) -> ast.stmt | None:
        """Return the statement of a rarely taken branch that holds a node."""
        inner: ast.AST = self.file.statement_of(node)
        function = self.file.function_of(origin.node)
        for outer in self.file.ancestors(inner):
            if isinstance(outer, ast.If) and inner is not outer.test:
                return inner if isinstance(inner, ast.stmt) else None
            if isinstance(outer, ast.FunctionDef):
                return inner if outer is not function and isinstance(inner, ast.stmt) else None
            if outer is origin.home:
                return None
            inner = outer
        return None


def _root(node: ast.expr) -> ast.Name | None:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node if isinstance(node, ast.Name) else None


def _has_yield(function: ast.AST) -> bool:
    return any(isinstance(n, ast.Yield | ast.YieldFrom | ast.Await) for n in ast.walk(function))
