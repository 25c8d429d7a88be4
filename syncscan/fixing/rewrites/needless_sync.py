"""Removes `torch.cuda.synchronize()` from the step if no clock is read near it.

No clock is read in its function, nor right before or behind a call of that. In the file nothing is copied to the host
without waiting, no stream or event is made and nothing is captured, so that nobody counts on the device being done.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from syncscan.fixing import questions
from syncscan.fixing.edits import Draft
from syncscan.fixing.flow import functions
from syncscan.fixing.program import File
from syncscan.fixing.proposal import Left, Proposal
from syncscan.model.fix import Safety

ID = "needless-sync"
TITLE = "synchronize() runs in every step, and no clock is read near it"
RULES = ("explicit-sync",)
SAFETY = Safety.SAFE
BEFORE = "for step in range(3):\n    x = x * 2\n    torch.cuda.synchronize()"
AFTER = "for step in range(3):\n    x = x * 2"
FEWEST = 3
_CLOCKS = frozenset(
    "time perf_counter perf_counter_ns monotonic monotonic_ns time_ns process_time process_time_ns default_timer "
    "timer now clock elapsed_time timeit".split()
)
_COUNTS_ON_IT = frozenset(
    "Stream Event stream wait_stream record_stream CUDAGraph graph non_blocking ctypes cudart from_dlpack cupy numba "
    "memory_allocated max_memory_allocated memory_stats mem_get_info pynvml profile".split()
)
CLOCK = "a clock is read near it, so it may be part of a measurement"
OTHERS = "the file uses streams, events or non-blocking copies, which may depend on it"


def find(file: File) -> Iterator[Proposal | Left]:
    """Yield the calls of synchronize that run in each step."""
    for node in file.nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and _synchronizes(node.value):
            seen = file.seen(node.value)
            if seen.count >= FEWEST and seen.waits:
                yield _of(file, node)


def _synchronizes(call: ast.Call) -> bool:
    return ast.unparse(call.func) in ("torch.cuda.synchronize", "cuda.synchronize", "torch.accelerator.synchronize")


def _of(file: File, node: ast.Expr) -> Proposal | Left:
    words = {getattr(n, key, None) for n in file.nodes for key in ("attr", "id", "arg")}
    if words & _COUNTS_ON_IT:
        return Left(node, OTHERS)
    function = file.function_of(node)
    if _near_clock(file, node):
        return Left(node, CLOCK)
    if isinstance(function, ast.FunctionDef):
        calls = functions.calls_of(file, function)
        if calls is None or reads_clock(function):
            return Left(node, CLOCK)
        if any(_near_clock(file, file.statement_of(call)) for call in calls):
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
        waits=file.seen(node.value).waits,
    )


def _near_clock(file: File, statement: ast.stmt) -> bool:
    """Return whether a clock is read in the statements right before and behind one, or around it."""
    statement = _with_guard(file, statement)
    block = file.block_of(statement)
    at = block.index(statement)
    near = [*block[max(0, at - 1) : at], *block[at + 1 : at + 2]]
    if any(reads_clock(n) for n in near):
        return True
    loops = file.loops_of(statement)
    return (
        bool(loops)
        and at in (0, len(block) - 1)
        and block is loops[-1].body
        and reads_clock(loops[-1])
        and _is_edge(file, loops[-1])
    )


def _is_edge(file: File, loop: ast.stmt) -> bool:
    """Return whether a clock is read right before or behind a loop, which its last synchronize may be for."""
    block = file.block_of(loop)
    at = block.index(loop)
    return any(reads_clock(n) for n in [*block[max(0, at - 1) : at], *block[at + 1 : at + 2]])


def _with_guard(file: File, statement: ast.stmt) -> ast.stmt:
    """Return a statement, or the `if` that holds it alone."""
    parent = file.parents[statement]
    alone = isinstance(parent, ast.If) and parent.body == [statement] and not parent.orelse
    return parent if alone and isinstance(parent, ast.If) and _is_question(parent.test) else statement


def _is_question(node: ast.expr) -> bool:
    """Return whether a condition only asks whether there is a GPU."""
    calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)]
    return all(ast.unparse(c.func) == "torch.cuda.is_available" for c in calls)


def reads_clock(node: ast.AST) -> bool:
    """Return whether something in a node reads a clock."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call):
            name = inner.func.attr if isinstance(inner.func, ast.Attribute) else getattr(inner.func, "id", "")
            if name in _CLOCKS:
                return True
    return False
