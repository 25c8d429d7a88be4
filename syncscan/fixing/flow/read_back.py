"""Writes the lines after a loop that turn deferred tensors into the numbers that the program expects."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from syncscan.fixing import questions
from syncscan.fixing.flow import deferred_arithmetic
from syncscan.fixing.flow.taint import Attribute, Cell, ContainerShape, Local, Origin, Stuck, Taint
from syncscan.fixing.program_file import Home

if TYPE_CHECKING:
    from syncscan.fixing.flow.number_walk import NumberWalk


def write(walk: NumberWalk, origin: Origin) -> None:
    """Put what reads the cells of an origin after its loop.

    Raises:
        Stuck: one of them may not be there then.
    """
    home = origin.home
    assert home is not None
    for path, (cell, taint) in walk.lasting[origin].items():
        if not _is_used_behind(walk, cell, home):
            continue
        if isinstance(cell, Local) and not is_there(walk, cell, home):
            raise Stuck(home, f"is stored in {cell.name}, which is unbound if the loop never runs", origin)
        if isinstance(cell, Local) and cell.scope is walk.file.tree and not _may_assign(walk, home, cell):
            raise Stuck(home, f"is stored in {cell.name}, which this function may not assign", origin)
        walk.draft.put_behind(home, "\n".join(lines(walk, path, cell, taint, home)))


def lines(walk: NumberWalk, path: str, cell: Cell, taint: Taint, home: Home | None = None) -> list[str]:
    """Return the lines that read what a path holds.

    Args:
        walk: the way of the number.
        path: what the cell is called there.
        cell: the cell that holds the value.
        taint: the value that the cell holds.
        home: the loop behind which that is; None for somewhere inside.
    """
    if taint.shape is ContainerShape.NUMBER:
        return [_number(walk, path, cell, taint)]
    if taint.shape is ContainerShape.DICT:
        numbers = f"{{k: v.item() for k, v in {path}.items() if torch.is_tensor(v)}}"
        counts = "collections.Counter" in {t for use in walk.uses(cell) for t in walk.file.types(use)}
        # Counter.update adds to its counts
        return [f"dict.update({path}, {numbers})" if counts else f"{path}.update({numbers})"]
    if taint.shape is ContainerShape.ROWS:
        return _rows(walk, path)
    if taint.shape is ContainerShape.PAIRS:
        return _pairs(walk, path)
    if taint.shape in (ContainerShape.TABLE, ContainerShape.LISTS):
        values = walk.file.fresh("values")
        lists = f"{path}.values()" if taint.shape is ContainerShape.TABLE else path
        return [f"for {values} in {lists}:", *(f"    {line}" for line in _mixed(walk, values))]
    if taint.shape is ContainerShape.TUPLE:
        raise Stuck(walk.site.node, "is stored in a tuple")
    whole = isinstance(cell, Local) and cell not in walk.read_early
    if home is not None and isinstance(cell, Local) and whole and _is_whole(walk, cell, home):
        return [f"{path} = torch.stack({path}).tolist() if {path} else []"]
    return _mixed(walk, path)


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
    for store in walk.file.names(cell.scope, cell.name):
        if not isinstance(store.ctx, ast.Store) or isinstance(walk.file.parents[store], ast.AugAssign):
            continue
        value = deferred_arithmetic.assigned_value(walk, store)
        types |= (walk.file.types(value) or {"unknown"}) if value is not None else {"unknown"}
    return types


def _rows(walk: NumberWalk, path: str) -> list[str]:
    """Return the lines that read all tensors in a list of dictionaries, one copy per dtype."""
    row, k, v, cells, dtype = map(walk.file.fresh, ("row", "k", "v", "cells", "dtype"))
    return [
        f"for {dtype} in {{{v}.dtype for {row} in {path} for {v} in {row}.values() if torch.is_tensor({v})}}:",
        f"    {cells} = [({row}, {k}) for {row} in {path} for {k}, {v} in {row}.items() {_is_of(v, dtype)}]",
        f"    for ({row}, {k}), {v} in zip({cells}, torch.stack([{row}[{k}] for {row}, {k} in {cells}]).tolist()):",
        f"        {row}[{k}] = {v}",
    ]


def _pairs(walk: NumberWalk, path: str) -> list[str]:
    """Return the lines that read all tensors in a list of tuples, one copy per dtype."""
    i, k, row, v, cells, dtype = map(walk.file.fresh, ("i", "k", "row", "v", "cells", "dtype"))
    same = _is_of(v, dtype)
    return [
        f"for {dtype} in {{{v}.dtype for {row} in {path} for {v} in {row} if torch.is_tensor({v})}}:",
        f"    {cells} = [({i}, {k}) for {i}, {row} in enumerate({path}) for {k}, {v} in enumerate({row}) {same}]",
        f"    for ({i}, {k}), {v} in zip({cells}, torch.stack([{path}[{i}][{k}] for {i}, {k} in {cells}]).tolist()):",
        f"        {path}[{i}] = (*{path}[{i}][:{k}], {v}, *{path}[{i}][{k} + 1 :])",
    ]


def _mixed(walk: NumberWalk, path: str) -> list[str]:
    """Return the lines that read, in place, the tensors of a list that may hold numbers too; one copy per dtype."""
    at, k, v, dtype = map(walk.file.fresh, ("at", "k", "v", "dtype"))
    return [
        f"for {dtype} in {{{v}.dtype for {v} in {path} if torch.is_tensor({v})}}:",
        f"    {at} = [{k} for {k}, {v} in enumerate({path}) {_is_of(v, dtype)}]",
        f"    for {k}, {v} in zip({at}, torch.stack([{path}[{k}] for {k} in {at}]).tolist()):",
        f"        {path}[{k}] = {v}",
    ]


def _is_of(value: str, dtype: str) -> str:
    return f"if torch.is_tensor({value}) and {value}.dtype == {dtype}"


def _is_whole(walk: NumberWalk, cell: Local, home: Home) -> bool:
    """Return whether a list starts empty before the loop, gets only deferred numbers, and has no other name."""
    file = walk.file
    empty = []
    for name in file.names(cell.scope, cell.name):
        parent = file.parents[name]
        if isinstance(name.ctx, ast.Store):
            value = deferred_arithmetic.assigned_value(walk, name)
            if isinstance(parent, ast.AugAssign) and file.within(parent, home):
                parts = parent.value.elts if isinstance(parent.value, ast.List) else [parent.value]
                if not all(_is_put_off(walk, part) for part in parts):
                    return False
                continue
            if not (isinstance(value, ast.List) and not value.elts) or _has_two_targets(parent):
                return False
            empty.append(file.statement_of(name))
        elif file.within(name, home):
            if not _puts_off(walk, name):
                return False
        elif _is_behind(file.statement_of(name), home):
            continue
        else:
            return False
    block = file.block_of(home)
    return len(empty) == 1 and empty[0] in block and block.index(empty[0]) < block.index(home)


def _has_two_targets(assign: ast.AST) -> bool:
    """Return whether an assignment gives its value a second name: `a = b = []`."""
    return isinstance(assign, ast.Assign) and len(assign.targets) > 1


def _puts_off(walk: NumberWalk, name: ast.Name) -> bool:
    """Return whether a use of a list in the loop appends a deferred number or only needs the length."""
    file = walk.file
    parent = file.parents[name]
    call = file.parents.get(parent)
    if isinstance(parent, ast.Attribute) and isinstance(call, ast.Call) and call.func is parent:
        return parent.attr == "append" and len(call.args) == 1 and _is_put_off(walk, call.args[0])
    if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name):
        return parent.func.id == "len"
    return isinstance(parent, ast.If | ast.UnaryOp | ast.Subscript)


def _is_put_off(walk: NumberWalk, node: ast.expr) -> bool:
    """Return whether a value is certainly a tensor."""
    return node in walk.tainted and (node in walk.reads or _all_put_off(walk, node))


def _all_put_off(walk: NumberWalk, node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return any(_is_put_off(walk, side) for side in (node.left, node.right) if side in walk.tainted)
    if isinstance(node, ast.Name):
        cell = walk.cell(node)
        assert isinstance(cell, Local)
        stores = [n for n in walk.file.names(cell.scope, cell.name) if isinstance(n.ctx, ast.Store)]
        values = [deferred_arithmetic.assigned_value(walk, n) for n in stores]
        return all(v is not None and _is_put_off(walk, v) for v in values)
    return False


def _is_behind(statement: ast.stmt, home: Home) -> bool:
    return statement.lineno > (home.end_lineno or home.lineno)


def _is_used_behind(walk: NumberWalk, cell: Cell, home: Home) -> bool:
    """Return whether anything may use a cell after the loop."""
    if isinstance(cell, Attribute) or (cell.scope is walk.file.tree and not walk.file.main):
        return True
    uses = (n for n in walk.file.names(cell.scope, cell.name) if isinstance(n.ctx, ast.Load))
    shared = any(_has_two_targets(walk.file.parents[store]) for store in walk.stores(cell))
    return shared or any(not walk.file.within(n, home) for n in uses) or _is_another_s(walk, cell)


def _is_another_s(walk: NumberWalk, cell: Local) -> bool:
    """Return whether a name is a parameter, whose container the caller holds too."""
    arguments = getattr(cell.scope, "args", None)
    if arguments is None:
        return False
    return cell.name in [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def is_there(walk: NumberWalk, cell: Local, home: Home) -> bool:
    """Return whether a name is bound before the loop, or by the loop, which surely runs."""
    if _is_another_s(walk, cell):
        return True
    if isinstance(home, ast.Assign) and any(isinstance(t, ast.Name) and t.id == cell.name for t in home.targets):
        return True
    stores = (n for n in walk.file.names(cell.scope, cell.name) if isinstance(n.ctx, ast.Store))
    for store in stores:
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
    if isinstance(of, ast.List | ast.Tuple):
        return any(not isinstance(element, ast.Starred) for element in of.elts)
    if not isinstance(of, ast.Call) or not isinstance(of.func, ast.Name) or of.func.id != "range" or of.keywords:
        return False
    end = of.args[0] if len(of.args) == 1 else None
    if isinstance(end, ast.Name) and questions.is_constant_name(walk.file, end):
        stores = [n for n in walk.file.names(walk.file.tree, end.id) if isinstance(n.ctx, ast.Store)]
        end = deferred_arithmetic.assigned_value(walk, stores[0])
    return isinstance(end, ast.Constant) and isinstance(end.value, int) and end.value > 0


def _is_reached(statement: ast.stmt, loop: ast.For) -> bool:
    """Return whether each run of a loop comes to a statement, which stands in its body and behind no way out."""
    if statement not in loop.body:
        return False
    before = loop.body[: loop.body.index(statement)]
    return not any(isinstance(n, ast.Break | ast.Continue) for s in before for n in ast.walk(s))


def _may_assign(walk: NumberWalk, home: Home, cell: Local) -> bool:
    scope = walk.file.scope_of(home)
    return walk.file.declares_global(scope, cell.name)


__all__ = ["is_there", "lines", "write"]
