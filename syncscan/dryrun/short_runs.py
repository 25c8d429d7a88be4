"""Find where the steps of a run begin and end that is over before it was stopped: of one step, or of a few.

An optimizer's call ends a step. In a long run the first one is left out, and with it what came before the loop. A short
run has no step to spare: its first one begins where the loop does, and its last one ends with the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from syncscan.dryrun.call_paths import CallPath, CallPaths
from syncscan.model.libraries import in_package
from syncscan.source.loops import LoopLines, Loops

Holds = Callable[[CallPath], bool]
"""Tells whether a path leads into what the steps repeat."""
APART = 2
"""Time on the recording's clock between a wait and the begin or end of a step beside it."""


def begin_of(paths: CallPaths, forward: int | None) -> int:
    """Return when the first step begins, on the recording's clock.

    The paths are those until at least that step's end; `forward` is when autograd first followed an op, None if never.
    """
    first, holds = paths.ends[0], _loop_of_steps(paths)
    before = [met for met in paths.met if met.begin < first]
    if holds is None:
        begin = first if forward is None else min(forward, first)
        return max(begin, *(met.end for met in before if met.begin < begin), 0) + APART
    begins = [met.begin - APART for met in before if holds(met.path)]
    begins += [at for at, path in (*paths.backwards.items(), *paths.scopes.items()) if holds(path)]
    return min(begins, default=first - APART)


def end_of(paths: CallPaths) -> int:
    """Return when the last step's loop waited last, on the recording's clock.

    A round that was begun and not ended isn't counted, unless it alone waited somewhere.
    """
    last, holds = paths.ends[-1], _loop_of_steps(paths)
    if holds is None:
        return last
    after = [met for met in paths.met if met.begin > last and holds(met.path)]
    before = {met.path for met in paths.met if met.begin < last}
    counted = (met.end + APART for met in after if _behind(met.path, paths.to_steps) or met.path not in before)
    return max([last, *counted])


def _behind(path: CallPath, step: CallPath) -> bool:
    """Return whether a path leads behind another one, which began the same; before it lies the next round."""
    for (code, _, at), (other, _, end) in zip(path, step, strict=False):
        if code is not other:
            break
        if at != end:
            return at > end
    return True


def with_whole_scopes(begin: int, end: int, scopes: Sequence[tuple[int, int]], first: int) -> tuple[int, int]:
    """Return begin and end of all steps, moved outward so that they cut no `record_function` range in two.

    `first` is the end of the first step.
    """
    begin = min([begin, *(a - APART for a, b in scopes if a < begin < b <= first)])
    return begin, max([end, *(b + APART for a, b in scopes if begin < a < end < b)])


def _loop_of_steps(paths: CallPaths) -> Holds | None:
    """Return what the steps repeat: the innermost loop around an optimizer's call that holds a backward pass too.

    Without one, it is the outermost loop around a backward pass: that of the micro-batches of a single step.
    """
    loops, backwards = Loops(), [*paths.backwards.values()]
    around = [_within(paths.to_steps, depth, loop) for depth, loop in _around(paths.to_steps, loops)]
    for holds in around[::-1]:
        if any(map(holds, backwards)):
            return holds
    if around and not backwards:
        return around[-1]
    for path in backwards[:1]:
        return next((_within(path, depth, loop) for depth, loop in _around(path, loops)), None)
    return None


def _around(path: CallPath, loops: Loops) -> Iterator[tuple[int, LoopLines]]:
    """Yield the loops around a path with the place of their function in it, outermost first; torch's own left out."""
    for depth, (code, line, _) in enumerate(path):
        if not in_package(code.co_filename, "torch"):
            yield from ((depth, loop) for loop in loops[code.co_filename].around(line))


def _within(outer: CallPath, depth: int, loop: LoopLines) -> Holds:
    def holds(path: CallPath) -> bool:
        if len(path) <= depth or path[:depth] != outer[:depth] or path[depth][0] is not outer[depth][0]:
            return False
        return loop.holds(path[depth][1])

    return holds
