"""Reads deferred numbers behind their loop, if nobody needs or sees them before: handlers around it, clocks in it."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from syncscan.fixing import expressions
from syncscan.fixing.flow import callees
from syncscan.fixing.flow.deferred_values import ContainerShape, Local, Origin, Stuck, Taint
from syncscan.fixing.program_file import File
from syncscan.source.code_pattern import matched
from syncscan.source.tree import Loop, hands_back

if TYPE_CHECKING:
    from syncscan.fixing.flow.number_walk import NumberWalk


def write(walk: NumberWalk, origin: Origin, home: Loop) -> None:
    """Put what reads the names of an origin after its loop; `Stuck` where one of them may not be there then."""
    for cell, taint in walk.held_by(origin).items():
        if not _is_used_behind(walk, cell, home):
            continue
        if not _is_there(walk, cell, home):
            raise Stuck(home, f"is stored in {cell.name}, which is unbound if the loop never runs", origin)
        walk.draft.put_behind(home, "\n".join(lines(walk, cell, taint, home)))


def lines(walk: NumberWalk, cell: Local, taint: Taint, home: Loop | None = None) -> list[str]:
    """Return the lines that read what a name holds, behind the `home` loop; None for somewhere inside of one."""
    name = cell.name
    if taint.shape is ContainerShape.NUMBER:
        kind = next(iter(taint.types))
        plain = len(taint.types) == 1 and _assigned_types(walk, cell) == taint.types
        checked = f"{name}.item() if torch.is_tensor({name}) else {name}"
        return [f"{name} = {f'{kind}({name})' if plain else checked}"]
    if taint.shape is ContainerShape.DICT:
        return [f"{name}.update({{k: v.item() for k, v in {name}.items() if torch.is_tensor(v)}})"]
    elements = _collected(walk, cell, home) if home is not None else None
    if elements is not None and taint.shape is ContainerShape.LIST and all(is_tensor(walk, e) for e in elements):
        return [f"{name} = torch.stack({name}).tolist() if {name} else []"]
    if elements is not None and taint.shape is ContainerShape.ROWS and (keys := _keys(walk, elements)):
        return [line for key in keys for line in _rows(walk, name, key)]
    raise Stuck(
        home or walk.site.node,
        f"is collected beside other values; by hand, let {name} collect tensors only, and read them at once after "
        "the loop, with torch.stack(…).tolist()",
    )


def _assigned_types(walk: NumberWalk, cell: Local) -> set[str]:
    """Return the types that assignments give a name; `unknown` for a store without a visible value."""
    types: set[str] = set()
    for store in walk.stores(cell):
        if not isinstance(walk.file.parents[store], ast.AugAssign):
            value = walk.file.value_given(store)
            types |= (walk.file.types(value) if value is not None else set()) or {"unknown"}
    return types


def _rows(walk: NumberWalk, name: str, key: str) -> list[str]:
    """Return the lines that read one entry of each dictionary of a list."""
    row, value = walk.file.fresh("row"), walk.file.fresh("value")
    values = f"torch.stack([{row}[{key}] for {row} in {name}]).tolist() if {name} else []"
    return [f"for {row}, {value} in zip({name}, {values}):", f"    {row}[{key}] = {value}"]


def _collected(walk: NumberWalk, cell: Local, home: Loop) -> list[ast.expr] | None:
    """Return what a list gets in a loop; None unless it starts empty right before it, and has no other name."""
    file = walk.file
    empty, elements = [], []
    for name in file.names(cell.scope, cell.name):
        parent, statement = file.parents[name], file.statement_of(name)
        if isinstance(parent, ast.AugAssign) and name is parent.target and file.within(parent, home):
            elements += parent.value.elts if isinstance(parent.value, ast.List) else [parent.value]
        elif statement.lineno > (home.end_lineno or home.lineno):
            continue
        elif matched("[]", file.value_given(name)) and not _has_two_targets(parent):
            empty.append(statement)
        elif file.within(name, home) and (got := _appended(file, name)) is not None:
            elements += got
        else:
            return None
    return elements if len(empty) == 1 and _runs_before(file, empty[0], home) else None


def _runs_before(file: File, statement: ast.stmt, home: Loop) -> bool:
    """Return whether a statement runs once before each time that a loop does."""
    return statement in file.before(home) and file.loops_of(statement) == file.loops_of(home)


def _appended(file: File, name: ast.Name) -> list[ast.expr] | None:
    """Return what a use of a list in the loop appends; None where it does anything else but ask for the length."""
    parent = file.parents[name]
    if isinstance(parent, ast.Attribute):
        call = file.parents[parent]
        if append := matched("$list.append($element)", call):
            return [append.element]
        takes_away = matched("$list.pop(...) | $list.clear()", call) and isinstance(file.parents[call], ast.Expr)
        return [] if takes_away else None
    if isinstance(parent, ast.Call):
        return [] if matched("len($list)", parent) else None
    reads = isinstance(parent, ast.Subscript) and isinstance(parent.ctx, ast.Load)
    return [] if reads or isinstance(parent, ast.If | ast.UnaryOp) else None


def _keys(walk: NumberWalk, rows: Sequence[ast.expr]) -> list[str]:
    """Return the source of the keys under which each dictionary certainly has a deferred number."""
    key_sets: set[tuple[str, ...]] = set()
    for row in rows:
        if not isinstance(row, ast.Dict) or None in row.keys:
            return []
        pairs = zip(row.keys, row.values, strict=True)
        put_off = [(key, value) for key, value in pairs if value in walk.tainted]
        if not all(isinstance(key, ast.Constant) and is_tensor(walk, value) for key, value in put_off):
            return []
        key_sets.add(tuple(walk.file.text.code(key) for key, _ in put_off if key is not None))
    return list(key_sets.pop()) if len(key_sets) == 1 else []


def _has_two_targets(assign: ast.AST) -> bool:
    """Return whether an assignment gives its value a second name: `a = b = []`."""
    return isinstance(assign, ast.Assign) and len(assign.targets) > 1


def _is_used_behind(walk: NumberWalk, cell: Local, home: Loop) -> bool:
    if cell.scope is walk.file.tree and not walk.file.main:
        return True
    shared = any(_has_two_targets(walk.file.parents[store]) for store in walk.stores(cell))
    return shared or any(not walk.file.within(use, home) for use in walk.uses(cell))


def _is_there(walk: NumberWalk, cell: Local, home: Loop) -> bool:
    """Return whether a name is bound before the loop, or by the loop, which surely runs."""
    file = walk.file
    if callees.has_parameter(cell.scope, cell.name):
        return True
    for store in walk.stores(cell):
        statement = file.statement_of(store)
        if statement in file.before(home):
            return True
        if isinstance(home, ast.For) and _surely_runs(walk, home) and _is_reached(statement, home):
            return True
    return False


def _surely_runs(walk: NumberWalk, loop: ast.For) -> bool:
    """Return whether a loop runs at least once, whatever the program is given: `for step in range(10)`."""
    turns = matched("range($end)", loop.iter)
    end = turns.end if turns else None
    if isinstance(end, ast.Name) and expressions.is_constant_name(walk.file, end):
        end = walk.file.only_value(end)
    return isinstance(end, ast.Constant) and isinstance(end.value, int) and end.value > 0


def _is_reached(statement: ast.stmt, loop: ast.For) -> bool:
    """Return whether each run of a loop comes to a statement, which stands in its body and behind no way out."""
    if statement not in loop.body:
        return False
    before = loop.body[: loop.body.index(statement)]
    return not any(isinstance(n, ast.Break | ast.Continue) for s in before for n in ast.walk(s))


# whether a deferred value surely is a tensor where it is used: a loop that makes it one may have no turn


def is_tensor(walk: NumberWalk, node: ast.expr) -> bool:
    """Return whether an expression is a tensor in the changed program, whatever path led to it."""
    if node in walk.reads:
        return node in walk.tainted
    match node:
        case ast.BinOp(left=left, right=right):
            return bool(matched("sum($x) / len($x)", node)) or is_tensor(walk, left) or is_tensor(walk, right)
        case ast.UnaryOp(operand=operand):
            return is_tensor(walk, operand)
        case ast.Compare(left=left, comparators=others):
            return any(is_tensor(walk, side) for side in (left, *others))
        case ast.Call():
            return node in walk.tainted and not matched("sum(...)", node) and _gives_it(walk, node)
        case ast.Name() if node in walk.tainted:
            return _is_given(walk, node)
    return False


def _gives_it(walk: NumberWalk, call: ast.Call) -> bool:
    """Return whether a call certainly gives a tensor: a function of the file always, any other for one of a tensor."""
    function = callees.callee(walk.file, call)
    if function is None:
        return any(is_tensor(walk, argument) for argument in call.args)
    returned = [n for n in ast.walk(function) if isinstance(n, ast.Return) and walk.file.function_of(n) is function]
    ends = isinstance(function.body[-1], ast.Return)
    return ends and all(n.value is not None and is_tensor(walk, n.value) for n in returned)


def _is_given(walk: NumberWalk, node: ast.Name) -> bool:
    """Return whether each way to a use leads through an assignment of a tensor behind the last one of a number."""
    file, stores = walk.file, set(walk.file.stores(node))
    for statement in file.before(node):
        gives = [_gives_tensor(walk, n) for n in ast.walk(statement) if n in stores]
        if not all(gives) or (gives and not hasattr(statement, "body")):
            return all(gives)
    return False


def _gives_tensor(walk: NumberWalk, target: ast.AST) -> bool:
    statement = walk.file.parents[target]
    value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign) else None
    return value is not None and is_tensor(walk, value)


_CONTEXTS = ("torch.", "_io.", "contextlib.nullcontext", "tqdm.", "warnings.catch_warnings", "tempfile.", "threading.")
"""How the types of contexts begin that let exceptions pass."""
_HANDLED = "is used by an exception handler around the loop"
_INTERRUPTED = "may be used after an exception that is handled around the loop"
_TIMED = "is waited for before a clock is read, so that its wait is part of what is measured"


def check_handlers(walk: NumberWalk, origin: Origin, home: Loop) -> None:
    """Make sure that nobody sees the names of an origin before they are read: the loop may be interrupted."""
    if hands_back(home):
        raise Stuck(home, "is stored in a loop that yields", origin)
    for cell in walk.held_by(origin):
        inner: ast.AST = home
        for outer in walk.file.ancestors(home):
            if outer is cell.scope:
                break
            if isinstance(outer, ast.Try) and inner in (*outer.body, *outer.orelse):
                _check_try(walk, cell, outer, origin)
            if isinstance(outer, ast.With | ast.AsyncWith) and inner in outer.body:
                passes = all(_lets_pass(walk.file, item.context_expr) for item in outer.items)
                if not passes and _is_used_outside(walk, cell, outer):
                    raise Stuck(outer, _INTERRUPTED, origin)
            inner = outer


def _check_try(walk: NumberWalk, cell: Local, node: ast.Try, origin: Origin) -> None:
    handlers = (*node.handlers, *node.finalbody)
    if any(walk.file.within(use, handler) for use in walk.uses(cell) for handler in handlers):
        raise Stuck(node, _HANDLED, origin)
    ends = all(isinstance(handler.body[-1], ast.Raise) for handler in node.handlers)
    if not ends and _is_used_outside(walk, cell, node):
        raise Stuck(node, _INTERRUPTED, origin)


def _is_used_outside(walk: NumberWalk, cell: Local, node: ast.Try | ast.With | ast.AsyncWith) -> bool:
    """Return whether a name is used outside of a statement's body, which an exception leaves early."""
    return any(not any(walk.file.within(use, s) for s in node.body) for use in walk.uses(cell))


