"""Index lists, which torch copies to the device at every use."""

from __future__ import annotations

import ast

from syncscan.fixing.program_file import File


def index_list(file: File, node: ast.expr) -> bool:
    """Return whether an index is a list of whole numbers."""
    seen = file.seen(node)
    return seen.types == ["list"] and seen.elements == ["int"]


def moved(file: File, index: ast.expr, of: ast.expr) -> str:
    """Return the source of a list as an index on the device."""
    code = file.text.code(index)
    literal = isinstance(index, ast.List) and index.elts
    kind = "" if literal else ", dtype=torch.long"
    return f"torch.tensor({code}{kind}).to({file.text.code(of)}.device, non_blocking=True)"
