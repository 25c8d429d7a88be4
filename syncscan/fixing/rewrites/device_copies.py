"""Copies to the device that needn't wait, or needn't be made in every step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from syncscan.dryrun.device_kinds import STAGED_BYTES
from syncscan.fixing import expressions
from syncscan.fixing.edits import Draft, Template, template
from syncscan.fixing.expressions import with_argument
from syncscan.fixing.flow import tensor_writes
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import FEWEST, Answers, Left, Proposal, rewrite
from syncscan.source.code_pattern import argument, called, key, matched
from syncscan.source.tree import Loop, calls_in

ARGUMENT = "non_blocking=True"
STAGED = 256 * 1024
"""Bytes from pageable memory that the driver surely stages without a wait (measured, `dryrun/wait_table.py`)."""
PAGEABLE = "it copies {:.0f} MB of pageable memory, for which non_blocking=True waits too: pin the memory"
LOADER = "torch.utils.data.dataloader.DataLoader"
_MAKERS = frozenset("zeros ones full eye arange".split())
"""Functions of torch whose values are the same on each device; a range's only where they are integers."""


@rewrite
def without_waiting(file: File) -> Answers:
    for node in file.nodes:
        waits = file.own_waits(node) if file.seen(node).count >= FEWEST else 0
        if isinstance(node, ast.Call) and waits:
            if made := _made_there(file, node):
                draft = Draft(file.text)
                draft.replace(node, made)
                yield Proposal(node=node, draft=draft, change="make the tensor on the device", waits=waits)
            elif sent := _copy(file, node) or _constructor(file, node):
                yield _proposal(file, node, sent, waits)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and waits:
            yield from _index(file, node, waits)


def _proposal(file: File, node: ast.Call, draft: Draft, waits: int) -> Proposal | Left:
    of = file.tensors(node.func.value) if isinstance(node.func, ast.Attribute) else ()
    pinned = any(t.pinned for t in of) or len(draft.nodes) > 1
    size = 0 if pinned else _bytes(file, node)
    if size > STAGED_BYTES:
        return Left(node, PAGEABLE.format(size / 1e6))
    change = "copy with non_blocking=True" + (", which helps once the pageable memory is pinned" * (size > STAGED))
    return Proposal(node=node, draft=draft, change=change, waits=waits, pageable=size > STAGED)


def _made_there(file: File, call: ast.Call) -> Template | None:
    """Return `torch.zeros(3, device=device)` for `torch.zeros(3).to(device)`; None where the device can't make it."""
    sent = matched("$call.cuda() | $call.to($device)", call)
    maker = matched("torch.$function(...)", sent.call) if sent else None
    if not sent or not maker or maker.function not in _MAKERS or any(k.arg != "dtype" for k in sent.call.keywords):
        return None
    if maker.function == "arange" and not all(t.dtype.startswith("int") for t in file.tensors(sent.call)):
        return None
    device = getattr(sent, "device", None)
    if device is not None and not file.types(device) <= {"str", "torch.device"}:
        return None
    words = '"cuda"' if device is None else file.text.code(device)
    return lambda render: with_argument(file.text, call, f"device={words}")(lambda _: render(sent.call))


def _bytes(file: File, node: ast.expr) -> float:
    """Return the size of the largest copy."""
    sizes = [int("".join(filter(str.isdigit, t.dtype)) or 8) for t in file.tensors(node)]
    return file.seen(node).longest * max(sizes, default=0) / 8


def _copy(file: File, call: ast.Call) -> Draft | None:
    """Return the draft for `x.to(device)` and `x.cuda()`."""
    copy = matched("$x.to(...) | $x.cuda(...)", call)
    of, sent = (file.tensors(copy.x), file.tensors(call)) if copy else ((), ())
    if not copy or not of or any(t.on_device for t in of) or not sent or not all(t.on_device for t in sent):
        return None
    if not expressions.takes(call, "non_blocking") or len(call.args) > 2:
        return None
    pinned = any(t.pinned for t in of)
    if _is_temporary(copy.x) and not pinned:
        return _sent(file, call)
    base = tensor_writes.root_of(copy.x)
    if base is None:
        return None
    around = list(ast.walk([file.function_of(call), *file.loops_of(call)][-1]))
    held = _batch_of(file, base) or base
    spreads = [tensor_writes.spread_of(file, name, around, on_host=True) for name in {base, held}]
    if any(spread.is_written for spread in spreads):
        return None
    # nothing else holds the host's tensor or batch, and nothing writes to a part of it
    free = not any(spread.is_held for spread in spreads)
    loops = _loops_over(file, call, held)
    if pinned and not (free and any(_loaders(file, loop) for loop in loops)):
        return None
    draft = _sent(file, call)
    for loop in loops if free else ():
        for maker in filter(None, (_maker(file, name) for name in _loaders(file, loop))):
            if _lies_on_host(file, loop):
                draft.replace(maker, with_argument(file.text, maker, "pin_memory=torch.cuda.is_available()"))
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
    both = matched("($a, $b) = ($x, $y) | ($a, $b, $c) = ($x, $y, $z)", statement)
    pairs = [(vars(both)[n], vars(both)[v]) for n, v in ("ax", "by", "cz") if n in vars(both)] if both else []
    named = all(isinstance(name, ast.Name) for name, _ in pairs)
    if not named or not pairs or not expressions.stands_alone(file, statement):
        return []
    targets = {name.id for name, _ in pairs}
    if any(n.id in targets - {name.id} for name, value in pairs for n in expressions.names_in(value)):
        return []
    copies = sum(matched("$x.to(...) | $x.cuda(...)", value) is not None for _, value in pairs)
    line = file.text.lines[statement.lineno - 1]
    return pairs if len(line) + copies * len(f", {ARGUMENT}") > file.text.width else []


