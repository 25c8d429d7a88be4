"""Chooses the loop after which a deferred number is read: the outermost in which nothing needs the number."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from syncscan.fixing.flow.number_reads import NumberRead
from syncscan.fixing.flow.number_walk import NumberWalk
from syncscan.fixing.flow.taint import Origin, Stuck
from syncscan.fixing.program_file import File

MOST = 40
"""Choices that are tried."""


def followed(file: File, site: NumberRead, reads: Iterable[ast.expr]) -> NumberWalk | Stuck:
    """Return the way of a number whose read is deferred as far as possible, or where and why the host needs it."""
    walk = NumberWalk(file, site, frozenset(reads))
    first: Stuck | None = None
    for _ in range(MOST):
        walk.anew()
        try:
            walk.go()
            return walk
        except Stuck as stuck:
            first = first or stuck
            last = stuck
            if not _closer(walk, stuck):
                return last
        except RecursionError:
            return Stuck(site.node, "takes a path that the analysis can't follow")
    return first or Stuck(site.node, "takes a path that the analysis can't follow")


def _closer(walk: NumberWalk, stuck: Stuck) -> bool:
    """Take the next loop for what led to where the host needs the number; False where there is none."""
    origin = stuck.origin or walk.origins.get(walk.site.node)
    while origin is not None:
        if _next(walk, origin, stuck.node):
            _forget(walk, origin)
            return True
        origin = origin.behind
    return False


def _next(walk: NumberWalk, origin: Origin, node: ast.AST) -> bool:
    """Take the outermost inner loop that doesn't hold the node."""
    homes = origin.homes[1:]
    while homes:
        home = homes[0]
        if home is None or not walk.file.within(node, home) or len(homes) == 1:
            if home is not None and walk.file.within(node, home) and node is not home:
                return False
            origin.homes[:] = homes
            return True
        homes = homes[1:]
    return False


def _forget(walk: NumberWalk, origin: Origin) -> None:
    """Forget origins that came of this one: with another loop they may not be there."""
    while True:
        of_it = [
            node
            for node, o in walk.origins.items()
            if o.behind is origin or o.behind not in (None, *walk.origins.values())
        ]
        if not of_it:
            return
        for node in of_it:
            del walk.origins[node]
