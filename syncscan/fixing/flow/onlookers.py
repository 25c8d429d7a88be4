"""Finds who else may look while a number is deferred: handlers around the loop, and the clocks in it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from syncscan.fixing import clock_reads
from syncscan.fixing.flow import callees
from syncscan.fixing.flow.taint import Local, Origin, Stuck
from syncscan.fixing.program_file import File
from syncscan.source.tree import Loop

if TYPE_CHECKING:
    from syncscan.fixing.flow.number_walk import NumberWalk

_CONTEXTS = ("torch.", "_io.", "contextlib.nullcontext", "tqdm.", "warnings.catch_warnings", "tempfile.", "threading.")
"""How the types of contexts begin that let exceptions pass."""
_HANDLED = "is used by an exception handler around the loop"
_INTERRUPTED = "may be used after an exception that is handled around the loop"
_TIMED = "is waited for before a clock is read, so that its wait is part of what is measured"


def check_handlers(walk: NumberWalk, origin: Origin, home: Loop) -> None:
    """Make sure that nobody sees the names of an origin before they are read: the loop may be interrupted."""
    if any(isinstance(n, ast.Yield | ast.YieldFrom | ast.Await) for n in ast.walk(home)):
        raise Stuck(home, "is stored in a loop that yields", origin)
    for cell in walk.held_by(origin):
        inner: ast.AST = home
        for outer in walk.file.ancestors(home):
            if outer is cell.scope:
                break
            if isinstance(outer, ast.Try) and inner in (*outer.body, *outer.orelse):
                _check_try(walk, cell, outer, origin)
            if isinstance(outer, ast.With | ast.AsyncWith) and inner in outer.body:
                passes = all(_lets_pass(walk.file, item.context_expr) for item in outer.items)
                if not passes and _is_used_outside(walk, cell, outer):
                    raise Stuck(outer, _INTERRUPTED, origin)
            inner = outer


def _check_try(walk: NumberWalk, cell: Local, node: ast.Try, origin: Origin) -> None:
    handlers = (*node.handlers, *node.finalbody)
    if any(walk.file.within(use, handler) for use in walk.uses(cell) for handler in handlers):
        raise Stuck(node, _HANDLED, origin)
    ends = all(isinstance(handler.body[-1], ast.Raise) for handler in node.handlers)
    if not ends and _is_used_outside(walk, cell, node):
        raise Stuck(node, _INTERRUPTED, origin)


def _is_used_outside(walk: NumberWalk, cell: Local, node: ast.Try | ast.With | ast.AsyncWith) -> bool:
    """Return whether a name is used outside of a statement's body, which an exception leaves early."""
    return any(not any(walk.file.within(use, s) for s in node.body) for use in walk.uses(cell))


def _lets_pass(file: File, context: ast.expr) -> bool:
    """Return whether a context handles no exceptions."""
    names = callees.names(file, context) if isinstance(context, ast.Call) else frozenset()
    if names and all(name.startswith(_CONTEXTS) or name == "builtins.open" for name in names):
        return True
    types = file.types(context)
    return bool(types) and all(kind.startswith(_CONTEXTS) for kind in types)


def check_clocks(walk: NumberWalk, origin: Origin) -> None:
    """Make sure that a wait stands before each clock that is read while a number is deferred, as it did before."""
    for clock in walk.clocks:
        timed = walk.in_region(clock, origin) and not clock_reads.follows_sync(walk.file, clock)
        if timed and not _waits_before(walk, clock, origin):
            raise Stuck(clock, _TIMED, origin)


def _waits_before(walk: NumberWalk, clock: ast.Call, origin: Origin) -> bool:
    """Return whether the number is read between where it was read and a clock in the same turn of the loop."""
    file = walk.file
    if file.function_of(clock) is not file.function_of(origin.node):
        return False
    read, until = (file.text.span(node)[0] for node in (origin.node, clock))
    inner: ast.AST = clock
    for outer in file.ancestors(clock):
        if isinstance(inner, ast.stmt):
            block = file.block_of(inner)
            for statement in block[: block.index(inner) + 1]:
                reads = statement in walk.draft.before or (statement in walk.draft.behind and statement is not inner)
                if reads and not file.text.span(statement)[0] < read < until:
                    return True
        if outer is origin.home:
            break
        inner = outer
    shown = (file.text.span(node)[0] for node in walk.shown if file.within(node, file.statement_of(clock)))
    return any(at < until for at in shown)