def _is_temporary(node: ast.expr) -> bool:
    """Return whether an operator made the memory of an expression, so that no name reaches it."""
    while part := matched("$of.$method(...) | $of.$name | $of[$index]", node):
        node = part.of
    return isinstance(node, ast.BinOp | ast.Compare | ast.UnaryOp)


def _batch_of(file: File, base: ast.Name) -> ast.Name | None:
    """Return `batch` if a comprehension takes the name from it: `for k, v in batch.items()`, `for v in batch`."""
    generators: list[ast.comprehension] = getattr(file.home_of(base), "generators", [])
    if len(generators) != 1 or generators[0].ifs:
        return None
    items = matched("$batch.items() | $batch.values()", generators[0].iter)
    batch = items.batch if items else generators[0].iter
    return batch if isinstance(batch, ast.Name) else None


def _loops_over(file: File, call: ast.Call, base: ast.Name) -> list[ast.For]:
    """Return the loops around a call that give this name its values."""
    loops = [loop for loop in file.loops_of(call) if isinstance(loop, ast.For)]
    return [loop for loop in loops if base.id in expressions.targets(loop)]


def _loaders(file: File, loop: ast.For) -> list[ast.Name]:
    """Return the names of data loaders that a loop goes over, which build each batch from scratch."""
    return [name for name in expressions.names_in(loop.iter) if file.types(name) == {LOADER}]


def _maker(file: File, name: ast.Name) -> ast.Call | None:
    """Return the call that makes a data loader without pinning arguments."""
    call = file.only_value(name)
    if not isinstance(call, ast.Call) or file.types(call) != {LOADER} or len(call.args) >= 8:
        return None
    return call if called(call) == "DataLoader" and expressions.takes(call, "pin_memory") else None


def _lies_on_host(file: File, loop: ast.For) -> bool:
    """Return whether none of the loader's tensors lies on the device, as the first use of each name shows."""
    first: dict[str, ast.Name] = {}
    for use in sorted(expressions.names_in(loop), key=lambda n: (n.lineno, n.col_offset)):
        first.setdefault(use.id, use)
    used = (first[name] for name in expressions.targets(loop) if name in first)
    return not any(t.on_device for use in used for t in file.seen(use).tensors)


def _constructor(file: File, call: ast.Call) -> Draft | None:
    """Return the draft for `torch.tensor(list, device=…)`; the tensor on the host is a copy that nothing else holds."""
    constructor, given = matched("torch.$function($data, ..., device=$device)", call), file.tensors(call)
    if not constructor or constructor.function not in ("tensor", "as_tensor") or not given or len(call.args) > 1:
        return None
    if not {k.arg for k in call.keywords} <= {"device", "dtype"} or not all(t.on_device for t in given):
        return None
    copies_array = constructor.function == "tensor" and file.types(constructor.data) == {"numpy.ndarray"}
    if not copies_array and not _holds_numbers(file, constructor.data):
        return None
    draft, parts = Draft(file.text), {"make": call.func, "data": constructor.data, "device": constructor.device}
    if dtype := argument(call, "dtype"):
        code = "$make($data, dtype=$dtype).to($device, non_blocking=True)"
        draft.replace(call, template(code, **parts, dtype=dtype))
    else:
        draft.replace(call, template("$make($data).to($device, non_blocking=True)", **parts))
    return draft


