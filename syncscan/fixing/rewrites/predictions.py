"""Keeps predictions on the device until they are joined, and copies them once.

The list is used only by `torch.cat`, `np.concatenate` and the like, or is extended by numbers that nothing reads before
the loop ends. Until then, all predictions take memory on the device, so this is unsafe.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from syncscan.facts.code_pattern import matched
from syncscan.fixing.edits import Draft
from syncscan.fixing.flow import memory
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import Left, Proposal
from syncscan.model.fix import Safety

ID = "predictions"
TITLE = "Predictions are copied to the host batch by batch"
RULES = ("cpu",)
SAFETY = Safety.UNSAFE
BEFORE = "parts = []\nfor row in x:\n    parts.append(row.exp().cpu())\nresult = torch.cat(parts)"
AFTER = "parts = []\nfor row in x:\n    parts.append(row.exp())\nresult = torch.cat(parts).cpu()"
FEWEST = 3
WHY = "all of them take device memory until the loop ends"
_JOINS = " | ".join(f"torch.{name}($list, ...)" for name in ("cat", "stack", "vstack", "hstack"))
_NUMPY_JOINS = {"concatenate": "cat", "vstack": "vstack", "hstack": "hstack", "stack": "stack"}


def find(file: File) -> Iterator[Proposal | Left]:
    for node in file.nodes:
        if not isinstance(node, ast.Call):
            continue
        if add := matched("$list.append($copy.numpy()) | $list.append($copy)", node):
            copy = matched("$tensor.cpu()", add.copy)
            if copy and isinstance(add.list, ast.Name) and file.own_waits(add.copy):
                yield from _of_tensors(file, add.list, node.args[0], add.copy, copy.tensor)
        elif add := matched("$list.extend($numbers)", node):
            copy = matched("$tensor.cpu().tolist() | $tensor.tolist()", add.numbers)
            if copy and isinstance(add.list, ast.Name) and file.seen(add.numbers).waits:
                yield from _of_numbers(file, node.func, add.list, add.numbers, copy.tensor)


def _of_tensors(file: File, name: ast.Name, added: ast.expr, call: ast.Call, tensor: ast.expr) -> Iterator[Proposal]:
    """Yield the proposal for `x.append(t.cpu())` and `x.append(t.cpu().numpy())`, if all is joined later."""
    numpy = "" if added is call else ".numpy()"
    loops = file.loops_of(call)
    if not loops or file.types(name) != {"list"} or not _begins_empty(file, name):
        return
    uses = [n for n in file.loads(name) if n is not name]
    joins = {file.parents[use]: _joined(file, use, numpy) for use in uses}
    if not joins or any(not source or file.within(join, loops[-1]) for join, source in joins.items()):
        return
    draft = Draft(file.text)
    draft.replace(added, _kept(file, tensor))
    for join, source in joins.items():
        draft.replace(join, f"{source}.cpu(){numpy}")
    yield from _proposal(file, call, draft)


def _joined(file: File, use: ast.Name, numpy: str) -> str:
    """Return the call `torch.cat(use)` or `np.concatenate(use)` around a use by torch's function; empty for others."""
    call = file.parents[use]
    join = matched("np.$function($list) | numpy.$function($list)" if numpy else _JOINS, call)
    if join is None or join.list is not use:
        return ""
    if not numpy:
        return file.text.code(call)
    return f"torch.{_NUMPY_JOINS[join.function]}({use.id})" if join.function in _NUMPY_JOINS else ""


def _of_numbers(file: File, extend: ast.expr, name: ast.Name, call: ast.Call, of: ast.expr) -> Iterator[Proposal]:
    """Yield the proposal for `x.extend(t.tolist())`, if the list isn't looked at before the loop is over."""
    tensor, loops = file.device_tensor(of), file.loops_of(call)
    if tensor is None or tensor.dims != 1 or not loops:
        return
    if not _begins_empty(file, name, before=loops[0]) or not _is_read_behind(file, name, loops[0]):
        return
    draft = Draft(file.text)
    draft.replace(extend, f"{name.id}.append")
    draft.replace(call, _kept(file, of))
    draft.put_behind(loops[0], f"{name.id} = torch.cat({name.id}).tolist() if {name.id} else []")
    yield from _proposal(file, call, draft)


def _proposal(file: File, call: ast.Call, draft: Draft) -> Iterator[Proposal]:
    if file.seen(call).count >= FEWEST:
        change = "keep the predictions on the device and copy them once"
        yield Proposal(node=call, draft=draft, change=change, waits=file.own_waits(call), why=WHY)


def _kept(file: File, tensor: ast.expr) -> str:
    """Return the source of a tensor in memory of its own."""
    code = file.text.code(tensor)
    return code if memory.is_new(file, tensor) else f"{code}.clone()"


def _is_read_behind(file: File, name: ast.Name, loop: ast.stmt) -> bool:
    """Return whether all other uses of a list stand behind its loop, and no handler sees the loop fail."""
    uses = [n for n in file.loads(name) if n is not name]
    behind = all(n.lineno > (loop.end_lineno or loop.lineno) for n in uses)
    alone = all(file.scope_of(n) is file.scope_of(loop) for n in uses)
    return behind and alone and not any(isinstance(n, ast.Try) for n in file.ancestors(loop))


def _begins_empty(file: File, name: ast.Name, before: ast.stmt | None = None) -> bool:
    """Return whether a list is made once, empty (and in the block of a later statement): no part lies on the host."""
    stores = file.stores(name)
    if len(stores) != 1 or not matched("[]", file.value_given(stores[0])):
        return False
    if before is None:
        return True
    block, maker = file.block_of(before), file.statement_of(stores[0])
    return maker in block and block.index(maker) < block.index(before)
