"""Copies an index to the device once: a NumPy array or CPU tensor with which a step indexes several device tensors.

The name of the index is used for nothing else, and holds whole numbers. It is assigned one value, which nothing writes
to before its last use. The tensor whose device is named exists where the index is made.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from syncscan.fixing import questions
from syncscan.fixing.edits import Draft, Render
from syncscan.fixing.flow import memory
from syncscan.fixing.flow.number_reads import primary
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import Left, Proposal
from syncscan.model.fix import Safety
from syncscan.source.code_pattern import matched

ID = "device-index"
TITLE = "An index on the host is copied to the device at every use"
RULES = ("cpu-index",)
SAFETY = Safety.SAFE
BEFORE = "rows = torch.randperm(3)\nresult = x[rows].sum() + y[rows].sum()"
AFTER = "rows = torch.randperm(3).to(x.device)\nresult = x[rows].sum() + y[rows].sum()"
FEWEST = 3
"""Waits of an index in the whole run, below which nothing is to be gained."""
_WHOLE = frozenset("arange permutation randint choice flatnonzero argsort randperm".split())
"""Functions of NumPy and torch whose result is whole numbers, without elements too, and memory of its own."""


def find(file: File) -> Iterator[Proposal | Left]:
    if questions.names_several_devices(file):
        return
    for node in file.nodes:
        match node:
            case ast.Assign(targets=[ast.Name() as name], value=value):
                yield from _of(file, node, name, value)


def _of(file: File, assign: ast.Assign, name: ast.Name, value: ast.expr) -> Iterator[Proposal]:
    uses = _subscripts(file, name)
    waits = sum(file.own_waits(use if isinstance(use.ctx, ast.Load) else file.parents[use]) for use in uses)
    runs = file.seen(value).count
    if not uses or not runs or waits - runs < FEWEST or not _is_index(file, value):
        return
    base = next((use.value for use in uses if _is_bound_before(file, use.value, assign)), None)
    if base is None or not _stays(file, assign):
        return
    device = f"{file.text.code(base)}.device"
    is_array = file.types(value) == {"numpy.ndarray"}

    def moved(render: Render) -> str:
        if is_array:
            return f"torch.as_tensor({render(value)}, device={device})"
        return f"{primary(value, render)}.to({device})"

    draft = Draft(file.text)
    draft.replace(value, moved)
    change, group = "copy the index to the device once", tuple(uses[1:])
    yield Proposal(node=uses[0], draft=draft, change=change, waits=waits - runs, group=group, shared=True)


def _subscripts(file: File, name: ast.Name) -> list[ast.Subscript]:
    """Return the device tensors' subscripts that a name is the index of; empty if it is used in another way too."""
    home = file.home_of(name)
    uses = sorted((n for n in file.names(home, name.id) if n is not name), key=lambda n: (n.lineno, n.col_offset))
    if home is not file.scope_of(name) or (home is file.tree and not file.main):
        return []
    parents = [file.parents[use] for use in uses]
    subscripts = [p for p, use in zip(parents, uses, strict=True) if isinstance(p, ast.Subscript) and p.slice is use]
    alone = len(subscripts) == len(uses) and all(file.scope_of(use) is home for use in uses)
    known = all(file.device_tensor(p.value) is not None for p in subscripts if file.seen(p.value).count)
    return subscripts if alone and known else []


def _is_index(file: File, value: ast.expr) -> bool:
    """Return whether a value is an array or CPU tensor of whole numbers, whatever its length."""
    if file.types(value) == {"numpy.ndarray"}:  # of an empty list NumPy makes floats
        return file.seen(value).elements == ["int64"] and (isinstance(value, ast.Subscript) or _is_whole(value))
    return bool(file.tensors(value)) and all(not t.on_device and t.dtype == "int64" for t in file.tensors(value))


def _is_whole(value: ast.expr) -> bool:
    call = matched("$library.$function(...)", value)
    return call is not None and call.function in _WHOLE


def _is_bound_before(file: File, base: ast.expr, assign: ast.Assign) -> bool:
    """Return whether a name, or the object of an attribute, is certainly bound where an assignment stands."""
    while isinstance(base, ast.Attribute):
        base = base.value
    if not isinstance(base, ast.Name) or (home := file.home_of(base)) is not file.scope_of(assign):
        return False
    around = [n for n in [assign, *file.ancestors(assign)] if isinstance(n, ast.stmt)]
    blocks = [(file.block_of(n), n) for n in around]
    statements = [file.statement_of(store) for store in file.stores(base)]
    if not statements:
        return any(isinstance(n, ast.arg) and n.arg == base.id for n in ast.walk(getattr(home, "args", ast.Pass())))
    earlier = all(s.lineno < assign.lineno for s in statements)
    return earlier and any(s in block and block.index(s) < block.index(n) for s in statements for block, n in blocks)


def _stays(file: File, assign: ast.Assign) -> bool:
    """Return whether nothing writes to what an index is a part of, in the loop that makes it."""
    if _is_whole(assign.value):
        return True
    around = [file.function_of(assign), *file.loops_of(assign)][-1]
    arrays = [n for n in ast.walk(assign.value) if isinstance(n, ast.Name) and not file.is_number(n)]
    region, until = list(ast.walk(around)), getattr(around, "end_lineno", None) or assign.lineno
    return not any(memory.may_be_written(file, name, region, until) for name in arrays)
