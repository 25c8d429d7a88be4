"""Moves a read below the condition under which its value is used: `if step % 10 == 0: log(value)`.

The statement stands on one line, and only assigns a name that nothing but the body of one `if` behind it reads. It has
no side effects, raises nothing, and reads the same there: of names that the loop binds anew in each turn, that nothing
in between binds again and that nothing writes to in place. Right in front of the `if` it may read anything that the
condition doesn't change.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from syncscan.fixing import clock_reads, questions
from syncscan.fixing.edits import Draft
from syncscan.fixing.flow import memory
from syncscan.fixing.program_file import File, Loop
from syncscan.fixing.proposal import Left, Proposal
from syncscan.model.fix import Safety
from syncscan.source.code_pattern import matched

ID = "under-interval"
TITLE = "A number is read in every step and used in few"
RULES = ("item", "tolist", "cpu", "log-scalar")
SAFETY = Safety.SAFE
BEFORE = "value = loss.item()\nif step % 10 == 0:\n    print(value)"
AFTER = "if step % 10 == 0:\n    value = loss.item()\n    print(value)"
RARE = 3
"""The body may run at most once per this many reads."""
_EFFECTS = (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr, ast.Lambda, ast.comprehension)
_CONVERSIONS = frozenset("float int bool round str len dict abs".split())


def find(file: File) -> Iterator[Proposal | Left]:
    if file.hides_names():
        return
    for node in file.nodes:
        if isinstance(node, ast.Assign) and file.loops_of(node) and _waits(file, node.value) >= RARE:
            branch = _branch(file, node)
            if branch is not None:
                yield from _of(file, node, branch)


def _of(file: File, statement: ast.Assign, branch: ast.If) -> Iterator[Proposal]:
    count, runs = _runs(file, [statement]), _runs(file, branch.body)
    if runs * RARE > count or not questions.stands_alone(file, statement):
        return
    if not _has_no_effect(file, statement.value) or not _stays(file, statement, branch):
        return
    if _is_timed(file, statement, branch) or _is_guarded(file, statement) or statement.lineno != statement.end_lineno:
        return
    draft = Draft(file.text)
    draft.remove(statement)
    draft.put_before(branch.body[0], file.text.lines[statement.lineno - 1].strip())
    waits = _waits(file, statement.value)
    change = "read the value only where it is used"
    yield Proposal(node=statement, draft=draft, change=change, waits=waits - waits * runs // count)


def _is_timed(file: File, statement: ast.Assign, branch: ast.If) -> bool:
    """Return whether a clock is read in the loop where the wait would be missing: anywhere but in the branch."""
    if clock_reads.is_timed(file, statement.value):
        return True
    loop = file.loops_of(statement)[-1]
    inside = [c for c in clock_reads.clocks(file) if file.within(c, loop) or file.ran_inside(file.function_of(c), loop)]
    return any(not file.within(c, branch) and not clock_reads.follows_sync(file, c) for c in inside)


def _is_guarded(file: File, statement: ast.stmt) -> bool:
    """Return whether what a statement raises is handled in its loop."""
    loop = file.loops_of(statement)[-1]
    return any(isinstance(n, ast.Try) and file.within(n, loop) for n in file.ancestors(statement))


def _waits(file: File, value: ast.expr) -> int:
    """Return how often the host waited for an expression; of an f-string itself nothing is seen."""
    seen = (n for n in ast.walk(value) if isinstance(n, ast.expr) and file.seen(n).count)
    return sum(max(0, file.own_waits(n)) for n in seen)


def _branch(file: File, statement: ast.Assign) -> ast.If | None:
    """Return the `if` behind a statement whose body alone reads what the statement assigns."""
    assign = matched("$name = $value", statement)
    if not assign or not isinstance(assign.name, ast.Name) or not _is_local(file, assign.name):
        return None
    loads = file.loads(assign.name)
    block = file.block_of(statement)
    holds = [s for s in block[block.index(statement) + 1 :] if any(file.within(n, s) for n in loads)]
    branch = holds[0] if len(holds) == 1 else None
    if not isinstance(branch, ast.If):
        return None
    return branch if all(any(file.within(n, s) for s in branch.body) for n in loads) else None


def _is_local(file: File, name: ast.Name) -> bool:
    """Return whether a name is bound once and read, all in one function, or in a script that no other file imports."""
    home, scope = file.home_of(name), file.function_of(name)
    uses = file.names(home, name.id)
    is_public = home is file.tree and not file.main
    whole = home is file.scope_of(name) and all(file.scope_of(n) is scope for n in uses)
    return whole and not is_public and len(file.stores(name)) == 1 and len(uses) > 1


def _runs(file: File, body: Sequence[ast.stmt]) -> int:
    """Return how often a block ran, by the expression of it that ran most."""
    return max((file.seen(n).count for s in body for n in ast.walk(s) if isinstance(n, ast.expr)), default=0)


def _has_no_effect(file: File, value: ast.expr) -> bool:
    """Return whether an expression has no side effects, and raises for no number."""
    return not any(
        isinstance(n, _EFFECTS)
        or (isinstance(n, ast.Call) and not _converts(file, n) and not questions.is_pure(file, n))
        or _may_raise(file, n)
        for n in ast.walk(value)
    )


def _may_raise(file: File, node: ast.AST) -> bool:
    """Return whether an expression may raise for some numbers: a division by 0, a whole number of NaN."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.FloorDiv | ast.Mod | ast.Pow):
        steady = isinstance(node.right, ast.Constant) and bool(node.right.value)
        return not (steady or file.tensors(node) or file.types(node.left) == {"str"})
    whole = matched("int($number) | round($number)", node)
    return whole is not None and not file.types(whole.number) <= {"int", "bool"}


