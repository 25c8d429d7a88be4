"""Find where the steps of a run begin and end that is over before it was stopped: of one step, or of a few.

An optimizer's call ends a step. In a long run the first one is left out, and with it what came before the loop. A short
run has no step to spare: its first one begins where the loop does, and its last one ends with the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from syncscan.dryrun.ways import Way, Ways
from syncscan.facts.loops import Loop, Loops
from syncscan.model.libraries import in_package

Holds = Callable[[Way], bool]
"""Tells whether a way leads into what the steps repeat."""
APART = 2
"""Time on the recording's clock between a wait and the begin or end of a step beside it."""


def begin_of(ways: Ways, forward: int | None) -> int:
    """Return when the first step begins, on the recording's clock.

    Args:
        ways: the ways of the run until at least its first step's end.
        forward: when autograd first followed an op; None where it never did.
    """
    first, holds = ways.ends[0], _loop_of_steps(ways)
    before = [met for met in ways.met if met.begin < first]
    if holds is None:
        begin = first if forward is None else min(forward, first)
        return max(begin, *(met.end for met in before if met.begin < begin), 0) + APART
    begins = [met.begin - APART for met in before if holds(met.way)]
    begins += [at for at, way in (*ways.backwards.items(), *ways.scopes.items()) if holds(way)]
    return min(begins, default=first - APART)


def end_of(ways: Ways) -> int:
    """Return when the last step's loop waited last, on the recording's clock.

    A round that was begun and not ended isn't counted, unless it alone waited somewhere.

    Args:
        ways: the ways of the run, once it is over; with at least one step's end.
    """
    last, holds = ways.ends[-1], _loop_of_steps(ways)
    if holds is None:
        return last
    after = [met for met in ways.met if met.begin > last and holds(met.way)]
    before = {met.way for met in ways.met if met.begin < last}
    counted = (met.end + APART for met in after if _behind(met.way, ways.path) or met.way not in before)
    return max([last, *counted])


def _behind(way: Way, path: Way) -> bool:
    """Return whether a way leads behind another one, which began the same; before it lies the next round."""
    for (code, _, at), (other, _, end) in zip(way, path, strict=False):
        if code is not other:
            break
        if at != end:
            return at > end
    return True


def with_whole_scopes(begin: int, end: int, scopes: Sequence[tuple[int, int]], first: int) -> tuple[int, int]:
    """Return begin and end of all steps, moved outward so that they cut no scope in two.

    Args:
        begin, end: begin of the first step and end of the last.
        scopes: begin and end of each `record_function` range.
        first: end of the first step.
    """
    begin = min([begin, *(a - APART for a, b in scopes if a < begin < b <= first)])
    return begin, max([end, *(b + APART for a, b in scopes if begin < a < end < b)])


def _loop_of_steps(ways: Ways) -> Holds | None:
    """Return what the steps repeat: the innermost loop around an optimizer's call that holds a backward pass too.

    Without one, it is the outermost loop around a backward pass: that of the micro-batches of a single step.
    """
    loops, backwards = Loops(), [*ways.backwards.values()]
    around = [_within(ways.path, depth, loop) for depth, loop in _around(ways.path, loops)]
    for holds in around[::-1]:
        if any(map(holds, backwards)):
            return holds
    if around and not backwards:
        return around[-1]
    for way in backwards[:1]:
        return next((_within(way, depth, loop) for depth, loop in _around(way, loops)), None)
    return None


def _around(way: Way, loops: Loops) -> Iterator[tuple[int, Loop]]:
    """Yield the loops around a way with the place of their function in it, outermost first; torch's own left out."""
    for depth, (code, line, _) in enumerate(way):
        if not in_package(code.co_filename, "torch"):
            yield from ((depth, loop) for loop in loops.around(code.co_filename, line))


def _within(path: Way, depth: int, loop: Loop) -> Holds:
    def holds(way: Way) -> bool:
        if len(way) <= depth or way[:depth] != path[:depth] or way[depth][0] is not path[depth][0]:
            return False
        return loop.holds(way[depth][1])

    return holds
