"""Find what a program does between its steps, round by round, by the paths to a dry run's waits and steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from types import CodeType
from typing import NamedTuple

from syncscan.dryrun.call_paths import CallPath, CallPaths, WaitOnThread
from syncscan.facts.program_phases import Sample, SeenPhase, WatchedSteps, name_of, phases_of, rounds_of
from syncscan.model.libraries import in_package
from syncscan.model.program_run import PhaseLine, ProgramRun, RunPhase
from syncscan.source.loops import LoopLines, Loops

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
        intervals=(),
        disturbed=(),
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
        lines=tuple(
            PhaseLine(file=code.co_filename, line=line, function=name_of(code), share=None)
            for (code, line), _ in phase.lines()
        ),
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
