"""The program's paths to its waits and its steps' ends, and what of the run lies in its steps or between them by these.

An optimizer's call ends a step. In a long run the first one is left out, and with it what came before the loop. A short
run, which is over before it was stopped, has no step to spare: its first one begins where the loop does, and its last
one ends with the loop.
"""

from __future__ import annotations

import functools
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple

from syncscan.capture.stack_frames import RUNNER, outward
from syncscan.dryrun.recording import Frame
from syncscan.facts.program_phases import Sample, SeenPhase, WatchedSteps, name_of, phases_of, rounds_of
from syncscan.model.libraries import in_package, is_library
from syncscan.model.program_run import ProgramRun, RunPhase
from syncscan.source.loops import LoopLines, Loops

_HERE = str(Path(__file__).parent)
_STARTERS = ("<frozen runpy>", "runpy.py")
CallPath = tuple[tuple[CodeType, int, int], ...]
"""Function, line and instruction of each of the program's frames, outermost first."""


class WaitOnThread(NamedTuple):
    """A wait on the program's own thread: its number among all, when it began and ended, and the path to it."""

    number: int
    begin: int
    end: int
    path: CallPath


class CallPaths:
    """The program's paths to its waits and to its steps' ends; all times are on the recording's clock.

    `ends` are the times at which a step began or ended; `backwards` the first time that the backward pass was called by
    each path, before the first of these, and `scopes` that a `record_function` range began; `entered` is the line of
    the block that is watched, where that isn't a script.
    """

    def __init__(self) -> None:
        self.met: list[WaitOnThread] = []
        self.ends: list[int] = []
        self.backwards: dict[int, CallPath] = {}
        self.scopes: dict[int, CallPath] = {}
        self.entered: tuple[CodeType, int] | None = None
        self._to_steps: Counter[CallPath] = Counter()
        self._outside = 0
        self._known: dict[CallPath, CallPath] = {}
        self._passed: set[CallPath] = set()

    def enter(self, frame: FrameType) -> None:
        """Watch from this frame on, which asks for it: those around it aren't the program's."""
        self.entered = frame.f_code, frame.f_lineno
        self._outside = len(_program_frames(frame)) - 1

    def wait(self, number: int, begin: int, end: int) -> None:
        """Keep the path to a wait that the program's own thread has just made."""
        self.met.append(WaitOnThread(number, begin, end, self._now()))

    def first_time(self, known: dict[int, CallPath], at: int) -> None:
        """Keep the path to a call that is one of `backwards` or `scopes`, before the first step's end."""
        if not self.ends and (path := self._now()) not in self._passed:
            self._passed.add(path)
            known[at] = path

    def step(self, at: int, *, last: bool) -> None:
        """Keep the path to the begin of a step, where another one may end; the last is only an end."""
        self.ends.append(at)
        if not last:
            self._to_steps[self._now()] += 1

    @property
    def to_steps(self) -> CallPath:
        return max(self._to_steps, key=lambda path: self._to_steps[path], default=())

    def _now(self) -> CallPath:
        frames = _program_frames(sys._getframe(1))[::-1]
        first = max((k + 1 for k, (code, _, _) in enumerate(frames) if code.co_filename == RUNNER), default=-1)
        if first < 0:
            first = self._outside
        while first < len(frames) and frames[first][0].co_filename in _STARTERS:
            first += 1
        path = tuple(frames[first:])
        return self._known.setdefault(path, path)


def _program_frames(frame: FrameType) -> list[tuple[CodeType, int, int]]:
    return [(f.f_code, f.f_lineno, f.f_lasti) for f in outward(frame) if not is_ours(f.f_code.co_filename)]


def is_ours(file: str) -> bool:
    return file.startswith(_HERE)


def is_programs_own(file: str) -> bool:
    """Return whether a file is the program's rather than a library's or the dry run's."""
    return not is_ours(file) and file != RUNNER and not is_library(file)


MOST_FRAMES = 60
"""Frames looked at for the program's own line."""


class OwnLines:
    """Finds the innermost of the program's own lines that run now, by whether a file is its own."""

    def __init__(self, is_own: Callable[[str], bool] = is_programs_own) -> None:
        self._is_own = functools.cache(is_own)  # by file: to look a code object up takes 1.5 µs, as it is hashed anew

    def now(self) -> Frame | None:
        """Return the line; None where none is near."""
        for frame in islice(outward(sys._getframe(1)), MOST_FRAMES):
            if self._is_own(frame.f_code.co_filename):
                return frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name
        return None


MOST_PHASES = 16
_CONTAINERS = "torch/nn/modules/container.py"
"""Whose loops call one layer after another: that a layer comes again isn't another round of theirs."""


