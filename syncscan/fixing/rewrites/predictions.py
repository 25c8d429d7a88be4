"""Keeps predictions on the device until they are joined, and copies them once.

The list is used only by `torch.cat` or `torch.stack`. Until then, all predictions take memory on the device, so this is
unsafe.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from syncscan.fixing import questions
from syncscan.fixing.edits import Draft
from syncscan.fixing.flow.number_reads import FRESH
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
_FRESH = FRESH | frozenset("softmax log_softmax relu where gather".split())
WHY = "all of them take device memory until the loop ends"


def find(file: File) -> Iterator[Proposal | Left]:
    """Yield the copies to the host that could be one."""
    for node in file.nodes:
        if isinstance(node, ast.Call) and _copies(node) and file.seen(node).count >= FEWEST and file.own_waits(node):
            yield from _of(file, node)


def _copies(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "cpu" and not call.args


def _of(file: File, call: ast.Call) -> Iterator[Proposal]:
    append = file.parents[call]
    if not isinstance(append, ast.Call) or not isinstance(append.func, ast.Attribute) or append.func.attr != "append":
        return
    name = append.func.value
    loops = file.loops_of(call)
    if not isinstance(name, ast.Name) or append.args != [call] or not loops or file.types(name) != {"list"}:
        return
    uses = [n for n in file.names(file.home_of(name), name.id) if isinstance(n.ctx, ast.Load) and n is not name]
    joins = [_cat_around(file, use) for use in uses]
    if not _begins_empty(file, name):
        return
    if not joins or any(join is None or file.within(join, loops[-1]) for join in joins):
        return
    assert isinstance(call.func, ast.Attribute)
    draft = Draft(file.text)
    code = file.text.code(call.func.value)
    draft.replace(call, code if _is_fresh(call.func.value) else f"{code}.clone()")
    for join in joins:
        assert join is not None
        draft.replace(join, f"{file.text.code(join)}.cpu()")
    yield Proposal(
        node=call,
        draft=draft,
        rule="cpu",
        rewrite=ID,
        change="keep the predictions on the device and copy them once",
        waits=file.own_waits(call),
        safety=Safety.UNSAFE,
        why=WHY,
    )


def _begins_empty(file: File, name: ast.Name) -> bool:
    """Return whether a list is made once, empty, and has no other name: what else it holds may lie on the host."""
    stores = [n for n in file.names(file.home_of(name), name.id) if not isinstance(n.ctx, ast.Load)]
    assign = file.parents[stores[0]] if len(stores) == 1 else None
    value = assign.value if isinstance(assign, ast.Assign) else None
    return isinstance(value, ast.List) and not value.elts and not questions.has_second_name(file, name)


def _is_fresh(node: ast.expr) -> bool:
    """Return whether an expression gives memory of its own, which nothing can write to later."""
    if isinstance(node, ast.BinOp | ast.UnaryOp | ast.Compare):
        return True
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _FRESH


def _cat_around(file: File, use: ast.Name) -> ast.Call | None:
    """Return the `torch.cat(use)` around a use."""
    call = file.parents[use]
    if not isinstance(call, ast.Call) or call.args[:1] != [use]:
        return None
    return call if ast.unparse(call.func) in ("torch.cat", "torch.stack", "torch.vstack", "torch.hstack") else None
