"""Values on the host that are copied to the device in every step, copied once instead."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from syncscan.fixing import expressions
from syncscan.fixing.edits import Draft, template
from syncscan.fixing.flow import memory
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import FEWEST, Answers, Proposal, rewrite
from syncscan.source.code_pattern import matched
from syncscan.source.tree import Loop, calls_in

_UNCHANGING = frozenset("NoneType bool float int module str torch.device torch.dtype".split())
"""Types whose values can't be written to."""
_PLAIN = frozenset("len sum range list float int".split())


@rewrite
def constant(file: File) -> Answers:
    for node in file.nodes:
        if isinstance(node, ast.Call) and file.own_waits(node) and _is_made(file, node):
            loops = [loop for loop in file.loops_of(node) if _is_same(file, node, loop)]
            if loops and file.entered(loops[0]).count < file.seen(node).count:
                yield from _of_call(file, node, loops[0])


def _is_made(file: File, call: ast.Call) -> bool:
    """Return whether a call makes a tensor of numbers, or moves one to the device."""
    if file.device_tensor(call) is None:
        return False
    if matched("torch.tensor(...) | torch.as_tensor(...)", call):
        return expressions.takes(call, "requires_grad")
    moved = matched("$x.to(...) | $x.cuda(...)", call)
    of = file.tensors(moved.x) if moved and expressions.is_path(moved.x) else ()
    return bool(of) and not any(t.on_device or t.grad for t in of)


def _is_same(file: File, call: ast.Call, loop: Loop) -> bool:
    """Return whether all that a call is given stays as it is while a loop runs."""
    region = memory.running_in(file, loop)
    for name in expressions.names_in(call):
        if any(store in region for store in file.stores(name)):
            return False
        if file.types(name) - _UNCHANGING and memory.may_change(file, name, region, loop.end_lineno or loop.lineno):
            return False
    inner = calls_in(call)[1:]
    return file.is_steady(call, loop) and all(isinstance(n.func, ast.Name) and n.func.id in _PLAIN for n in inner)


def _of_call(file: File, call: ast.Call, loop: Loop) -> Iterator[Proposal]:
    draft, statement = Draft(file.text), file.statement_of(call)
    assign = matched("$name = $value", statement)
    if assign and assign.value is call and isinstance(assign.name, ast.Name):
        moves = _moves(file, draft, statement, assign.name, loop)
    else:
        moves, name = memory.is_only_read(file, call), file.fresh("constant")
        draft.put_before(loop, f"{name} = {file.text.code(call)}")
        draft.replace(call, name)
    if moves:
        waits = file.own_waits(call) - file.entered(loop).count
        yield Proposal(node=call, draft=draft, change="create the tensor once, before the loop", waits=waits)


def _moves(file: File, draft: Draft, statement: ast.stmt, target: ast.Name, loop: Loop) -> bool:
    """Move an assignment in front of the loop; False where its name isn't free there."""
    loads, block = file.loads(target), file.loops_of(statement)[-1].body
    if len(file.stores(target)) != 1 or not all(memory.is_only_read(file, n) for n in loads):
        return False
    alone = statement in block and len(block) > 1 and expressions.stands_alone(file, statement)
    lines = file.text.lines[statement.lineno - 1 : statement.end_lineno]
    if not alone or len(lines) != 1 or any(n.lineno < statement.lineno for n in loads):
        return False
    draft.put_before(loop, lines[0].strip())
    draft.remove(statement)
    return True


_WHOLE = frozenset("arange permutation randint choice flatnonzero argsort randperm".split())
"""Functions of NumPy and torch whose result is whole numbers, without elements too, and memory of its own."""


@rewrite
def device_index(file: File) -> Answers:
    if expressions.names_several_devices(file):
        return
    for node in file.nodes:
        match node:
            case ast.Assign(targets=[ast.Name() as name], value=value):
                yield from _of_index(file, node, name, value)


def _of_index(file: File, assign: ast.Assign, name: ast.Name, value: ast.expr) -> Iterator[Proposal]:
    uses = _subscripts(file, name)
    waits = sum(file.own_waits(use if isinstance(use.ctx, ast.Load) else file.parents[use]) for use in uses)
    runs = file.seen(value).count
    if not uses or not runs or waits - runs < FEWEST or not _is_index(file, value):
        return
    base = next((use.value for use in uses if _is_bound_before(file, use.value, assign)), None)
    if base is None or not _is_unchanged(file, assign):
        return
    is_array, draft = file.types(value) == {"numpy.ndarray"}, Draft(file.text)
    code = "torch.as_tensor($index, device=$x.device)" if is_array else "$index.to($x.device)"
    draft.replace(value, template(code, index=value, x=file.text.code(base)))
    change, group = "copy the index to the device once", tuple(uses[1:])
    yield Proposal(node=uses[0], draft=draft, change=change, waits=waits - runs, group=group, shared=True)


def _subscripts(file: File, name: ast.Name) -> list[ast.Subscript]:
    """Return the device tensors' subscripts that a name is the index of; empty if it is used in another way too."""
    home = file.home_of(name)
    uses = sorted((n for n in file.names(home, name.id) if n is not name), key=lambda n: (n.lineno, n.col_offset))
    if home is not file.scope_of(name) or (home is file.tree and not file.main):
        return []
    parents = [file.parents[use] for use in uses]
    subscripts = [p for p, use in zip(parents, uses, strict=True) if isinstance(p, ast.Subscript) and p.slice is use]
    alone = len(subscripts) == len(uses) and all(file.scope_of(use) is home for use in uses)
    known = all(file.device_tensor(p.value) is not None for p in subscripts if file.seen(p.value).count)
    return subscripts if alone and known else []


def _is_index(file: File, value: ast.expr) -> bool:
    """Return whether a value is an array or CPU tensor of whole numbers, whatever its length."""
    if file.types(value) == {"numpy.ndarray"}:  # of an empty list NumPy makes floats
        return file.seen(value).elements == ["int64"] and (isinstance(value, ast.Subscript) or _is_whole(value))
    return bool(file.tensors(value)) and all(not t.on_device and t.dtype == "int64" for t in file.tensors(value))


def _is_whole(value: ast.expr) -> bool:
    call = matched("$library.$function(...)", value)
    return call is not None and call.function in _WHOLE


def _is_bound_before(file: File, base: ast.expr, assign: ast.Assign) -> bool:
    """Return whether a name, or the object of an attribute, is certainly bound where an assignment stands."""
    while isinstance(base, ast.Attribute):
        base = base.value
    if not isinstance(base, ast.Name) or (home := file.home_of(base)) is not file.scope_of(assign):
        return False
    statements = [file.statement_of(store) for store in file.stores(base)]
    if not statements:
        return any(isinstance(n, ast.arg) and n.arg == base.id for n in ast.walk(getattr(home, "args", ast.Pass())))
    earlier = all(s.lineno < assign.lineno for s in statements)
    return earlier and any(s in statements for s in file.before(assign))


def _is_unchanged(file: File, assign: ast.Assign) -> bool:
    """Return whether nothing writes to what an index is a part of, in the loop that makes it."""
    if _is_whole(assign.value):
        return True
    around = [file.function_of(assign), *file.loops_of(assign)][-1]
    arrays = [n for n in ast.walk(assign.value) if isinstance(n, ast.Name) and not file.is_number(n)]
    region, until = list(ast.walk(around)), getattr(around, "end_lineno", None) or assign.lineno
    return not any(memory.spread_of(file, name, region, until).may_be_written for name in arrays)
