"""Keeps predictions on the device until they are joined, and copies them once.

The list is used only by `torch.cat`, `np.concatenate` and the like, or is extended by numbers that nothing reads before
the loop ends. Until then, all predictions take memory on the device, so this is unsafe.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from syncscan.fixing.edits import Draft
from syncscan.fixing.flow import memory
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import Left, Proposal
from syncscan.model.fix import Safety

ID = "predictions"
TITLE = "Predictions are copied to the host batch by batch"
RULES = ("cpu",)
SAFETY = Safety.UNSAFE
BEFORE = "parts = []\nfor row in x:\n    parts.append(row.exp().cpu())\nresult = torch.cat(parts)"
AFTER = "parts = []\nfor row in x:\n    parts.append(row.exp())\nresult = torch.cat(parts).cpu()"
FEWEST = 3
_NUMPY_JOINS = {"concatenate": "cat", "vstack": "vstack", "hstack": "hstack", "stack": "stack"}
WHY = "all of them take device memory until the loop ends"


def find(file: File) -> Iterator[Proposal | Left]:
    """Yield the copies to the host that could be one."""
    for node in file.nodes:
        if not isinstance(node, ast.Call) or file.seen(node).count < FEWEST:
            continue
        if _is_method(node, "cpu") and file.own_waits(node):
            yield from _of_tensors(file, node)
        elif _is_method(node, "tolist") and file.seen(node).waits:
            yield from _of_numbers(file, node)


def _is_method(node: ast.AST, name: str) -> bool:
    """Return whether a node is a call `x.name()`."""
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name and not node.args
    )


def _of_tensors(file: File, call: ast.Call) -> Iterator[Proposal]:
    """Yield the proposal for `x.append(t.cpu())` and `x.append(t.cpu().numpy())`, if all is joined later."""
    numpy = _method_on(file, call, "numpy")
    copied = numpy or call
    append = file.parents[copied]
    if not _is_method_of_name(append, "append") or append.args != [copied]:  # type: ignore[attr-defined]
        return
    name: ast.Name = append.func.value  # type: ignore[attr-defined]
    loops = file.loops_of(call)
    if not loops or file.types(name) != {"list"} or not _begins_empty(file, name):
        return
    uses = [n for n in file.names(file.home_of(name), name.id) if isinstance(n.ctx, ast.Load) and n is not name]
    joins = [_joined(file, use, "numpy" if numpy else "torch") for use in uses]
    if not joins or any(join is None or file.within(join[0], loops[-1]) for join in joins):
        return
    draft = Draft(file.text)
    draft.replace(copied, _kept(file, call.func.value))  # type: ignore[attr-defined]
    for join in filter(None, joins):
        draft.replace(join[0], f"{join[1]}.cpu(){'.numpy()' if numpy else ''}")
    yield _proposal(file, call, draft)


def _of_numbers(file: File, call: ast.Call) -> Iterator[Proposal]:
    """Yield the proposal for `x.extend(t.tolist())`, if the list isn't looked at before the loop is over."""
    of = call.func.value  # type: ignore[attr-defined]
    of = of.func.value if _is_method(of, "cpu") else of
    tensor, loops, extend = file.device_tensor(of), file.loops_of(call), file.parents[call]
    if tensor is None or tensor.dims != 1 or not loops:
        return
    if not _is_method_of_name(extend, "extend") or extend.args != [call]:  # type: ignore[attr-defined]
        return
    name: ast.Name = extend.func.value  # type: ignore[attr-defined]
    if not _begins_empty(file, name, before=loops[0]) or not _is_read_behind(file, name, loops[0]):
        return
    draft = Draft(file.text)
    draft.replace(extend.func, f"{name.id}.append")  # type: ignore[attr-defined]
    draft.replace(call, _kept(file, of))
    draft.put_behind(loops[0], f"{name.id} = torch.cat({name.id}).tolist() if {name.id} else []")
    yield _proposal(file, call, draft)


def _proposal(file: File, call: ast.Call, draft: Draft) -> Proposal:
    return Proposal(
        node=call,
        draft=draft,
        rule="cpu",
        rewrite=ID,
        change="keep the predictions on the device and copy them once",
        waits=file.own_waits(call),
        safety=Safety.UNSAFE,
        why=WHY,
    )


def _method_on(file: File, node: ast.expr, name: str) -> ast.Call | None:
    """Return the call `node.name()`."""
    attribute = file.parents[node]
    call = file.parents.get(attribute)
    return call if isinstance(call, ast.Call) and call.func is attribute and _is_method(call, name) else None


def _is_method_of_name(node: ast.AST, method: str) -> bool:
    """Return whether a node is a call `x.method(…)` of a name."""
    function = node.func if isinstance(node, ast.Call) and not node.keywords else None
    return isinstance(function, ast.Attribute) and function.attr == method and isinstance(function.value, ast.Name)


def _kept(file: File, tensor: ast.expr) -> str:
    """Return the source of a tensor in memory of its own."""
    code = file.text.code(tensor)
    return code if memory.is_new(file, tensor) else f"{code}.clone()"


def _is_read_behind(file: File, name: ast.Name, loop: ast.stmt) -> bool:
    """Return whether all other uses of a list stand behind its loop, and no handler sees the loop fail."""
    uses = [n for n in file.names(file.home_of(name), name.id) if isinstance(n.ctx, ast.Load) and n is not name]
    behind = all(n.lineno > (loop.end_lineno or loop.lineno) for n in uses)
    alone = all(file.scope_of(n) is file.scope_of(loop) for n in uses)
    return behind and alone and not any(isinstance(n, ast.Try) for n in file.ancestors(loop))


def _begins_empty(file: File, name: ast.Name, before: ast.stmt | None = None) -> bool:
    """Return whether a list is made once, empty: what else it holds may lie on the host.

    Args:
        file: the program.
        name: a use of the list.
        before: a statement of whose block the list is made, earlier; it may get other names later.
    """
    stores = [n for n in file.names(file.home_of(name), name.id) if not isinstance(n.ctx, ast.Load)]
    value = _assigned(file, stores[0]) if len(stores) == 1 else None
    if not isinstance(value, ast.List) or value.elts:
        return False
    if before is None:
        return True
    block, made = file.block_of(before), file.statement_of(stores[0])
    return made in block and block.index(made) < block.index(before)


def _assigned(file: File, name: ast.Name) -> ast.expr | None:
    """Return the value that a name is given: in `a, b = [], []` its own."""
    parent = file.parents[name]
    if isinstance(parent, ast.Assign | ast.AnnAssign):
        return parent.value
    assign = file.parents[parent]
    if isinstance(parent, ast.Tuple) and isinstance(assign, ast.Assign) and isinstance(assign.value, ast.Tuple):
        pairs = len(parent.elts) == len(assign.value.elts)
        return assign.value.elts[parent.elts.index(name)] if pairs else None
    return None


def _joined(file: File, use: ast.Name, module: str) -> tuple[ast.Call, str] | None:
    """Return the call `torch.cat(use)` or `np.concatenate(use)` around a use, and its source with torch's function."""
    call = file.parents[use]
    if not isinstance(call, ast.Call) or call.args[:1] != [use]:
        return None
    if module == "torch":
        joins = ("torch.cat", "torch.stack", "torch.vstack", "torch.hstack")
        return (call, file.text.code(call)) if ast.unparse(call.func) in joins else None
    owner, _, function = ast.unparse(call.func).partition(".")
    known = owner in ("np", "numpy") and function in _NUMPY_JOINS and len(call.args) == 1 and not call.keywords
    return (call, f"torch.{_NUMPY_JOINS[function]}({use.id})") if known else None
