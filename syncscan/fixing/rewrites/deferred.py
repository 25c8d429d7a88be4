"""Defers reads of numbers that are only needed after the loop.

Nothing inside the loop compares or prints the number, uses it as an index or passes it on. Arithmetic with it becomes
tensor arithmetic in double precision; lists and dictionaries hold tensors until the loop is over. A tensor that is
later changed in place is copied.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from syncscan.fixing import questions
from syncscan.fixing.flow.number_reads import NumberRead, sites
from syncscan.fixing.flow.number_walk import NumberWalk, followed
from syncscan.fixing.flow.taint import Stuck
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import Left, Proposal
from syncscan.model.fix import Safety

ID = "deferred-read"
TITLE = "A number is read in every step but needed only after the loop"
RULES = ("item", "cpu", "nan-guard")
SAFETY = Safety.SAFE
BEFORE = "total = 0.0\nfor loss in losses:\n    total += loss.item()"
AFTER = "total = 0.0\nfor loss in losses:\n    total += loss.double()\ntotal = float(total)"
TO_CHANGE = "keep the value on the device and read it after the loop"
FEWEST = 3
"""Reads of a place in the whole run, below which nothing is to be gained."""


def find(file: File) -> Iterator[Proposal | Left]:
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
    roots = [n for n in questions.names_in(of) if file.home_of(n) is function]
    stores = [n for root in roots for n in file.names(function, root.id) if isinstance(n.ctx, ast.Store)]
    rebound = any(begin <= store.lineno <= end for store in stores)
    return other.count * 2 >= site.count and questions.is_path(of) and not rebound


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
        change="keep the value on the device" if _is_never_read(way) else TO_CHANGE,
        waits=file.own_waits(site.node),
        reads=tuple(way.shown),
    )


def _is_never_read(way: NumberWalk) -> bool:
    """Return whether only tensors take the number, so that the host doesn't read it at all."""
    return not way.draft.before and not way.draft.behind and not way.shown


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