def _holds_numbers(file: File, node: ast.expr) -> bool:
    """Return whether a list, or a number, has no tensors in it."""
    if isinstance(node, ast.Constant) or file.is_number(node):
        return True
    if isinstance(node, ast.ListComp):
        return file.is_number(node.elt)
    seen = file.seen(node)
    if not seen.types or not set(seen.types) <= {"list", "tuple", "range"}:
        return False
    nested = isinstance(node, ast.List | ast.Tuple) and all(_holds_numbers(file, e) for e in node.elts)
    return nested or set(seen.elements) <= {"int", "float", "bool"}


def _index(file: File, node: ast.Subscript, waits: int) -> Iterator[Proposal]:
    """Yield the proposal for `x[:, [0, 3]]`, whose list is copied at every use."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    # whole numbers, which torch copies to the device at every use
    lists = [p for p in parts if file.seen(p).types == ["list"] and file.seen(p).elements == ["int"]]
    if file.device_tensor(node.value) is None or not key(node.value) or len(lists) != 1:
        return
    if any(file.tensors(part) for part in parts if not isinstance(part, ast.Slice)):
        return
    draft, index = Draft(file.text), lists[0]
    dtype = "" if isinstance(index, ast.List) and index.elts else ", dtype=torch.long"
    code = f"torch.tensor($index{dtype}).to($x.device, non_blocking=True)"
    draft.replace(index, template(code, index=file.text.code(index), x=file.text.code(node.value)))
    change = "copy the index list with non_blocking=True"
    yield Proposal(node=node, draft=draft, rule="cpu-index", change=change, waits=waits)


_UNCHANGING = frozenset("NoneType bool float int module str torch.device torch.dtype".split())
"""Types whose values can't be written to."""
_PLAIN = frozenset("len sum range list float int".split())


@rewrite
def constant(file: File) -> Answers:
    for node in file.nodes:
        if isinstance(node, ast.Call) and file.own_waits(node) and _is_made(file, node):
            loops = [loop for loop in file.loops_of(node) if _is_same(file, node, loop)]
            if loops and file.entered(loops[0]).count < file.seen(node).count:
                yield from _of_call(file, node, loops[0])


def _is_made(file: File, call: ast.Call) -> bool:
    """Return whether a call makes a tensor of numbers, or moves one to the device."""
    if file.device_tensor(call) is None:
        return False
    if matched("torch.tensor(...) | torch.as_tensor(...)", call):
        return expressions.takes(call, "requires_grad")
    moved = matched("$x.to(...) | $x.cuda(...)", call)
    of = file.tensors(moved.x) if moved and key(moved.x) else ()
    return bool(of) and not any(t.on_device or t.grad for t in of)


def _is_same(file: File, call: ast.Call, loop: Loop) -> bool:
    """Return whether all that a call is given stays as it is while a loop runs."""
    region = tensor_writes.running_in(file, loop)
    for name in expressions.names_in(call):
        if any(store in region for store in file.stores(name)):
            return False
        end = loop.end_lineno or loop.lineno
        if file.types(name) - _UNCHANGING and tensor_writes.may_change(file, name, region, end):
            return False
    inner = calls_in(call)[1:]
    return file.is_steady(call, loop) and all(isinstance(n.func, ast.Name) and n.func.id in _PLAIN for n in inner)


def _of_call(file: File, call: ast.Call, loop: Loop) -> Iterator[Proposal]:
    draft, statement = Draft(file.text), file.statement_of(call)
    assign = matched("$name = $value", statement)
    if assign and assign.value is call and isinstance(assign.name, ast.Name):
        moves = _moves(file, draft, statement, assign.name, loop)
    else:
        moves, name = tensor_writes.is_only_read(file, call), file.fresh("constant")
        draft.put_before(loop, f"{name} = {file.text.code(call)}")
        draft.replace(call, name)
    if moves:
        waits = file.own_waits(call) - file.entered(loop).count
        yield Proposal(node=call, draft=draft, change="create the tensor once, before the loop", waits=waits)


def _moves(file: File, draft: Draft, statement: ast.stmt, target: ast.Name, loop: Loop) -> bool:
    """Move an assignment in front of the loop; False where its name isn't free there."""
    loads, block = file.loads(target), file.loops_of(statement)[-1].body
    if len(file.stores(target)) != 1 or not all(tensor_writes.is_only_read(file, n) for n in loads):
        return False
    alone = statement in block and len(block) > 1 and expressions.stands_alone(file, statement)
    lines = file.text.lines[statement.lineno - 1 : statement.end_lineno]
    if not alone or len(lines) != 1 or any(n.lineno < statement.lineno for n in loads):
        return False
    draft.put_before(loop, lines[0].strip())
    draft.remove(statement)
    return True
