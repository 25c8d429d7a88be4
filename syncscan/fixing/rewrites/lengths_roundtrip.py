"""Uses the host's tensor again instead of copying it back from the device.

Between the two copies, neither tensor is modified or reassigned, and both have the same type.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from syncscan.fixing import questions
from syncscan.fixing.edits import Draft
from syncscan.fixing.flow import callees
from syncscan.fixing.flow.number_reads import root_of
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import Left, Proposal
from syncscan.model.fix import Safety

ID = "lengths-roundtrip"
TITLE = "A tensor that came from the host is copied back"
RULES = ("cpu", "tolist", "packed-sequence")
SAFETY = Safety.SAFE
BEFORE = "lengths = lengths.to(device)\nresult = lengths.cpu()"
AFTER = "host_lengths = lengths\nlengths = lengths.to(device)\nresult = host_lengths"


def find(file: File) -> Iterator[Proposal | Left]:
    """Yield the copies back of what the host has."""
    for node in file.nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and file.own_waits(node):
            name = node.func.value
            if node.func.attr in ("cpu", "tolist") and not node.args and isinstance(name, ast.Name):
                sent = _assignment_that_sends(file, node, name)
                if sent is not None:
                    yield from _of(file, node, name, sent)


def _assignment_that_sends(file: File, call: ast.Call, name: ast.Name) -> ast.Assign | None:
    """Return the assignment that copied a name's tensor to the device, earlier in the same or an outer block."""
    stores = [n for n in file.names(file.home_of(name), name.id) if not isinstance(n.ctx, ast.Load)]
    use = file.statement_of(call)
    above = [n for n in stores if n.lineno < use.lineno]
    last = file.parents[max(above, key=lambda n: n.lineno)] if above else None
    if not isinstance(last, ast.Assign) or len(last.targets) != 1 or not isinstance(last.targets[0], ast.Name):
        return None
    blocks = [file.block_of(s) for s in (use, *file.ancestors(use)) if isinstance(s, ast.stmt)]
    value = last.value
    moved = isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in ("to", "cuda")
    return last if moved and any(last in block for block in blocks) else None


def _of(file: File, call: ast.Call, name: ast.Name, sent: ast.Assign) -> Iterator[Proposal]:
    value = sent.value
    assert isinstance(value, ast.Call)
    assert isinstance(value.func, ast.Attribute)
    source = value.func.value
    host, device = file.tensors(source), file.device_tensor(name)
    base = root_of(source)
    if not host or device is None or base is None or not questions.is_path(source):
        return
    alike = not any(t.on_device or t.dtype != device.dtype for t in host)
    if not alike or not _is_untouched(file, call, name.id, base.id) or file.seen(name).version:
        return
    if any(questions.has_second_name(file, n) for n in (name, base)) or _is_passed_on(file, call, sent, base):
        return
    draft = Draft(file.text)
    word = file.text.code(source)
    if base.id == name.id or questions.is_stored(file, base, file.function_of(call)):
        word = file.fresh(f"host_{name.id}")
        draft.put_before(sent, f"{word} = {file.text.code(source)}")
    assert isinstance(call.func, ast.Attribute)
    draft.replace(call, word if call.func.attr == "cpu" else f"{word}.tolist()")
    yield Proposal(
        node=call,
        draft=draft,
        rule="cpu",
        rewrite=ID,
        change="use the tensor that the host still has",
        waits=file.own_waits(call),
    )


def _is_passed_on(file: File, call: ast.Call, sent: ast.Assign, host: ast.Name) -> bool:
    """Return whether other code may write to the host's tensor before it is used again."""
    for use in file.names(file.home_of(host), host.id):
        if not sent.lineno < use.lineno <= call.lineno or not isinstance(use.ctx, ast.Load):
            continue
        outer = next((n for n in file.ancestors(use) if isinstance(n, ast.Call)), None)
        if outer is not None and callees.callee(file, outer) is not None:
            return True
    return False


def _is_untouched(file: File, call: ast.Call, name: str, base: str) -> bool:
    """Return whether neither tensor, nor the result, is written to in the loop or function around the call."""
    around = [file.function_of(call), *file.loops_of(call)][-1]
    if questions.is_written(file, name, around) or questions.is_written(file, base, around):
        return False
    assign = file.parents[call]
    if isinstance(assign, ast.Assign):
        target = assign.targets[0]
        return isinstance(target, ast.Name) and not questions.is_written(file, target.id, around)
    return isinstance(assign, ast.Call | ast.keyword | ast.Attribute | ast.Subscript | ast.BinOp)
