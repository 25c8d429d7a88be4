"""Removes `torch.cuda.synchronize()` from the step if no clock is read near it.

No clock is read next to the call, nor before and after it in its function; the same is true of each call of that
function. In its loops only functions of the file and of libraries run. The file creates no streams or events, captures
no graph, and copies nothing to the host with `non_blocking=True`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from syncscan.fixing import clock_reads, questions
from syncscan.fixing.edits import Draft
from syncscan.fixing.flow import callables, callees, memory
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import Left, Proposal
from syncscan.model.fix import Safety

ID = "needless-sync"
TITLE = "synchronize() runs in every step, and no clock is read near it"
RULES = ("explicit-sync",)
SAFETY = Safety.SAFE
BEFORE = "for step in range(3):\n    x = x * 2\n    torch.cuda.synchronize()"
AFTER = "for step in range(3):\n    x = x * 2"
FEWEST = 3
_COUNTS_ON_IT = frozenset(
    "Stream Event stream wait_stream record_stream CUDAGraph graph non_blocking ctypes cudart from_dlpack cupy numba "
    "memory_allocated max_memory_allocated memory_stats mem_get_info pynvml profile".split()
)
CLOCK = "a clock is read near it, so it may be part of a measurement"
UNKNOWN = "a function that isn't known runs in its loop, and may depend on it"
OTHERS = "the file uses streams, events or non-blocking copies, which may depend on it"


def find(file: File) -> Iterator[Proposal | Left]:
    """Yield the calls of synchronize that run in each step."""
    for node in file.nodes:
        if isinstance(node, ast.Expr) and (call := _call(node)) is not None and _synchronizes(call):
            seen = file.seen(call)
            if seen.count >= FEWEST and seen.waits:
                yield _of(file, node, seen.waits)


def _call(node: ast.Expr) -> ast.Call | None:
    """Return the call of a statement `f()` or `f() if there_is_a_gpu else None`."""
    value = node.value
    if isinstance(value, ast.IfExp) and isinstance(value.orelse, ast.Constant) and _is_question(value.test):
        value = value.body
    return value if isinstance(value, ast.Call) else None


def _synchronizes(call: ast.Call) -> bool:
    return ast.unparse(call.func) in ("torch.cuda.synchronize", "cuda.synchronize", "torch.accelerator.synchronize")


def _of(file: File, node: ast.Expr, waits: int) -> Proposal | Left:
    words = {getattr(n, key, None) for n in file.nodes for key in ("attr", "id", "arg")}
    if words & _COUNTS_ON_IT:
        return Left(node, OTHERS)
    if not _is_among_known(file, node):
        return Left(node, UNKNOWN)
    if _is_timed(file, node, set()):
        return Left(node, CLOCK)
    statement = _with_guard(file, node)
    if not questions.stands_alone(file, statement) or len(file.block_of(statement)) < 2:
        return Left(node, "its block would be empty without it")
    draft = Draft(file.text)
    draft.remove(statement)
    return Proposal(
        node=node,
        draft=draft,
        rule="explicit-sync",
        rewrite=ID,
        change="remove the call: no clock is read near it",
        waits=waits,
    )


def _is_among_known(file: File, node: ast.Expr) -> bool:
    """Return whether the loops around a call run only functions of the file and of libraries, which use no streams."""
    loops = [loop for call in _calls_around(file, node) for loop in file.loops_of(call)]
    calls = {n for loop in loops for n in memory.running_in(file, loop) if isinstance(n, ast.Call)}
    return all(_is_known(file, call) for call in calls)


def _is_known(file: File, call: ast.Call) -> bool:
    functions = callables.names(file, call)
    return bool(functions) and all(name == callables.OWN or callables.is_of_library(name) for name in functions)


def _calls_around(file: File, node: ast.AST) -> list[ast.AST]:
    """Return a node, and the calls of its function, whose loops may go around it."""
    function = file.function_of(node)
    return [node, *([] if isinstance(function, ast.Module) else callees.calls_of(file, function) or [])]


def _is_timed(file: File, statement: ast.stmt, seen: set[ast.AST]) -> bool:
    """Return whether a clock is read beside a statement, or before and after it; of its function's calls too."""
    function = file.function_of(statement)
    if _is_between_reads(file, _with_guard(file, statement)) or any(
        _is_timer(file, n) for n in file.ancestors(statement)
    ):
        return True
    if isinstance(function, ast.Module) or function in seen:
        return False
    calls = callees.calls_of(file, function)
    if calls is None:
        return True
    return any(_is_timed(file, file.statement_of(call), seen | {function}) for call in calls)


def _is_between_reads(file: File, statement: ast.stmt) -> bool:
    """Return whether a clock is read in the neighboring statements, or on both sides in the same function."""
    block = file.block_of(statement)
    at = block.index(statement)
    if any(clock_reads.reads_clock(file, n) for n in [*block[max(0, at - 1) : at], *block[at + 1 : at + 2]]):
        return True
    function = file.function_of(statement)
    lines = [
        n.lineno
        for n in ast.walk(function)
        if isinstance(n, ast.Call) and file.function_of(n) is function and clock_reads.is_clock(file, n)
    ]
    return any(n < statement.lineno for n in lines) and any(n >= statement.lineno for n in lines)


def _is_timer(file: File, node: ast.AST) -> bool:
    """Return whether a node is a `with` block whose context reads a clock."""
    if not isinstance(node, ast.With):
        return False
    owners = (file.types(item.context_expr) for item in node.items)
    methods = (
        callees.method(file, owner.rpartition(".")[2], name)
        for types in owners
        for owner in types
        for name in ("__enter__", "__exit__")
    )
    return any(m is not None and clock_reads.reads_clock(file, m) for m in methods) or any(
        clock_reads.reads_clock(file, item.context_expr) for item in node.items
    )


def _with_guard(file: File, statement: ast.stmt) -> ast.stmt:
    """Return a statement, or the `if` that holds it alone."""
    parent = file.parents[statement]
    alone = isinstance(parent, ast.If) and parent.body == [statement] and not parent.orelse
    return parent if alone and isinstance(parent, ast.If) and _is_question(parent.test) else statement


def _is_question(node: ast.expr) -> bool:
    """Return whether a condition only asks whether there is a GPU."""
    calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)]
    return all(ast.unparse(c.func) == "torch.cuda.is_available" for c in calls)
