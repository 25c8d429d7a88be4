"""Copies to the device with `non_blocking=True`, and pins the loader's batches.

The source is a pinned batch from a loader that nothing else keeps or modifies, or pageable memory, which the driver
stages before the call returns (CUDA driver API, "API synchronization behavior"). Up to 256 KB of it are copied without
a wait; a larger copy may wait until its memory is pinned, which the report says, and counts as a wait. A comprehension
may move a batch's tensors. A number, and zeros, ones or a range are made on the device. A list that becomes a tensor on
the device, by `torch.tensor` or as an index, becomes a tensor on the host first, which is then copied. A loader gets
`pin_memory` if all that it returns is on the host, and if there is a GPU.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from syncscan.dryrun.device_kinds import STAGED_BYTES
from syncscan.fixing import questions
from syncscan.fixing.arguments import with_argument
from syncscan.fixing.edits import Draft, Render, Template
from syncscan.fixing.flow import memory
from syncscan.fixing.flow.number_reads import root_of
from syncscan.fixing.index_lists import index_list, moved
from syncscan.fixing.made_there import made_there
from syncscan.fixing.messages import Tensor
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import Left, Proposal
from syncscan.model.fix import Safety

ID = "without-waiting"
TITLE = "A copy to the device waits needlessly"
RULES = ("to-device", "tensor-constructor", "cpu-index")
SAFETY = Safety.SAFE
BEFORE = "result = torch.tensor([0, 2], device=device)"
AFTER = "result = torch.tensor([0, 2]).to(device, non_blocking=True)"
ARGUMENT = "non_blocking=True"
FEWEST = 3
STAGED = 256 * 1024
"""Bytes from pageable memory that the driver surely stages without a wait (measured, `dryrun/wait_table.py`)."""
PAGEABLE = "it copies {:.0f} MB of pageable memory, for which non_blocking=True waits too: pin the memory"
LOADER = "torch.utils.data.dataloader.DataLoader"


def find(file: File) -> Iterator[Proposal | Left]:
    """Yield the copies to the device that wait."""
    for node in file.nodes:
        if file.seen(node).count < FEWEST:
            continue
        if isinstance(node, ast.Call) and file.own_waits(node):
            if template := made_there(file, node):
                yield _made(file, node, template)
            elif draft := _copy(file, node) or _constructor(file, node):
                yield _proposal(file, node, draft)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and file.own_waits(node):
            yield from _index(file, node, node, file.own_waits(node))


def _made(file: File, node: ast.Call, template: Template) -> Proposal:
    draft = Draft(file.text)
    draft.replace(node, template)
    return Proposal(
        node=node,
        draft=draft,
        change="make the tensor on the device",
        waits=file.own_waits(node),
    )


def _proposal(file: File, node: ast.Call, draft: Draft) -> Proposal | Left:
    pinned = any(t.pinned for t in _source(file, node)) or len(draft.nodes) > 1
    size = 0 if pinned else _bytes(file, node)
    if size > STAGED_BYTES:
        return Left(node, PAGEABLE.format(size / 1e6))
    return Proposal(
        node=node,
        draft=draft,
        change="copy with non_blocking=True" + (", which helps once the pageable memory is pinned" * (size > STAGED)),
        waits=file.own_waits(node),
        pageable=size > STAGED,
    )


def _source(file: File, call: ast.Call) -> tuple[Tensor, ...]:
    return file.tensors(call.func.value) if isinstance(call.func, ast.Attribute) else ()


def _bytes(file: File, node: ast.expr) -> float:
    """Return the size of the largest copy."""
    sizes = [int("".join(filter(str.isdigit, t.dtype)) or 8) for t in file.tensors(node)]
    return file.seen(node).longest * max(sizes, default=0) / 8


def _copy(file: File, call: ast.Call) -> Draft | None:
    """Return the draft for `x.to(device)` and `x.cuda()`."""
    function = call.func
    if not isinstance(function, ast.Attribute) or function.attr not in ("to", "cuda"):
        return None
    of = file.tensors(function.value)
    sent = file.tensors(call)
    if not of or any(t.on_device for t in of) or not sent or not all(t.on_device for t in sent):
        return None
    if any(k.arg in ("non_blocking", None) for k in call.keywords) or len(call.args) > 2:
        return None
    if _is_temporary(function.value) and not any(t.pinned for t in of):
        return _sent(file, call)
    base = root_of(function.value)
    if base is None:
        return None
    around = list(ast.walk([file.function_of(call), *file.loops_of(call)][-1]))
    batch = _batch_of(file, base)
    held = base if batch is None else batch
    if any(memory.is_written(file, name, around) for name in {base, held}):
        return None
    free = all(_is_free(file, name, around) for name in {base, held})
    if any(t.pinned for t in of) and not (
        free and any(_is_over_loader(file, loop) for loop in _loops_over(file, call, held))
    ):
        return None
    draft = _sent(file, call)
    if free:
        _pin(file, call, held, draft)
    return draft


def _sent(file: File, call: ast.Call) -> Draft:
    """Return the draft that gives a copy its argument, and each of several copies a line where theirs gets too long."""
    draft, statement = Draft(file.text), file.statement_of(call)
    pairs = _pairs(file, statement)
    draft.replace(call, with_argument(file.text, call, ARGUMENT, alone=bool(pairs)))
    if pairs:
        end = file.text.line_end + file.text.indent(statement)
        draft.replace(statement, lambda render: end.join(f"{name.id} = {render(value)}" for name, value in pairs))
    return draft


def _pairs(file: File, statement: ast.stmt) -> list[tuple[ast.Name, ast.expr]]:
    """Return the names and copies of `a, b = a.to(device), b.to(device)` if it gets too long for one line."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return []
    names, values = statement.targets[0], statement.value
    if not isinstance(names, ast.Tuple) or not isinstance(values, ast.Tuple) or not 1 < len(values.elts) < 4:
        return []
    pairs = [(n, v) for n, v in zip(names.elts, values.elts, strict=False) if isinstance(n, ast.Name)]
    if not len(pairs) == len(names.elts) == len(values.elts) or not questions.stands_alone(file, statement):
        return []
    targets = {name.id for name, _ in pairs}
    if any(n.id in targets - {name.id} for name, value in pairs for n in questions.names_in(value)):
        return []
    copies = sum(isinstance(v, ast.Call) and getattr(v.func, "attr", "") in ("to", "cuda") for v in values.elts)
    line = file.text.lines[statement.lineno - 1]
    return pairs if len(line) + copies * len(f", {ARGUMENT}") > file.text.width else []


