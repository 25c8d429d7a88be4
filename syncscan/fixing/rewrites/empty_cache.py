"""Removes `torch.cuda.empty_cache()` from the step.

An `if` that contains nothing else is removed too. The allocator then keeps memory that other programs could use, so
this is unsafe.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from syncscan.fixing import questions
from syncscan.fixing.edits import Draft
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import Left, Proposal
from syncscan.model.fix import Safety

ID = "empty-cache"
TITLE = "The allocator's cache is emptied in every step"
RULES = ("empty-cache",)
SAFETY = Safety.UNSAFE
BEFORE = "for step in range(3):\n    x = x * 2\n    torch.cuda.empty_cache()"
AFTER = "for step in range(3):\n    x = x * 2"
FEWEST = 3
WHY = "the allocator keeps memory that other programs on the device could use"


def find(file: File) -> Iterator[Proposal | Left]:
    """Yield the calls of empty_cache that run in each step."""
    for node in file.nodes:
        if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
            continue
        seen = file.seen(node.value)
        if ast.unparse(node.value.func) == "torch.cuda.empty_cache" and seen.count >= FEWEST and seen.waits:
            statement = _with_guard(file, node)
            if questions.stands_alone(file, statement) and len(file.block_of(statement)) > 1:
                yield _proposal(file, node, statement)


def _with_guard(file: File, statement: ast.stmt) -> ast.stmt:
    parent = file.parents[statement]
    if not isinstance(parent, ast.If) or parent.body != [statement] or parent.orelse:
        return statement
    calls = [n for n in ast.walk(parent.test) if isinstance(n, ast.Call)]
    return parent if all(ast.unparse(c.func) == "torch.cuda.is_available" for c in calls) else statement


def _proposal(file: File, node: ast.Expr, statement: ast.stmt) -> Proposal:
    draft = Draft(file.text)
    draft.remove(statement)
    return Proposal(
        node=node,
        draft=draft,
        rule="empty-cache",
        rewrite=ID,
        change="remove the call",
        waits=file.seen(node.value).waits,
        safety=Safety.UNSAFE,
        why=WHY,
    )
