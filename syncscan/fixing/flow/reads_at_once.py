"""Several reads as one: how they are stacked, and whether they lie on one device."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from syncscan.fixing import questions
from syncscan.fixing.edits import Render
from syncscan.fixing.flow.number_reads import NumberRead, is_data, primary
from syncscan.fixing.program_file import File


def stacked(
    file: File,
    statement: ast.stmt,
    names: Sequence[str],
    reads: Sequence[NumberRead],
    render: Render,
    *,
    in_front: bool = False,
) -> str:
    """Return the source that reads numbers at once, and assigns them to names if there are any.

    It takes the statement's place; `in_front` of it, its lines get the statement's indentation.
    """
    values = [
        f"{primary(site.of, render)}.detach()" if site.detached and not is_data(site.of) else render(site.of)
        for site in reads
    ]
    indent = file.text.indent(statement)
    start = f"{', '.join(names)} = " if names else ""
    line = f"{start}torch.stack([{', '.join(values)}]).tolist()"
    if len(indent) + len(line) <= file.text.width:
        return line
    rows = [f"{start}torch.stack([", *(f"    {value}," for value in values), "]).tolist()"]
    return ("\n" if in_front else f"{file.text.line_end}{indent}").join(rows)


def on_the_device(file: File, node: ast.expr) -> bool:
    """Return whether an expression lies on the device also on paths that the run didn't take.

    All that its function assigns to a name that it is computed of was on the device, or a number.
    """
    for name in questions.names_in(node):
        for store in file.stores(name):
            assign = file.parents[store]
            if not isinstance(assign, ast.Assign) or store not in assign.targets:
                continue
            ran = bool(file.seen(assign.value).count) or questions.constant(file, assign.value)
            if not ran or any(not tensor.on_device for tensor in file.tensors(assign.value)):
                return False
    return True
