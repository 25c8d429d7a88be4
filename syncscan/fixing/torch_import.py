"""Imports torch where new lines name it and the file doesn't import it."""

from __future__ import annotations

import ast

from syncscan.fixing.edits import Draft
from syncscan.fixing.program_file import File


def import_torch(file: File, draft: Draft) -> None:
    """Have a draft import torch, if it needs that."""
    words = "".join(edit.text for edit in draft.edits())
    imports = [n for n in file.nodes if isinstance(n, ast.Import)]
    names = {(a.asname or a.name).partition(".")[0] for n in imports for a in n.names}
    if "torch." not in words or "torch" in names:
        return
    body = [n for n in file.tree.body if isinstance(n, ast.Import | ast.ImportFrom)]
    body = [n for n in body if not (isinstance(n, ast.ImportFrom) and n.module == "__future__")]
    if body:
        draft.put_before(body[0], "import torch")


def with_torch(file: File, draft: Draft) -> Draft:
    """Return a draft that stands on its own: with the import that it needs."""
    alone = draft.copy()
    import_torch(file, alone)
    return alone