def _lets_pass(file: File, context: ast.expr) -> bool:
    """Return whether a context handles no exceptions."""
    names = callees.names(file, context) if isinstance(context, ast.Call) else frozenset()
    if names and all(name.startswith(_CONTEXTS) or name == "builtins.open" for name in names):
        return True
    types = file.types(context)
    return bool(types) and all(kind.startswith(_CONTEXTS) for kind in types)


def check_clocks(walk: NumberWalk, origin: Origin) -> None:
    """Make sure that a wait stands before each clock that is read while a number is deferred, as it did before."""
    for clock in walk.clocks:
        timed = walk.in_region(clock, origin) and not callees.follows_sync(walk.file, clock)
        if timed and not _waits_before(walk, clock, origin):
            raise Stuck(clock, _TIMED, origin)


def _waits_before(walk: NumberWalk, clock: ast.Call, origin: Origin) -> bool:
    """Return whether the number is read between where it was read and a clock in the same turn of the loop."""
    file = walk.file
    if file.function_of(clock) is not file.function_of(origin.node):
        return False
    read, until = (file.text.span(node)[0] for node in (origin.node, clock))
    beside = walk.draft.beside
    behind = [s for s in file.before(clock) if (s, True) in beside or (s, False) in beside]
    around = [s for s in (clock, *file.ancestors(clock)) if (s, False) in beside]
    inside = (s for s in (*behind, *around) if origin.home is None or file.within(s, origin.home))
    if any(not file.text.span(s)[0] < read < until for s in inside):
        return True
    shown = (file.text.span(node)[0] for node in walk.shown if file.within(node, file.statement_of(clock)))
    return any(at < until for at in shown)


