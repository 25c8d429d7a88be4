"""Keeps predictions on the device until they are joined, and copies them once.

The list is used only by `torch.cat`, `np.concatenate` and the like. Until then, all predictions take memory on the
device, so this is unsafe.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from syncscan.fixing.edits import Draft
from syncscan.fixing.flow import memory
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import Left, Proposal
from syncscan.model.fix import Safety
from syncscan.source.code_pattern import matched

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
                yield from _of(file, add.list, node.args[0], add.copy, copy.tensor)


def _of(file: File, name: ast.Name, added: ast.expr, call: ast.Call, tensor: ast.expr) -> Iterator[Proposal]:
    """Yield the proposal for `x.append(t.cpu())` and `x.append(t.cpu().numpy())`, if all is joined later."""
    numpy = "" if added is call else ".numpy()"
    loops, stores = file.loops_of(call), file.stores(name)
    begins_empty = len(stores) == 1 and matched("[]", file.value_given(stores[0]))
    if not loops or file.types(name) != {"list"} or not begins_empty or file.seen(call).count < FEWEST:
        return
    uses = [n for n in file.loads(name) if n is not name]
    joins = {file.parents[use]: _joined(file, use, numpy) for use in uses}
    if not joins or any(not source or file.within(join, loops[-1]) for join, source in joins.items()):
        return
    draft, code = Draft(file.text), file.text.code(tensor)
    draft.replace(added, code if memory.is_new(file, tensor) else f"{code}.clone()")
    for join, source in joins.items():
        draft.replace(join, f"{source}.cpu(){numpy}")
    change = "keep the predictions on the device and copy them once"
    yield Proposal(node=call, draft=draft, change=change, waits=file.own_waits(call), why=WHY)


def _joined(file: File, use: ast.Name, numpy: str) -> str:
    """Return the call `torch.cat(use)` or `np.concatenate(use)` around a use by torch's function; empty for others."""
    call = file.parents[use]
    join = matched("np.$function($list) | numpy.$function($list)" if numpy else _JOINS, call)
    if join is None or join.list is not use:
        return ""
    if not numpy:
        return file.text.code(call)
    return f"torch.{_NUMPY_JOINS[join.function]}({use.id})" if join.function in _NUMPY_JOINS else ""
