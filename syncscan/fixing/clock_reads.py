"""Finds code that reads a clock: what is timed must go on waiting where it waits."""

from __future__ import annotations

import ast
from collections.abc import Collection

from syncscan.fixing.flow import callees
from syncscan.fixing.program_file import File
from syncscan.source.names import called
from syncscan.source.tree import calls_in

_CLOCKS = frozenset(
    "time perf_counter perf_counter_ns monotonic monotonic_ns time_ns process_time process_time_ns default_timer "
    "now utcnow clock elapsed elapsed_time timeit tic toc tick stopwatch".split()
)


def is_timed(file: File, node: ast.expr) -> bool:
    """Return whether each turn of a loop around a node, or around a call of its function, times it separately."""
    calls = [node]
    function = file.function_of(node)
    if not isinstance(function, ast.Module):
        calls += callees.calls_of(file, function) or []
    return any(_is_inside(file, call, loop) for call in calls for loop in file.loops_of(call))


def _is_inside(file: File, node: ast.expr, loop: ast.AST) -> bool:
    lines = [n.lineno for n in calls_in(loop) if is_clock(file, n)]
    return any(n < node.lineno for n in lines) and any(n > node.lineno for n in lines)


def clocks(file: File) -> list[ast.Call]:
    """Return the calls that read a clock themselves, in the order of the text."""
    names = _CLOCKS | _names_of_clocks(file)
    return [n for n in file.nodes if isinstance(n, ast.Call) and _is_named(n, names)]


def follows_sync(file: File, clock: ast.Call) -> bool:
    """Return whether the statement in front of a clock's waits for the whole device."""
    return any(synchronizes(file, statement) for statement in file.above(file.statement_of(clock))[-1:])


def synchronizes(file: File, node: ast.AST, depth: int = 2) -> bool:
    """Return whether something in a node, or in the functions of the file that it calls, waits for the whole device."""
    for call in calls_in(node):
        name = called(call)
        function = callees.callee(file, call) if depth else None
        if name == "synchronize" or (function is not None and synchronizes(file, function, depth - 1)):
            return True
    return False


def reads_clock(file: File, node: ast.AST) -> bool:
    return any(is_clock(file, call) for call in calls_in(node))


def is_clock(file: File, call: ast.Call, depth: int = 2) -> bool:
    """Return whether a call reads a clock: a known one under any name, or a function of the file that reads one."""
    if _is_named(call, _CLOCKS) or _is_named(call, _names_of_clocks(file)):
        return True
    function = callees.callee(file, call) if depth else None
    return function is not None and any(is_clock(file, call, depth - 1) for call in calls_in(function))


def _is_named(call: ast.Call, names: Collection[str]) -> bool:
    name = called(call)
    return name in names or "timer" in ast.unparse(call.func).lower()


def _names_of_clocks(file: File) -> set[str]:
    names = set()
    for node in file.nodes:
        if isinstance(node, ast.ImportFrom):
            names |= {alias.asname for alias in node.names if alias.name in _CLOCKS and alias.asname}
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute | ast.Name):
            word = node.value.attr if isinstance(node.value, ast.Attribute) else node.value.id
            names |= {t.id for t in node.targets if isinstance(t, ast.Name) and word in _CLOCKS}
    return names