def _is_temporary(node: ast.expr) -> bool:
    """Return whether an operator made the memory of an expression, so that no name reaches it."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        if isinstance(node, ast.Call) and not isinstance(node.func, ast.Attribute):
            return False
        node = node.func if isinstance(node, ast.Call) else node.value
    return isinstance(node, ast.BinOp | ast.Compare | ast.UnaryOp)


def _is_free(file: File, name: ast.Name, around: Collection[ast.AST]) -> bool:
    """Return whether nothing else holds the host's tensor or batch, and nothing writes to a part of it."""
    return not memory.new_may_change(file, name, around, on_host=True)


def _batch_of(file: File, base: ast.Name) -> ast.Name | None:
    """Return `batch` if a comprehension takes the name from it: `for k, v in batch.items()`, `for v in batch`."""
    home = file.home_of(base)
    generators: list[ast.comprehension] = getattr(home, "generators", [])
    if len(generators) != 1 or generators[0].ifs:
        return None
    source = generators[0].iter
    if isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute) and not source.args:
        source = source.func.value if source.func.attr in ("items", "values") else source
    return source if isinstance(source, ast.Name) else None


def _loops_over(file: File, call: ast.Call, base: ast.Name) -> list[ast.For]:
    """Return the loops around a call that give this name its values."""
    loops = [loop for loop in file.loops_of(call) if isinstance(loop, ast.For)]
    return [loop for loop in loops if base.id in questions.targets(loop)]


def _is_over_loader(file: File, loop: ast.For) -> bool:
    """Return whether a loop goes over a data loader, which builds each batch from scratch."""
    return any(file.types(name) == {LOADER} for name in questions.names_in(loop.iter))


def _pin(file: File, call: ast.Call, base: ast.Name, draft: Draft) -> None:
    """Make the loader pin the batch that is copied."""
    for loop in _loops_over(file, call, base):
        for name in questions.names_in(loop.iter):
            maker = _maker(file, name)
            if maker is not None and _lies_on_host(file, loop):
                draft.replace(maker, with_argument(file.text, maker, "pin_memory=torch.cuda.is_available()"))