RARE = 2
"""The number may be read where the host needs it, if that runs at most once per this many deferred reads."""


def reads_rarely(walk: NumberWalk, node: ast.AST, origin: Origin) -> bool:
    """Read the number here, if this runs seldom beside the reads that are deferred."""
    if walk.file.seen(node).count * RARE > walk.site.count or _is_behind_loop(walk, node, origin):
        return False
    shown = walk.file.parents[node]
    if isinstance(shown, ast.FormattedValue) and shown.conversion == -1:
        walk.shown.append(node)
        return True
    statement = _branch_of(walk, node, origin)
    leaves = [n for n in ast.walk(node) if n in walk.tainted and isinstance(n, ast.Name)]
    if statement is None or not leaves or any(n in walk.origins for n in ast.walk(statement)):
        return False
    for leaf in leaves:
        cell = walk.cell(leaf)
        if cell is None or walk.file.scope_of(statement) is not cell.scope:
            return False
        try:
            block = "\n".join(lines(walk, cell, walk.tainted[leaf]))
        except Stuck:
            return False
        if (assign := _assigned_above(walk, statement, cell)) is not None:
            walk.draft.put_behind(assign, block)
        else:
            walk.draft.put_before(statement, block)
    return True


def _assigned_above(walk: NumberWalk, statement: ast.stmt, cell: Local) -> ast.stmt | None:
    """Return the only assignment of a name, if it stands above a statement in its block: there it is read."""
    assigns = [walk.file.statement_of(store) for store in walk.stores(cell)]
    above = [s for s in walk.file.above(statement) if matched("$name = $value", s)]
    return assigns[0] if len(assigns) == 1 and assigns[0] in above else None


def _is_behind_loop(walk: NumberWalk, node: ast.AST, origin: Origin) -> bool:
    """Return whether a node stands outside of the loop, in its function, from which the number comes."""
    loops = [home for home in origin.homes if home is not None]
    same = walk.file.function_of(node) is walk.file.function_of(origin.node)
    return origin.home is None and bool(loops) and same and not walk.file.within(node, loops[0])


def _branch_of(walk: NumberWalk, node: ast.AST, origin: Origin) -> ast.stmt | None:
    """Return the statement of a rarely taken branch that holds a node."""
    inner: ast.AST = walk.file.statement_of(node)
    for outer in walk.file.ancestors(inner):
        if isinstance(outer, ast.If) and inner is not outer.test:
            return inner if isinstance(inner, ast.stmt) else None
        if outer is origin.home or isinstance(outer, ast.FunctionDef):
            return None
        inner = outer
    return None
