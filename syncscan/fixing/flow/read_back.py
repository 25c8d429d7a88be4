"""Writes the lines after a loop that turn deferred tensors into the numbers that the program expects."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from syncscan.fixing import questions
from syncscan.fixing.flow import callees, surely
from syncscan.fixing.flow.taint import Attribute, Cell, ContainerShape, Local, Origin, Stuck, Taint
from syncscan.fixing.program_file import Loop

if TYPE_CHECKING:
    from syncscan.fixing.flow.number_walk import NumberWalk
    from syncscan.fixing.program_file import File


def write(walk: NumberWalk, origin: Origin) -> None:
    """Put what reads the cells of an origin after its loop; `Stuck` where one of them may not be there then."""
    home = origin.home
    assert home is not None
    for path, (cell, taint) in walk.lasting[origin].items():
        if not _is_used_behind(walk, cell, home):
            continue
        if isinstance(cell, Attribute) and isinstance(walk.file.function_of(home), ast.Module):
            raise Stuck(
                home, f"is kept in an attribute, {path}, which the module's own lines would have to read", origin
            )
        if isinstance(cell, Local) and not is_there(walk, cell, home):
            raise Stuck(home, f"is stored in {cell.name}, which is unbound if the loop never runs", origin)
        if isinstance(cell, Local) and cell.scope is walk.file.tree and not walk.may_assign(home, cell):
            raise Stuck(home, f"is stored in {cell.name}, which this function may not assign", origin)
        walk.draft.put_behind(home, "\n".join(lines(walk, path, cell, taint, home)))


def lines(walk: NumberWalk, path: str, cell: Cell, taint: Taint, home: Loop | None = None) -> list[str]:
    """Return the lines that read what a path holds, behind the `home` loop; None for somewhere inside of one."""
    if taint.shape is ContainerShape.NUMBER:
        return [_number(walk, path, cell, taint)]
    if taint.shape is ContainerShape.DICT:
        return [f"{path}.update({{k: v.item() for k, v in {path}.items() if torch.is_tensor(v)}})"]
    if home is not None and isinstance(cell, Local) and (elements := collected(walk, cell, home)) is not None:
        if taint.shape is ContainerShape.LIST and all(surely.is_tensor(walk, element) for element in elements):
            return [f"{path} = torch.stack({path}).tolist() if {path} else []"]
        if taint.shape is ContainerShape.ROWS and (keys := _keys(walk, elements)):
            return [line for key in keys for line in _rows(walk, path, key)]
        if taint.shape is ContainerShape.PAIRS and (at := _positions(walk, elements)) is not None:
            return _pairs(walk, path, *at)
    raise Stuck(
        home or walk.site.node,
        f"is collected beside other values; by hand, let {path} collect tensors only, and read them at once after "
        "the loop, with torch.stack(…).tolist()",
    )


def _number(walk: NumberWalk, path: str, cell: Cell, taint: Taint) -> str:
    """Return the line that reads one name: by its type if that is always the same, else with a check for tensors."""
    if isinstance(cell, Local) and len(taint.types) == 1:
        name = next(iter(taint.types))
        given = _assigned_types(walk, cell)
        if given == {name}:
            return f"{path} = {name}({path})"
    return f"{path} = {path}.item() if torch.is_tensor({path}) else {path}"


def _assigned_types(walk: NumberWalk, cell: Local) -> set[str]:
    """Return the types that assignments give a name; `unknown` for a store without a visible value."""
    types: set[str] = set()
    for store in walk.stores(cell):
        if isinstance(walk.file.parents[store], ast.AugAssign):
            continue
        value = walk.file.value_given(store)
        types |= (walk.file.types(value) or {"unknown"}) if value is not None else {"unknown"}
    return types


def _rows(walk: NumberWalk, path: str, key: str) -> list[str]:
    """Return the lines that read one entry of each dictionary of a list."""
    row, value = walk.file.fresh("row"), walk.file.fresh("value")
    values = f"torch.stack([{row}[{key}] for {row} in {path}]).tolist() if {path} else []"
    return [f"for {row}, {value} in zip({path}, {values}):", f"    {row}[{key}] = {value}"]


def _pairs(walk: NumberWalk, path: str, positions: Sequence[int], length: int) -> list[str]:
    """Return the lines that read the numbers at these positions in each tuple of a list."""
    row, value, values = map(walk.file.fresh, ("row", "value", "values"))
    result = []
    for at in positions:
        parts = ", ".join(value if k == at else f"{row}[{k}]" for k in range(length)) + ("," if length == 1 else "")
        result.append(f"{values} = torch.stack([{row}[{at}] for {row} in {path}]).tolist() if {path} else []")
        result.append(f"{path} = [({parts}) for {row}, {value} in zip({path}, {values})]")
    return result


def collected(walk: NumberWalk, cell: Local, home: Loop) -> list[ast.expr] | None:
    """Return what a list gets in a loop; None unless it starts empty right before it, and has no other name."""
    file = walk.file
    empty, elements = [], []
    for name in file.names(cell.scope, cell.name):
        parent = file.parents[name]
        if isinstance(name.ctx, ast.Store) and isinstance(parent, ast.AugAssign) and file.within(parent, home):
            elements += parent.value.elts if isinstance(parent.value, ast.List) else [parent.value]
        elif _is_behind(file.statement_of(name), home):
            continue
        elif isinstance(name.ctx, ast.Store):
            value = walk.file.value_given(name)
            if not (isinstance(value, ast.List) and not value.elts) or _has_two_targets(parent):
                return None
            empty.append(file.statement_of(name))
        elif file.within(name, home):
            got = _appended(file, name)
            if got is None:
                return None
            elements += got
        else:
            return None
    return elements if len(empty) == 1 and _runs_before(file, empty[0], home) else None


def _runs_before(file: File, statement: ast.stmt, home: Loop) -> bool:
    """Return whether a statement runs once before each time that a loop does."""
    inner: ast.AST = home
    while isinstance(inner, Loop | ast.With | ast.If | ast.Try):
        assert isinstance(inner, ast.stmt)
        block = file.block_of(inner)
        if statement in block:
            return block.index(statement) < block.index(inner)
        inner = file.parents[inner]
        if isinstance(inner, Loop):
            return False
    return False


def _appended(file: File, name: ast.Name) -> list[ast.expr] | None:
    """Return what a use of a list in the loop appends; None where it does anything else but ask for the length."""
    parent = file.parents[name]
    call = file.parents.get(parent)
    if isinstance(parent, ast.Attribute) and isinstance(call, ast.Call) and call.func is parent:
        if parent.attr == "append" and len(call.args) == 1:
            return call.args
        return [] if parent.attr in ("pop", "clear") and isinstance(file.parents[call], ast.Expr) else None
    if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name):
        return [] if parent.func.id == "len" else None
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
        if not all(isinstance(key, ast.Constant) and surely.is_tensor(walk, value) for key, value in put_off):
            return []
        key_sets.add(tuple(walk.file.text.code(key) for key, _ in put_off if key is not None))
    return list(key_sets.pop()) if len(key_sets) == 1 else []


def _positions(walk: NumberWalk, rows: Sequence[ast.expr]) -> tuple[list[int], int] | None:
    """Return where each tuple certainly has a deferred number, and how long it is."""
    places: set[tuple[tuple[int, ...], int]] = set()
    for row in rows:
        if not isinstance(row, ast.Tuple) or any(isinstance(part, ast.Starred) for part in row.elts):
            return None
        at = [k for k, part in enumerate(row.elts) if part in walk.tainted]
        if not all(surely.is_tensor(walk, row.elts[k]) for k in at):
            return None
        places.add((tuple(at), len(row.elts)))
    if len(places) != 1:
        return None
    positions, length = places.pop()
    return list(positions), length


def _has_two_targets(assign: ast.AST) -> bool:
    """Return whether an assignment gives its value a second name: `a = b = []`."""
    return isinstance(assign, ast.Assign) and len(assign.targets) > 1


def _is_behind(statement: ast.stmt, home: Loop) -> bool:
    return statement.lineno > (home.end_lineno or home.lineno)


def _is_used_behind(walk: NumberWalk, cell: Cell, home: Loop) -> bool:
    if isinstance(cell, Attribute) or (cell.scope is walk.file.tree and not walk.file.main):
        return True
    uses = list(walk.uses(cell))
    shared = any(_has_two_targets(walk.file.parents[store]) for store in walk.stores(cell))
    return shared or any(not walk.file.within(n, home) for n in uses) or callees.has_parameter(cell.scope, cell.name)


def is_there(walk: NumberWalk, cell: Local, home: Loop) -> bool:
    """Return whether a name is bound before the loop, or by the loop, which surely runs."""
    if callees.has_parameter(cell.scope, cell.name):
        return True
    for store in walk.stores(cell):
        statement = walk.file.statement_of(store)
        if not walk.file.within(store, home) and statement.lineno < home.lineno:
            blocks = [walk.file.block_of(s) for s in [home, *walk.file.ancestors(home)] if isinstance(s, ast.stmt)]
            if any(statement in block for block in blocks):
                return True
        if isinstance(home, ast.For) and _surely_runs(walk, home) and _is_reached(statement, home):
            return True
    return False


def _surely_runs(walk: NumberWalk, loop: ast.For) -> bool:
    """Return whether a loop runs at least once, whatever the program is given: `for step in range(10)`."""
    of = loop.iter
    if not isinstance(of, ast.Call) or not isinstance(of.func, ast.Name) or of.func.id != "range" or of.keywords:
        return False
    end = of.args[0] if len(of.args) == 1 else None
    if isinstance(end, ast.Name) and questions.is_constant_name(walk.file, end):
        end = walk.file.only_value(end)
    return isinstance(end, ast.Constant) and isinstance(end.value, int) and end.value > 0


def _is_reached(statement: ast.stmt, loop: ast.For) -> bool:
    """Return whether each run of a loop comes to a statement, which stands in its body and behind no way out."""
    if statement not in loop.body:
        return False
    before = loop.body[: loop.body.index(statement)]
    return not any(isinstance(n, ast.Break | ast.Continue) for s in before for n in ast.walk(s))
