"""Gives `repeat_interleave` the size of its result, if the host knows the counts.

The counts are a constant tensor, or a tensor made from a list on the host that doesn't change in between. If both are
parameters of a function, each call must pass the list from which the tensor was made.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from syncscan.fixing import questions
from syncscan.fixing.edits import Draft, with_argument
from syncscan.fixing.flow import callees
from syncscan.fixing.program_file import File, Function
from syncscan.fixing.proposal import Left, Proposal
from syncscan.model.fix import Safety

ID = "known-repeats"
TITLE = "repeat_interleave waits for a size that the host knows"
RULES = ("repeat-interleave",)
SAFETY = Safety.SAFE
BEFORE = "counts = torch.full((4,), 2, device=device)\nresult = x.repeat_interleave(counts, 0)"
AFTER = "counts = torch.full((4,), 2, device=device)\nresult = x.repeat_interleave(counts, 0, output_size=8)"
LEAST_COUNTS = 2
"""Fewer counts than this may stand for all rows, so that their sum isn't the size."""
UNKNOWN = "only the device knows the counts"


def find(file: File) -> Iterator[Proposal | Left]:
    """Yield the repetitions that wait for their size."""
    for node in file.nodes:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not file.own_waits(node):
            continue
        if node.func.attr != "repeat_interleave" or any(k.arg in ("output_size", None) for k in node.keywords):
            continue
        counts = _counts(node)
        size = _size(file, counts) if isinstance(counts, ast.Name) else None
        if size is None:
            yield Left(node, UNKNOWN)
            continue
        draft = Draft(file.text)
        draft.replace(node, with_argument(node, f"output_size={size}"))
        yield Proposal(
            node=node,
            draft=draft,
            rule="repeat-interleave",
            rewrite=ID,
            change="pass the size of the result as output_size",
            waits=file.own_waits(node),
        )


def _counts(call: ast.Call) -> ast.expr | None:
    assert isinstance(call.func, ast.Attribute)
    at = 1 if questions.is_torch(call.func.value) else 0
    for keyword in call.keywords:
        if keyword.arg == "repeats":
            return keyword.value
    return call.args[at] if len(call.args) > at else None


def _size(file: File, counts: ast.Name) -> str | None:
    """Return source for the sum of the counts; None if the host doesn't have it."""
    if file.seen(counts).shortest < LEAST_COUNTS:
        return None
    home = file.home_of(counts)
    stores = [n for n in file.names(home, counts.id) if not isinstance(n.ctx, ast.Load)]
    if questions.is_written(file, counts.id, home) or questions.has_second_name(file, counts):
        return None
    if not stores and isinstance(home, ast.FunctionDef):
        return _handed(file, home, counts.id)
    if len(stores) != 1:
        return None
    assign = file.parents[stores[0]]
    if not isinstance(assign, ast.Assign) or len(assign.targets) != 1 or not isinstance(assign.value, ast.Call):
        return None
    value = assign.value
    made_of = _source_list(file, value)
    if made_of is not None:
        return f"sum({made_of.id})" if _stays(file, made_of, assign, counts) else None
    total = _constant(file, value)
    return None if total is None else str(total)


def _source_list(file: File, call: ast.Call) -> ast.Name | None:
    """Return the list that a tensor is made of."""
    if not isinstance(call.func, ast.Attribute) or not questions.is_torch(call.func.value) or not call.args:
        return None
    data = call.args[0]
    if call.func.attr not in ("tensor", "as_tensor") or not isinstance(data, ast.Name):
        return None
    return data if file.seen(data).elements == ["int"] and set(file.types(data)) <= {"list", "tuple"} else None


def _constant(file: File, call: ast.Call) -> int | None:
    """Return the sum of a tensor of constants: `torch.full((6,), 2)`, `torch.tensor([1, 2])`."""
    if not isinstance(call.func, ast.Attribute) or not questions.is_torch(call.func.value) or not call.args:
        return None
    try:
        values = [ast.literal_eval(a) for a in call.args]
    except ValueError:
        return None
    if call.func.attr in ("tensor", "as_tensor") and isinstance(values[0], list):
        whole = all(isinstance(v, int) for v in values[0])
        return sum(values[0]) if whole else None
    if call.func.attr == "full" and len(values) == 2 and isinstance(values[1], int):
        size = values[0] if isinstance(values[0], tuple | list) else (values[0],)
        return int(size[0]) * values[1] if len(size) == 1 else None
    return None


def _stays(file: File, data: ast.Name, assign: ast.Assign, use: ast.Name) -> bool:
    """Return whether the list is unchanged where the tensor is used, in the same function."""
    function = file.function_of(use)
    if file.function_of(assign) is not function or file.home_of(data) is not file.home_of(use):
        return False
    block = file.block_of(assign)
    use_blocks = [
        file.block_of(s)
        for s in (file.statement_of(use), *file.ancestors(file.statement_of(use)))
        if isinstance(s, ast.stmt)
    ]
    if block not in use_blocks or questions.is_written(file, data.id, function):
        return False
    if questions.has_second_name(file, data):
        return False
    between = [n for n in file.names(file.home_of(data), data.id) if not isinstance(n.ctx, ast.Load)]
    return not any(assign.lineno <= n.lineno <= use.lineno for n in between)


def _handed(file: File, function: Function, counts: str) -> str | None:
    """Return the parameter in which every call passes the list that the counts are made of."""
    calls = callees.calls_of(file, function)
    if not calls:
        return None
    names: set[str | None] = set()
    for call in calls:
        given = callees.argument(file, call, counts, function)
        names.add(_beside(file, call, given, function) if isinstance(given, ast.Name) else None)
    name = names.pop() if len(names) == 1 else None
    if name is None or questions.is_written(file, name, function):
        return None
    stored = [n for n in file.names(function, name) if not isinstance(n.ctx, ast.Load)]
    return None if stored else f"sum({name})"


def _beside(file: File, call: ast.Call, counts: ast.Name, function: Function) -> str | None:
    """Return the parameter of a call that gets the list that its counts were made of."""
    stores = [n for n in file.names(file.home_of(counts), counts.id) if not isinstance(n.ctx, ast.Load)]
    assign = file.parents[stores[0]] if len(stores) == 1 else None
    value = assign.value if isinstance(assign, ast.Assign) and len(assign.targets) == 1 else None
    made_of = _source_list(file, value) if isinstance(value, ast.Call) else None
    if made_of is None or not isinstance(assign, ast.Assign) or not _stays(file, made_of, assign, counts):
        return None
    for argument in [*call.args, *(k.value for k in call.keywords)]:
        if isinstance(argument, ast.Name) and argument.id == made_of.id:
            return callees.parameter(file, call, argument, function)
    return None
