"""`torch.save(model.state_dict(), path)` in a loop: each tensor is copied to the host."""

from __future__ import annotations

import ast

from syncscan.lint.pattern import Hit, LintSite
from syncscan.lint.tree import walk

RULES = ("checkpoint-save",)
LOOKS_AT = (ast.Call,)
_FIX = "Copy the state to pinned memory and write it on another thread: torch.distributed.checkpoint.async_save."


def find(site: LintSite) -> Hit | None:
    """Match a call that saves a module's or an optimizer's state, as the code shows it."""
    node = site.node
    if not isinstance(node, ast.Call) or site.torch(node) != "save" or not node.args:
        return None
    states = (part for part in walk(node.args[0]) if isinstance(part, ast.Attribute) and part.attr == "state_dict")
    if next(states, None) is None:
        return None
    return Hit("checkpoint-save", "saving a checkpoint waits for every tensor", _FIX, seldom=True)