def _converts(file: File, call: ast.Call) -> bool:
    """Return whether a call converts a number or formats text."""
    if form := matched("$text.format(...)", call):
        return file.types(form.text) == {"str"}
    name = call.func
    return isinstance(name, ast.Name) and name.id in _CONVERSIONS and _is_builtin(file, name)


def _is_builtin(file: File, name: ast.Name) -> bool:
    named = (getattr(n, "asname", None) or getattr(n, "name", None) for n in file.nodes)
    return not file.stores(name) and name.id not in named


def _stays(file: File, statement: ast.Assign, branch: ast.If) -> bool:
    """Return whether a statement gives the same at the beginning of the branch."""
    block = file.block_of(statement)
    between = block[block.index(statement) + 1 : block.index(branch)]
    nodes: list[ast.AST] = [*between, branch.test]
    leaves = list(questions.names_in(statement.value))
    region = [n for node in nodes for n in memory.running_in(file, node)]
    if any(file.within(store, node) for leaf in leaves for store in file.stores(leaf) for node in nodes):
        return False
    if any(file.tensors(leaf) and memory.may_change(file, leaf, region, branch.lineno) for leaf in leaves):
        return False
    if not between and questions.is_pure(file, branch.test):
        return True
    loop = file.loops_of(statement)[-1]
    return all(_is_steady(file, leaf, loop) for leaf in leaves)


def _is_steady(file: File, leaf: ast.Name, loop: Loop) -> bool:
    """Return whether a name is a number or text, a module, or a tensor of this turn that nothing writes to in place."""
    types, stores = file.types(leaf), file.stores(leaf)
    if types and types <= {"int", "float", "bool", "str"}:
        return all(file.scope_of(n) is file.scope_of(leaf) for n in stores)
    if not file.tensors(leaf):
        call = file.parents[leaf]
        return types == {"module"} or (isinstance(call, ast.Call) and call.func is leaf and _is_builtin(file, leaf))
    inside = bool(stores) and all(file.within(n, loop) for n in stores)
    return inside and not any(t.leaf and t.grad for t in file.tensors(leaf)) and not file.seen(leaf).version