def _maker(file: File, name: ast.Name) -> ast.Call | None:
    """Return the call that makes a data loader without pinning arguments."""
    if file.types(name) != {LOADER}:
        return None
    stores = [n for n in file.names(file.home_of(name), name.id) if not isinstance(n.ctx, ast.Load)]
    if len(stores) != 1:
        return None
    assign = file.parents[stores[0]]
    value = assign.value if isinstance(assign, ast.Assign) else None
    if not isinstance(value, ast.Call) or file.types(value) != {LOADER}:
        return None
    function = value.func.attr if isinstance(value.func, ast.Attribute) else getattr(value.func, "id", "")
    known = any(k.arg in ("pin_memory", None) for k in value.keywords)
    starred = any(isinstance(a, ast.Starred) for a in value.args)
    return value if function == "DataLoader" and not known and not starred and len(value.args) < 8 else None


def _lies_on_host(file: File, loop: ast.For) -> bool:
    """Return whether none of the loader's tensors lies on the device, as the first use of each name shows."""
    names = questions.targets(loop)
    uses = [n for n in ast.walk(loop) if isinstance(n, ast.Name) and n.id in names and isinstance(n.ctx, ast.Load)]
    first: dict[str, ast.Name] = {}
    for use in sorted(uses, key=lambda n: (n.lineno, n.col_offset)):
        first.setdefault(use.id, use)
    return not any(t.on_device for use in first.values() for t in file.seen(use).tensors)


def _constructor(file: File, call: ast.Call) -> Draft | None:
    """Return the draft for `torch.tensor(list, device=…)`; the tensor on the host is a copy that nothing else holds."""
    function = call.func
    if not isinstance(function, ast.Attribute) or not questions.is_torch(function.value):
        return None
    if function.attr not in ("tensor", "as_tensor"):
        return None
    if len(call.args) != 1 or not {k.arg for k in call.keywords} <= {"device", "dtype"}:
        return None
    device = next((k.value for k in call.keywords if k.arg == "device"), None)
    data = call.args[0]
    made = file.tensors(call)
    on_device = bool(made) and all(tensor.on_device for tensor in made)
    if device is None or not on_device or not _is_copied(file, function.attr, data):
        return None
    draft = Draft(file.text)

    def source(render: Render) -> str:
        given = [render(data)] + [f"dtype={render(k.value)}" for k in call.keywords if k.arg == "dtype"]
        return f"{file.text.code(function)}({', '.join(given)}).to({render(device)}, non_blocking=True)"

    draft.replace(call, source)
    return draft


def _is_copied(file: File, name: str, data: ast.expr) -> bool:
    """Return whether a constructor copies what it is given: numbers, or by `torch.tensor` an array."""
    return _holds_numbers(file, data) or (name == "tensor" and file.types(data) == {"numpy.ndarray"})


def _holds_numbers(file: File, node: ast.expr) -> bool:
    """Return whether a list, or a number, has no tensors in it."""
    if isinstance(node, ast.Constant):
        return True
    if file.is_number(node):
        return True
    if isinstance(node, ast.ListComp):
        return file.is_number(node.elt)
    seen = file.seen(node)
    if not set(seen.types) <= {"list", "tuple", "range"} or not seen.types:
        return False
    inner = set(seen.elements)
    nested = isinstance(node, ast.List | ast.Tuple) and all(_holds_numbers(file, e) for e in node.elts)
    return inner <= {"int", "float", "bool"} or nested


def _index(file: File, node: ast.Subscript, shown: ast.AST, waits: int) -> Iterator[Proposal]:
    """Yield the proposal for `x[:, [0, 3]]`, whose list is copied at every use."""
    draft = Draft(file.text)
    if file.device_tensor(node.value) is None or not questions.is_path(node.value):
        return
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    lists = [part for part in parts if index_list(file, part)]
    if len(lists) != 1 or any(file.tensors(part) for part in parts if not isinstance(part, ast.Slice)):
        return
    draft.replace(lists[0], moved(file, lists[0], node.value))
    yield Proposal(
        node=shown,
        draft=draft,
        rule="cpu-index",
        change="copy the index list with non_blocking=True",
        waits=waits,
    )
