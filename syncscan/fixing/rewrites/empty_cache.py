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
from syncscan.source.code_pattern import matched

ID = "empty-cache"
TITLE = "The allocator's cache is emptied in every step"
RULES = ("empty-cache",)
SAFETY = Safety.UNSAFE
BEFORE = "for step in range(3):\n    x = x * 2\n    torch.cuda.empty_cache()"
AFTER = "for step in range(3):\n    x = x * 2"
FEWEST = 3
WHY = "the allocator keeps memory that other programs on the device could use"


def find(file: File) -> Iterator[Proposal | Left]:
    for node in file.nodes:
        if not isinstance(node, ast.Expr) or not matched("torch.cuda.empty_cache()", node.value):
            continue
        seen, statement = file.seen(node.value), questions.with_guard(file, node)
        lone = not questions.stands_alone(file, statement) or len(file.block_of(statement)) < 2
        if seen.count >= FEWEST and seen.waits and not lone:
            draft = Draft(file.text)
            draft.remove(statement)
            yield Proposal(node=node, draft=draft, change="remove the call", waits=seen.waits, why=WHY)