class ProgramPart(NamedTuple):
    """A part of the program that runs between its steps, and not in each of them.

    `waits` are the numbers of its own, `rounds` the begin and end, on the recording's clock, of each round of its loop,
    or of the whole part if it is no loop; `came` is how many times it ran, `at` the steps in which it did.
    """

    phase: SeenPhase
    waits: frozenset[int]
    rounds: tuple[tuple[int, int], ...]
    came: int
    at: tuple[int, ...]


def parts_of(paths: CallPaths) -> list[ProgramPart]:
    """Return the phases of a dry run, those with the most waits first; none where it has no steps."""
    if len(paths.ends) < 2:
        return []
    loops = Loops()
    samples = {id(sample := Sample(met.begin, 1, _lines(met.path))): (sample, k) for k, met in enumerate(paths.met)}
    course = WatchedSteps(
        paths.ends, [True] * (len(paths.ends) - 1), _lines(paths.to_steps), complete=True, entered=paths.entered
    )
    phases, _ = phases_of(course, [sample for sample, _ in samples.values()], loops)
    places = ([samples[id(sample)][1] for sample in phase.samples] for phase in phases[:MOST_PHASES])
    return [_part(phase, sorted(those), paths, loops) for phase, those in zip(phases, places, strict=False)]


def run_of(parts: Sequence[ProgramPart], steps: int) -> ProgramRun:
    """Return the run as a capture's reports have it, without times: nothing was timed."""
    return ProgramRun(
        steps=steps,
        watched_us=None,
        counted=steps,
        mean_us=None,
        steps_share=None,
        phases=tuple(map(_run_phase, parts)),
    )


def _run_phase(part: ProgramPart) -> RunPhase:
    phase, place = part.phase, part.phase.place
    begins = [k for k in part.at if k - 1 not in part.at]
    return RunPhase(
        kind=phase.kind.value,
        name=phase.name,
        file=place.code.co_filename,
        function=name_of(place.code),
        first=place.first,
        last=place.last,
        share=None,
        every=(begins[-1] - begins[0]) / (len(begins) - 1) if len(begins) > 1 else None,
        rounds=len(part.rounds) / part.came if len(part.rounds) > part.came else None,
    )


def _lines(path: CallPath) -> tuple[tuple[CodeType, int], ...]:
    return tuple((code, line) for code, line, _ in path)


def _part(phase: SeenPhase, places: Sequence[int], paths: CallPaths, loops: Loops) -> ProgramPart:
    round_loops = rounds_of(phase, loops)
    begins, came = [], 0
    for before, now in pairwise([-2, *places]):
        anew = now != before + 1
        came += anew
        if anew or (
            round_loops is not None and _goes_round(paths.met[before].path, paths.met[now].path, round_loops, loops)
        ):
            begins.append(now)
    ends = [max(p for p in places if p < then) for then in [*begins[1:], places[-1] + 1]]
    rounds = tuple((_since(paths.met, begin), paths.met[end].end + 1) for begin, end in zip(begins, ends, strict=True))
    return ProgramPart(phase, frozenset(paths.met[k].number for k in places), rounds, came, tuple(_steps(phase, paths)))


def _since(met: Sequence[WaitOnThread], place: int) -> int:
    """Return when the previous wait was over: the work after it leads to this one."""
    return met[place - 1].end + 2 if place else 0


def _steps(phase: SeenPhase, paths: CallPaths) -> Iterator[int]:
    times = Counter(sum(end <= sample.at for end in paths.ends) - 1 for sample in phase.samples)
    yield from sorted(step for step in times if 0 <= step < len(paths.ends) - 1)


def _goes_round(before: CallPath, now: CallPath, round_loop: tuple[CodeType, LoopLines], loops: Loops) -> bool:
    """Return whether a loop began another round between two waits.

    Where the program went back, or came to the same instruction again, the innermost loop around both did that.
    """
    depth, same = _depth(before, round_loop), _depth(now, round_loop)
    if depth is None or depth != same:
        return False
    at = depth
    while at + 1 < min(len(before), len(now)) and before[at][::2] == now[at][::2]:
        at += 1
    if before[at][0] is not now[at][0] or before[at][2] < now[at][2]:
        return False
    for k in range(at, depth, -1):
        file = now[k][0].co_filename
        around = [] if in_package(file, _CONTAINERS) else loops[file].around(now[k][1])
        if any(loop.holds(before[k][1]) for loop in around):
            return False
    around = [loop for loop in loops[round_loop[0].co_filename].around(now[depth][1]) if loop.holds(before[depth][1])]
    return around[-1:] == [round_loop[1]]


def _depth(path: CallPath, own: tuple[CodeType, LoopLines]) -> int | None:
    return next((k for k, (code, line, _) in enumerate(path) if code is own[0] and own[1].holds(line)), None)


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
