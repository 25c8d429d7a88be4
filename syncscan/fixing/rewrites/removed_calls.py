"""Calls that a step does without."""

from __future__ import annotations

import ast

from syncscan.fixing import expressions
from syncscan.fixing.edits import Draft
from syncscan.fixing.flow import callees, tensor_writes
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import FEWEST, Answers, Left, Proposal, rewrite
from syncscan.source.code_pattern import matched
from syncscan.source.tree import calls_in

_COUNTS_ON_IT = frozenset(
    "Stream Event stream wait_stream record_stream CUDAGraph graph non_blocking ctypes cudart from_dlpack cupy numba "
    "memory_allocated max_memory_allocated memory_stats mem_get_info pynvml profile".split()
)
CLOCK = "a clock is read near it, so it may be part of a measurement"
UNKNOWN = "a function that isn't known runs in its loop, and may depend on it"
OTHERS = "the file uses streams, events or non-blocking copies, which may depend on it"
_SYNCHRONIZE = "torch.cuda.synchronize(...) | cuda.synchronize(...) | torch.accelerator.synchronize(...)"


@rewrite
def needless_sync(file: File) -> Answers:
    for node in file.nodes:
        if not isinstance(node, ast.Expr):
            continue
        if_gpu = matched("$call if $test else $nothing", node.value)
        guarded = if_gpu and isinstance(if_gpu.nothing, ast.Constant) and expressions.asks_for_gpu(if_gpu.test)
        call = if_gpu.call if if_gpu and guarded else node.value
        seen = file.seen(call)
        if matched(_SYNCHRONIZE, call) and seen.count >= FEWEST and seen.waits:
            yield _of_sync(file, node, seen.waits)


def _of_sync(file: File, node: ast.Expr, waits: int) -> Proposal | Left:
    words = {getattr(n, key, None) for n in file.nodes for key in ("attr", "id", "arg")}
    if words & _COUNTS_ON_IT:
        return Left(node, OTHERS)
    if not _is_among_known(file, node):
        return Left(node, UNKNOWN)
    if _is_timed(file, node, set()):
        return Left(node, CLOCK)
    draft = _without(file, node)
    if draft is None:
        return Left(node, "its block would be empty without it")
    return Proposal(node=node, draft=draft, change="remove the call: no clock is read near it", waits=waits)


def _without(file: File, node: ast.Expr) -> Draft | None:
    """Return the draft that removes a call with its guard; None where something shares its lines, or needs a body."""
    draft, statement = Draft(file.text), expressions.with_guard(file, node)
    if not expressions.stands_alone(file, statement) or len(file.block_of(statement)) < 2:
        return None
    draft.remove(statement)
    return draft


def _is_among_known(file: File, node: ast.Expr) -> bool:
    """Return whether the loops around a call run only functions of the file and of libraries, which use no streams."""
    function = file.function_of(node)
    calls_of_it = [] if isinstance(function, ast.Module) else callees.calls_of(file, function) or []
    loops = [loop for call in (node, *calls_of_it) for loop in file.loops_of(call)]
    calls = {n for loop in loops for n in tensor_writes.running_in(file, loop) if isinstance(n, ast.Call)}
    return all(callees.runs_only(file, call, callees.is_of_library) for call in calls)


def _is_timed(file: File, statement: ast.stmt, seen: set[ast.AST]) -> bool:
    """Return whether a clock is read beside a statement, or before and after it; of its function's calls too."""
    function = file.function_of(statement)
    if _is_between_reads(file, expressions.with_guard(file, statement)):
        return True
    if any(_is_timer(file, n) for n in file.ancestors(statement)):
        return True
    if isinstance(function, ast.Module) or function in seen:
        return False
    calls = callees.calls_of(file, function)
    return calls is None or any(_is_timed(file, file.statement_of(call), seen | {function}) for call in calls)


def _is_between_reads(file: File, statement: ast.stmt) -> bool:
    """Return whether a clock is read in the neighboring statements, or on both sides in the same function."""
    if any(callees.reads_clock(file, n) for n in [*file.above(statement)[-1:], *file.below(statement)[:1]]):
        return True
    function = file.function_of(statement)
    calls = (call for call in calls_in(function) if file.function_of(call) is function)
    lines = [call.lineno for call in calls if callees.is_clock(file, call)]
    return bool(lines) and min(lines) < statement.lineno <= max(lines)


def _is_timer(file: File, node: ast.AST) -> bool:
    """Return whether a node is a `with` block whose context reads a clock."""
    contexts = [item.context_expr for item in node.items] if isinstance(node, ast.With) else []
    owners = {owner.rpartition(".")[2] for context in contexts for owner in file.types(context)}
    methods = [callees.method(file, owner, name) for owner in owners for name in ("__enter__", "__exit__")]
    return any(callees.reads_clock(file, n) for n in (*contexts, *methods) if n is not None)


KEEPS_MEMORY = "the allocator keeps memory that other programs on the device could use"


@rewrite
def empty_cache(file: File) -> Answers:
    for node in file.nodes:
        if not isinstance(node, ast.Expr) or not matched("torch.cuda.empty_cache()", node.value):
            continue
        seen, draft = file.seen(node.value), _without(file, node)
        if seen.count >= FEWEST and seen.waits and draft is not None:
            yield Proposal(node=node, draft=draft, change="remove the call", waits=seen.waits, why=KEEPS_MEMORY)
