"""Makes a constant tensor, or its copy on the device, once before the loop.

The loop neither reassigns nor modifies the tensor and the values that it is made of. The statement is in the loop
itself, not under a condition, and its name is used for nothing else.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from syncscan.fixing import questions
from syncscan.fixing.edits import Draft
from syncscan.fixing.flow import memory
from syncscan.fixing.program_file import File, Loop
from syncscan.fixing.proposal import Left, Proposal
from syncscan.model.fix import Safety

ID = "constant"
TITLE = "A constant tensor is created in every step"
RULES = ("to-device", "tensor-constructor")
SAFETY = Safety.SAFE
BEFORE = "for step in range(3):\n    weight = torch.tensor([0.3, 0.7], device=device)"
AFTER = "weight = torch.tensor([0.3, 0.7], device=device)\nfor step in range(3):\n    pass"
_MAKES = frozenset("tensor as_tensor".split())
_MOVES = frozenset("to cuda".split())
_UNCHANGING = frozenset("NoneType bool float int module str torch.device torch.dtype".split())
"""Types whose values can't be written to."""


def find(file: File) -> Iterator[Proposal | Left]:
    """Yield the tensors that can be made before a loop."""
    for node in file.nodes:
        if isinstance(node, ast.Call) and file.own_waits(node) and _is_made(file, node):
            loops = [loop for loop in file.loops_of(node) if _is_same(file, node, loop)]
            if loops and file.entered(loops[0]).count < file.seen(node).count:
                yield from _of(file, node, loops[0])


def _is_made(file: File, call: ast.Call) -> bool:
    """Return whether a call makes a tensor of numbers, or moves one to the device."""
    if not isinstance(call.func, ast.Attribute) or file.device_tensor(call) is None:
        return False
    name, base = call.func.attr, call.func.value
    if questions.is_torch(base):
        return name in _MAKES and not any(k.arg == "requires_grad" for k in call.keywords)
    of = file.tensors(base)
    return name in _MOVES and bool(of) and not any(t.on_device or t.grad for t in of) and questions.is_path(base)


def _is_same(file: File, call: ast.Call, loop: Loop) -> bool:
    """Return whether all that a call is given stays as it is while a loop runs."""
    region = memory.running_in(file, loop)
    for name in questions.names_in(call):
        stores = [n for n in file.names(file.home_of(name), name.id) if not isinstance(n.ctx, ast.Load)]
        if any(store in region for store in stores):
            return False
        if file.types(name) - _UNCHANGING and memory.may_change(file, name, region, loop.end_lineno or loop.lineno):
            return False
    if not file.is_steady(call, loop):
        return False
    return not any(isinstance(n, ast.Call) and n is not call and not _is_harmless(n) for n in ast.walk(call))


def _is_harmless(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id in ("len", "sum", "range", "list", "float", "int")


def _of(file: File, call: ast.Call, loop: Loop) -> Iterator[Proposal]:
    statement = file.statement_of(call)
    draft = Draft(file.text)
    target = _target(statement, call)
    if target is not None:
        if not _moves(file, draft, statement, target, loop):
            return
    else:
        if not memory.is_only_read(file, call):
            return
        name = file.fresh("constant")
        draft.put_before(loop, f"{name} = {file.text.code(call)}")
        draft.replace(call, name)
    yield Proposal(
        node=call,
        draft=draft,
        change="create the tensor once, before the loop",
        waits=file.own_waits(call) - file.entered(loop).count,
    )


def _target(statement: ast.stmt, call: ast.Call) -> ast.Name | None:
    if isinstance(statement, ast.Assign) and statement.value is call and len(statement.targets) == 1:
        target = statement.targets[0]
        return target if isinstance(target, ast.Name) else None
    return None


def _moves(file: File, draft: Draft, statement: ast.stmt, target: ast.Name, loop: Loop) -> bool:
    """Move an assignment in front of the loop; False where its name isn't free there."""
    uses = file.names(file.home_of(target), target.id)
    stores = [n for n in uses if not isinstance(n.ctx, ast.Load)]
    if len(stores) != 1 or any(isinstance(n.ctx, ast.Load) and not memory.is_only_read(file, n) for n in uses):
        return False
    inner = file.loops_of(statement)[-1]
    alone = statement in inner.body and len(inner.body) > 1 and questions.stands_alone(file, statement)
    if not alone or any(n.lineno < statement.lineno for n in uses if n is not target):
        return False
    lines = file.text.lines[statement.lineno - 1 : statement.end_lineno]
    if len(lines) != 1:
        return False
    draft.put_before(loop, lines[0].strip())
    draft.remove(statement)
    return True
