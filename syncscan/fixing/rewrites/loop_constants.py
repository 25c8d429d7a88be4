"""Values on the host that are copied to the device in every step, copied once instead."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from syncscan.fixing import expressions
from syncscan.fixing.edits import Draft
from syncscan.fixing.flow import memory
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import Answers, Proposal, rewrite
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
