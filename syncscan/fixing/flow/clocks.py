"""Keeps what the clocks in a loop measure: what waited before a clock was read goes on waiting before it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from syncscan.fixing import clock_reads
from syncscan.fixing.flow import read_back
from syncscan.fixing.flow.taint import ContainerShape, Local, Origin, Stuck

if TYPE_CHECKING:
    from syncscan.fixing.flow.number_walk import NumberWalk

WHY = "is waited for before a clock is read, so that its wait is part of what is measured"


def check(walk: NumberWalk, origin: Origin) -> None:
    """Make sure that a wait stands before each clock that is read while a number is deferred, or put one there."""
    for clock in walk.clocks:
        if not walk.in_region(clock, origin) or clock_reads.follows_sync(walk.file, clock):
            continue
        if not _waits_before(walk, clock, origin) and not _read_before(walk, clock, origin):
            raise Stuck(clock, WHY, origin)


def _waits_before(walk: NumberWalk, clock: ast.Call, origin: Origin) -> bool:
    """Return whether the number is read between where it was read and a clock in the same turn of the loop."""
    file = walk.file
    if file.function_of(clock) is not file.function_of(origin.node):
        return False
    read = file.text.span(origin.node)[0]
    until = file.text.span(clock)[0]
    inner: ast.AST = clock
    for outer in file.ancestors(clock):
        if isinstance(inner, ast.stmt):
            block = file.block_of(inner)
            for statement in block[: block.index(inner) + 1]:
                if statement in walk.draft.before and not file.text.span(statement)[0] < read < until:
                    return True
        if outer is origin.home:
            break
        inner = outer
    shown = [file.text.span(node)[0] for node in walk.shown if file.within(node, file.statement_of(clock))]
    return any(at < until for at in shown)


def _read_before(walk: NumberWalk, clock: ast.Call, origin: Origin) -> bool:
    """Read the number in front of a clock that is read rarely; return whether that is possible."""
    file, home = walk.file, origin.home
    statement = walk.branch_of(clock, origin)
    if home is None or statement is None or not walk.is_rare(clock):
        return False
    scope = file.scope_of(statement)
    for (cell, of), taint in walk.cells.items():
        number = of is origin and taint.shape is ContainerShape.NUMBER
        if number and isinstance(cell, Local) and cell.scope is scope and read_back.is_there(walk, cell, home):
            walk.draft.put_before(statement, "\n".join(read_back.lines(walk, cell.name, cell, taint)))
            return True
    return False
