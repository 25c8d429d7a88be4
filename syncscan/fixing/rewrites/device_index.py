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
    """Yield the indices that can be copied once."""
    if questions.names_several_devices(file):
        return
    for node in file.nodes:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            yield from _of(file, node, node.targets[0])


def _of(file: File, assign: ast.Assign, name: ast.Name) -> Iterator[Proposal]:
    uses = _subscripts(file, name)
    waits = sum(file.own_waits(file.parents[use] if _is_stored(use) else use) for use in uses)
    runs = file.seen(assign.value).count
    if not uses or not runs or waits - runs < FEWEST or not _is_index(file, assign.value):
        return
    base = next((use.value for use in uses if _is_bound_before(file, use.value, assign)), None)
    if base is None or not _stays(file, assign):
        return
    device = f"{file.text.code(base)}.device"
    is_array = file.types(assign.value) == {"numpy.ndarray"}

    def moved(render: Render) -> str:
        if is_array:
            return f"torch.as_tensor({render(assign.value)}, device={device})"
        return f"{primary(assign.value, render)}.to({device})"

    draft = Draft(file.text)
    draft.replace(assign.value, moved)
    yield Proposal(
        node=uses[0],
        draft=draft,
        change="copy the index to the device once",
        waits=waits - runs,
        group=tuple(uses[1:]),
        shared=True,
    )


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


def _is_stored(subscript: ast.Subscript) -> bool:
    return not isinstance(subscript.ctx, ast.Load)


def _is_index(file: File, value: ast.expr) -> bool:
    """Return whether a value is an array or CPU tensor of whole numbers, whatever its length."""
    if file.types(value) == {"numpy.ndarray"}:
        return file.seen(value).elements == ["int64"] and _is_whole(value)
    return bool(file.tensors(value)) and all(not t.on_device and t.dtype == "int64" for t in file.tensors(value))


def _is_whole(value: ast.expr) -> bool:
    """Return whether an array is of whole numbers even without elements; of an empty list NumPy makes floats."""
    if isinstance(value, ast.Subscript):
        return True
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _WHOLE


def _is_bound_before(file: File, base: ast.expr, assign: ast.Assign) -> bool:
    """Return whether a name, or the object of an attribute, is certainly bound where an assignment stands."""
    while isinstance(base, ast.Attribute):
        base = base.value
    if not isinstance(base, ast.Name):
        return False
    home = file.home_of(base)
    around = [n for n in [assign, *file.ancestors(assign)] if isinstance(n, ast.stmt)]
    blocks = [(file.block_of(n), n) for n in around]
    stores = [n for n in file.names(home, base.id) if not isinstance(n.ctx, ast.Load)]
    if home is not file.scope_of(assign):
        return False
    if not stores:
        return any(isinstance(n, ast.arg) and n.arg == base.id for n in ast.walk(getattr(home, "args", ast.Pass())))
    statements = [file.statement_of(store) for store in stores]
    earlier = all(s.lineno < assign.lineno for s in statements)
    return earlier and any(s in block and block.index(s) < block.index(n) for s in statements for block, n in blocks)


def _stays(file: File, assign: ast.Assign) -> bool:
    """Return whether nothing writes to what an index is a part of, in the loop that makes it."""
    value = assign.value
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _WHOLE:
        return True
    loops = file.loops_of(assign)
    around = loops[-1] if loops else file.function_of(assign)
    arrays = [n for n in ast.walk(value) if isinstance(n, ast.Name) and not file.is_number(n)]
    region, until = list(ast.walk(around)), getattr(around, "end_lineno", None) or assign.lineno
    return not any(memory.may_be_written(file, name, region, until) for name in arrays)
