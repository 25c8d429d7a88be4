"""Reads in every step that are moved to where their value is needed, which is rarer or later."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from syncscan.fixing import expressions
from syncscan.fixing.edits import Draft
from syncscan.fixing.flow import callees, tensor_writes
from syncscan.fixing.flow.deferred_values import Stuck
from syncscan.fixing.flow.number_reads import NumberRead, sites
from syncscan.fixing.flow.number_walk import followed
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import FEWEST, Answers, Left, Proposal, rewrite
from syncscan.source.code_pattern import key, matched
from syncscan.source.tree import Loop

RARE = 3
"""The body may run at most once per this many reads."""


@rewrite
def under_interval(file: File) -> Answers:
    if file.hides_names():
        return
    for site in sites(file):
        statement = file.statement_of(site.node)
        branch = _branch(file, statement, site) if file.loops_of(statement) else None
        runs = max((file.seen(n).count for s in branch.body for n in ast.walk(s)), default=0) if branch else 0
        if branch is None or runs * RARE > site.count or not _gives_the_same(file, site.of, statement, branch):
            continue
        # nor may a handler see what the read raises
        guarded = any(isinstance(n, ast.Try) and file.loops_of(n) for n in file.ancestors(statement))
        if not guarded and not _is_timed(file, site.node, branch) and expressions.is_pure(file, site.of):
            draft, waits = Draft(file.text), file.own_waits(site.node)
            draft.remove(statement)
            draft.put_before(branch.body[0], file.text.lines[statement.lineno - 1].strip())
            change, waits = "read the value only where it is used", waits - waits * runs // site.count
            yield Proposal(node=statement, draft=draft, change=change, waits=waits)


def _is_timed(file: File, read: ast.expr, branch: ast.If) -> bool:
    """Return whether a clock is read in the loop where the wait would be missing: anywhere but in the branch."""
    if callees.is_timed(file, read):
        return True
    loop = file.loops_of(read)[-1]
    inside = [c for c in callees.clocks(file) if file.within(c, loop) or file.ran_inside(file.function_of(c), loop)]
    return any(not file.within(c, branch) and not callees.follows_sync(file, c) for c in inside)


def _branch(file: File, statement: ast.stmt, site: NumberRead) -> ast.If | None:
    """Return the `if` behind a statement of one line whose body alone reads the number that the statement names."""
    assign = matched("$name = $number", statement)
    if not assign or assign.number is not site.node or not isinstance(assign.name, ast.Name):
        return None
    if not _is_local(file, assign.name) or not expressions.stands_alone(file, statement):
        return None
    loads = file.loads(assign.name)
    holds = [s for s in file.below(statement) if any(file.within(n, s) for n in loads)]
    body = holds[0].body if len(holds) == 1 and isinstance(holds[0], ast.If) else []
    used_there = all(any(file.within(n, s) for s in body) for n in loads) and statement.lineno == statement.end_lineno
    return holds[0] if body and used_there else None  # type: ignore[return-value]


def _is_local(file: File, name: ast.Name) -> bool:
    """Return whether a name is bound once and read, all in one function, or in a script that no other file imports."""
    home, scope = file.home_of(name), file.function_of(name)
    uses = file.names(home, name.id)
    is_public = home is file.tree and not file.main
    whole = home is file.scope_of(name) and all(file.scope_of(n) is scope for n in uses)
    return whole and not is_public and len(file.stores(name)) == 1 and len(uses) > 1


def _gives_the_same(file: File, of: ast.expr, statement: ast.stmt, branch: ast.If) -> bool:
    """Return whether a tensor that a statement reads is the same at the beginning of the branch."""
    between: list[ast.AST] = [*(s for s in file.below(statement) if s in file.above(branch)), branch.test]
    leaves = [n for n in expressions.names_in(of) if file.types(n) != {"module"}]
    region = [n for node in between for n in tensor_writes.running_in(file, node)]
    if any(file.within(store, node) for leaf in leaves for store in file.stores(leaf) for node in between):
        return False
    if any(file.tensors(leaf) and tensor_writes.may_change(file, leaf, region, branch.lineno) for leaf in leaves):
        return False
    at_once = len(between) == 1 and expressions.is_pure(file, branch.test)
    return at_once or all(_is_steady(file, leaf, file.loops_of(statement)[-1]) for leaf in leaves)


def _is_steady(file: File, leaf: ast.Name, loop: Loop) -> bool:
    """Return whether a name is a tensor of this turn that nothing writes to in place."""
    tensors, stores = file.tensors(leaf), file.stores(leaf)
    inside = bool(tensors and stores) and all(file.within(n, loop) for n in stores)
    return inside and not any(t.leaf and t.grad for t in tensors) and not file.seen(leaf).version


TO_CHANGE = "keep the value on the device and read it after the loop"


@rewrite
def deferred_read(file: File) -> Answers:
    reads = [site for site in sites(file) if site.count >= FEWEST]
    nodes = [site.node for site in sites(file)]
    answers = [(site, _one(file, site, nodes)) for site in reads]
    staying = [site for site, answer in answers if isinstance(answer, Left)]
    for site, answer in answers:
        beside = next((other for other in staying if _is_same_number(file, site, other)), None)
        yield answer if beside is None or isinstance(answer, Left) else Left(site.node, _beside(beside))


def _is_same_number(file: File, site: NumberRead, other: NumberRead) -> bool:
    """Return whether another read of the same number is done about as often, so that waiting for it stays."""
    of, function = site.of, file.function_of(site.node)
    if site is other or file.text.code(of) != file.text.code(other.of) or function is not file.function_of(other.node):
        return False
    begin, end = sorted((site.node.lineno, other.node.lineno))
    roots = [n for n in expressions.names_in(of) if file.home_of(n) is function]
    stores = [n for root in roots for n in file.names(function, root.id) if isinstance(n.ctx, ast.Store)]
    rebound = any(begin <= store.lineno <= end for store in stores)
    return other.count * 2 >= site.count and bool(key(of)) and not rebound


def _beside(other: NumberRead) -> str:
    return f"its value is read in line {other.node.lineno} in any case, so that deferring this read gains nothing"


def _one(file: File, site: NumberRead, nodes: list) -> Proposal | Left:  # type: ignore[type-arg]
    way = followed(file, site, nodes)
    if isinstance(way, Stuck):
        line = getattr(way.node, "lineno", site.node.lineno)
        where = f" (line {line})" if line != site.node.lineno else ""
        return Left(site.node, f"its value {_when(file, site, way)}{where}")
    return Proposal(
        node=site.node,
        draft=way.draft,
        # where only tensors take the number, the host doesn't read it at all
        change=TO_CHANGE if way.draft.beside or way.shown else "keep the value on the device",
        waits=file.own_waits(site.node),
        reads=tuple(way.shown),
    )


def _when(file: File, site: NumberRead, way: Stuck) -> str:
    """Return a reason that knows of the condition under which a number is read or shown."""
    if _is_conditional(file, site.node, site.node):
        return way.why.replace(" in every step", " under a condition already")
    if _is_conditional(file, way.node, site.node):
        return way.why.replace(" in every step", " under a condition, where it can be read too")
    return way.why


def _is_conditional(file: File, node: ast.AST, read: ast.expr) -> bool:
    """Return whether a node is under a condition in the loop of a read."""
    loops = file.loops_of(read)
    return bool(loops) and any(isinstance(n, ast.If) and file.within(n, loops[-1]) for n in file.ancestors(node))


TAKES_MEMORY = "all of them take device memory until the loop ends"
_JOINS = " | ".join(f"torch.{name}($list, ...)" for name in ("cat", "stack", "vstack", "hstack"))
_NUMPY_JOINS = {"concatenate": "cat", "vstack": "vstack", "hstack": "hstack", "stack": "stack"}


@rewrite
def predictions(file: File) -> Answers:
    for node in file.nodes:
        if not isinstance(node, ast.Call):
            continue
        if add := matched("$list.append($copy.numpy()) | $list.append($copy)", node):
            copy = matched("$tensor.cpu()", add.copy)
            if copy and isinstance(add.list, ast.Name) and file.own_waits(add.copy):
                yield from _of_list(file, add.list, node.args[0], add.copy, copy.tensor)


def _of_list(file: File, name: ast.Name, added: ast.expr, call: ast.Call, tensor: ast.expr) -> Iterator[Proposal]:
    """Yield the proposal for `x.append(t.cpu())` and `x.append(t.cpu().numpy())`, if all is joined later."""
    numpy = "" if added is call else ".numpy()"
    loops, stores = file.loops_of(call), file.stores(name)
    begins_empty = len(stores) == 1 and matched("[]", file.value_given(stores[0]))
    if not loops or file.types(name) != {"list"} or not begins_empty or file.seen(call).count < FEWEST:
        return
    uses = [n for n in file.loads(name) if n is not name]
    joins = {file.parents[use]: _joined(file, use, numpy) for use in uses}
    if not joins or any(not source or file.within(join, loops[-1]) for join, source in joins.items()):
        return
    draft, code = Draft(file.text), file.text.code(tensor)
    draft.replace(added, code if tensor_writes.is_new(file, tensor) else f"{code}.clone()")
    for join, source in joins.items():
        draft.replace(join, f"{source}.cpu(){numpy}")
    change = "keep the predictions on the device and copy them once"
    yield Proposal(node=call, draft=draft, change=change, waits=file.own_waits(call), why=TAKES_MEMORY)


def _joined(file: File, use: ast.Name, numpy: str) -> str:
    """Return the call `torch.cat(use)` or `np.concatenate(use)` around a use by torch's function; empty for others."""
    call = file.parents[use]
    join = matched("np.$function($list) | numpy.$function($list)" if numpy else _JOINS, call)
    if join is None or join.list is not use:
        return ""
    if not numpy:
        return file.text.code(call)
    return f"torch.{_NUMPY_JOINS[join.function]}({use.id})" if join.function in _NUMPY_JOINS else ""
