"""Find the phases between and within the steps of a program's run, from samples of the run.

The samples are a capture's, taken by a clock, or a dry run's: then each is a wait, and none is missing.

A program repeats its step in a loop. What is sampled outside of that loop is between the steps: the rollout, the
validation, the checkpoint at an epoch's end. What is sampled in the loop, but in few of its rounds, is a phase too: the
evaluation every so many iterations, the log line. The loop of the steps is found by where most of the ordinary
steps' samples lie.
"""

from __future__ import annotations

import bisect
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from types import CodeType
from typing import NamedTuple

from syncscan.facts.rhythm import median
from syncscan.model.libraries import in_package, is_library, package_of
from syncscan.model.program_run import LOADER, PhaseKind, kind_named, written_kind
from syncscan.source.loops import LoopLines, Loops

INSIDE = 0.8
"""Least fraction of ordinary steps' samples inside the loop whose rounds are the steps."""
ORDINARY = 1.5
"""A step is ordinary if it takes at most this multiple of the median."""
RARE = 0.3
"""A place in the loop is rare if it occurs in at most this fraction of the steps in which chance would place it; where
steps are periodic, in at most `PERIOD` of the expectation for a step of a period."""
PERIOD = 0.6
SHOWN = 0.05
"""The part of a phase's time whose functions say what it is for, where the rest says nothing."""
SELDOM = 1 / 3
"""Where every wait is seen, a branch of the loop is a phase that comes in at most this part of the steps."""
FEWEST = 4
"""Least samples of a place to call it rare."""
MOSTLY = 0.6
"""Least fraction of a phase that its own loop holds if the phase consists of the loop's rounds."""
PREDICTS = 0.5
"""Least part of a phase in which a network is called without training anything, if the phase is a validation."""
_MODULE = "torch/nn/modules/module.py"

Frame = tuple[CodeType, int]
"""A function and the line in it."""


class Sample(NamedTuple):
    """A sample of the step's thread: time (ns), duration it represents (ns), and frames, outermost first."""

    at: int
    ns: int
    stack: tuple[Frame, ...]


class PhaseLines(NamedTuple):
    """Lines of a function that a phase is in: a statement or a loop."""

    code: CodeType
    first: int
    last: int


class SeenPhase(NamedTuple):
    """A phase: its kind, name, lines and samples."""

    kind: PhaseKind
    name: str
    place: PhaseLines
    samples: list[Sample]

    @property
    def ns(self) -> int:
        return sum(sample.ns for sample in self.samples)


class WatchedSteps(NamedTuple):
    """The steps of a run, by which its phases are recognized.

    `ends` are the steps' ends (ns): step k lies between `ends[k]` and `ends[k + 1]`. `counts` says of each whether it
    is one of the program's own, undisturbed. `path` is the way to the call that ends a step, outermost first; `period`
    after how many steps they repeat.
    """

    ends: Sequence[int]
    counts: Sequence[bool]
    path: tuple[Frame, ...]
    period: int = 1
    complete: bool = False
    """Whether the samples are all that happened, what came before the first step among them."""
    entered: Frame | None = None
    """Where the program is watched from: the loops around that line aren't part of what is watched."""


def phases_of(
    course: WatchedSteps, samples: Sequence[Sample], loops: Loops
) -> tuple[list[SeenPhase], tuple[int, LoopLines] | None]:
    """Return the phases, longest first, and the loop whose iterations are the steps (None without one).

    Samples are all of the run; those of steps that don't count only say where phases lie. The loop comes with the place
    in the path of the function that it stands in.
    """
    steps = _StepNumbers(course)
    around = _steps_loop(steps, samples, loops)
    groups: defaultdict[object, list[Sample]] = defaultdict(list)
    inside: defaultdict[_Branch, list[Sample]] = defaultdict(list)
    for sample in samples:
        branch = _branch(course, sample.stack, around, loops)
        if branch.outside and steps.happens_once(sample, loops):
            continue
        if branch.outside or branch.kind is PhaseKind.LOADER:
            groups[branch.phase].append(sample)
        elif branch.place is not None:
            inside[branch].append(sample)
    for branch, samples_inside in inside.items():
        if steps.seldom(branch, samples_inside):
            groups[branch.phase] += samples_inside
        else:
            _first_batches(groups, samples_inside, steps)
    groups_of_lines = _by_lines(_seen(samples_inside, course, around, loops) for samples_inside in groups.values())
    seen = [_seen(of_lines, course, around, loops) for of_lines in groups_of_lines]
    return sorted(seen, key=lambda phase: -phase.ns), around


def _by_lines(seen: Iterable[SeenPhase]) -> Iterator[list[Sample]]:
    """Yield the samples of each phase: what lies in the same lines is one, whatever they call."""
    merged: defaultdict[object, list[Sample]] = defaultdict(list)
    for phase in seen:
        place = phase.place
        loader = phase.kind is PhaseKind.LOADER
        merged[phase.kind if loader else (place.code, place.first, place.last)] += phase.samples
    yield from (sorted(samples) for samples in merged.values())


class _StepNumbers:
    def __init__(self, course: WatchedSteps) -> None:
        self.course = course
        self.times = [b - a for a, b in zip(course.ends, course.ends[1:], strict=False)]
        counted = [time for time, counts in zip(self.times, course.counts, strict=True) if counts]
        self.typical = median(counted) if counted else 0.0
        self.count = len(counted)

    def at(self, moment: int) -> int:
        """Return -1 outside of all steps."""
        number = bisect.bisect_right(self.course.ends, moment) - 1
        return number if number < len(self.times) else -1

    def ordinary(self, moment: int) -> bool:
        """Return whether the moment lies in a step of about the median's time that counts."""
        number = self.at(moment)
        return number >= 0 and self.course.counts[number] and self.times[number] <= ORDINARY * self.typical

    def happens_once(self, sample: Sample, loops: Loops) -> bool:
        """Return whether no loop around the steps brings this again, which comes before the first or after the last."""
        ends = self.course.ends
        if not self.course.complete or not ends or ends[0] <= sample.at < ends[-1]:
            return False
        path, entered = self.course.path, self.course.entered
        for (code, line), (other, at) in zip(path, sample.stack, strict=False):
            if code is not other:
                return True
            around = () if in_package(code.co_filename, "torch") else loops[code.co_filename].around(line)
            inside = (k for k in around if entered is None or code is not entered[0] or not k.holds(entered[1]))
            if any(loop.holds(at) for loop in inside):
                return False
            if line != at:
                return True
        return True

    def seldom(self, branch: _Branch, samples: Sequence[Sample]) -> bool:
        """Return whether what branches off within the loop of the steps is a phase: it comes in few of them."""
        named = branch.kind is not PhaseKind.OTHER
        if self.course.complete:
            met = len({self.at(sample.at) for sample in samples} - {-1})
            return branch.chosen and met <= SELDOM * self.count and (named or self.count >= 2 * FEWEST)
        return (branch.chosen or named) and self.rare(samples)

    def rare(self, samples: Sequence[Sample]) -> bool:
        """Return whether these samples lie in fewer steps than they would if each step held some."""
        numbers = [number for number in (self.at(s.at) for s in samples) if number >= 0 and self.course.counts[number]]
        if len(numbers) < FEWEST or self.count < 2 * FEWEST:
            return False
        expected = self.count * (1 - (1 - 1 / self.count) ** len(numbers))
        return len(set(numbers)) <= min(RARE, PERIOD / self.course.period) * expected


class _Branch(NamedTuple):
    """Where a sample's stack leaves that of the step's end: the lines, the function called there, and its kind.

    `outside` of the loop that runs the steps, or `chosen` by a condition in it; `place` is None where it never
    leaves the path.
    """

    outside: bool
    chosen: bool
    place: PhaseLines | None
    callee: CodeType | None
    kind: PhaseKind

    @property
    def phase(self) -> object:
        """A loop is one phase, whatever it calls; so is all of some kinds."""
        if self.kind in (PhaseKind.LOADER, PhaseKind.CHECKPOINT, PhaseKind.LOGGING):
            return self.kind
        if self.place is not None and self.place.first != self.place.last:
            return self.place
        return self.place, self.callee, self.kind


_ON_THE_WAY = _Branch(False, False, None, None, PhaseKind.OTHER)


def _steps_loop(steps: _StepNumbers, samples: Sequence[Sample], loops: Loops) -> tuple[int, LoopLines] | None:
    """Return the innermost loop around a step's end that holds most of the ordinary steps' samples."""
    path = steps.course.path
    ordinary = [sample for sample in samples if steps.ordinary(sample.at)]
    total_ns = sum(sample.ns for sample in ordinary)
    for depth in range(len(path) - 1, -1, -1):
        code, line = path[depth]
        if in_package(code.co_filename, "torch"):
            continue
        for loop in reversed(loops[code.co_filename].around(line)):
            held = sum(s.ns for s in ordinary if _in_loop(path, s.stack, depth, loop))
            if total_ns == 0 or held >= INSIDE * total_ns:
                return depth, loop
    return None


def _in_loop(path: tuple[Frame, ...], stack: tuple[Frame, ...], depth: int, loop: LoopLines) -> bool:
    if len(stack) <= depth or stack[:depth] != path[:depth]:
        return False
    code, line = stack[depth]
    return code is path[depth][0] and loop.holds(line)


def _branch(
    course: WatchedSteps, stack: tuple[Frame, ...], around: tuple[int, LoopLines] | None, loops: Loops
) -> _Branch:
    """Return where the stack leaves the path, and whether that is in the steps' loop."""
    path, depth = course.path, 0
    while depth < min(len(path), len(stack)) and stack[depth] == path[depth]:
        depth += 1
    if depth >= len(path) or depth >= len(stack):
        return _ON_THE_WAY
    if stack[depth][0] is not path[depth][0]:  # the same line calls another function
        depth -= 1
        if depth < 0:
            return _ON_THE_WAY
    code, line = stack[depth]
    outside = around is not None and not _in_loop(path, stack, around[0], around[1])
    own = loops[code.co_filename].around(line)
    branch_loops = [loop for loop in own if not loop.holds(path[depth][1])]
    place = (
        PhaseLines(code, branch_loops[0].first, branch_loops[0].last) if branch_loops else PhaseLines(code, line, line)
    )
    callee = stack[depth + 1][0] if len(stack) > depth + 1 else None
    chosen = loops[code.co_filename].chosen(line, path[depth][1])
    kind = kind_of(stack[depth + 1 :])
    if kind is PhaseKind.OTHER and course.complete:  # what doesn't wait has no sample: its calls alone show it
        kind = written_kind(loops[code.co_filename].calls(place.first, place.last))
    return _Branch(outside, chosen, place, callee, kind)


def _seen(samples: list[Sample], course: WatchedSteps, around: tuple[int, LoopLines] | None, loops: Loops) -> SeenPhase:
    """Return the phase of these samples: its kind by most of them, its lines by most of its time."""
    took: Counter[_Branch] = Counter()
    kinds: Counter[PhaseKind] = Counter()
    for sample in samples:
        branch = _branch(course, sample.stack, around, loops)
        took[branch] += sample.ns
        kinds[branch.kind] += sample.ns
    most = took.most_common(1)[0][0]
    least = SHOWN * sum(kinds.values())
    shown = [kind for kind, ns in kinds.most_common() if kind is not PhaseKind.OTHER and ns >= least]
    place = most.place or PhaseLines(*samples[0].stack[-1], samples[0].stack[-1][1])
    kind = shown[0] if shown else PhaseKind.OTHER
    if kind is PhaseKind.OTHER and _runs_network_only(samples, place, loops):
        kind = PhaseKind.VALIDATION
    return SeenPhase(kind, _phase_name(kind, most.callee, place), place, samples)


def _runs_network_only(samples: Sequence[Sample], place: PhaseLines, loops: Loops) -> bool:
    """Return whether most of a phase is a network's calls that train nothing: a validation, or a prediction."""
    ns = sum(sample.ns for sample in samples if _is_prediction(sample.stack, place, loops))
    return ns >= PREDICTS * sum(sample.ns for sample in samples)


def _is_prediction(stack: Sequence[Frame], place: PhaseLines, loops: Loops) -> bool:
    own = next((k for k, (code, _) in enumerate(stack) if code is place.code), len(stack))
    inside = stack[own:]
    if not any(in_package(code.co_filename, _MODULE) for code, _ in inside):
        return False
    files = ((code.co_filename, line) for code, line in inside if not in_package(code.co_filename, "torch"))
    return any(loops[file].trains_nothing(line) for file, line in files)


def _first_batches(groups: dict[object, list[Sample]], samples: list[Sample], steps: _StepNumbers) -> None:
    """Attribute the wait for an epoch's first batch to the start of the loader."""
    starting = groups.get(PhaseKind.LOADER)
    if starting is not None:
        begun = {steps.at(sample.at) for sample in starting}
        starting += [s for s in samples if steps.at(s.at) in begun and _in_loader(s.stack)]


def _in_loader(stack: Sequence[Frame]) -> bool:
    return any(in_package(code.co_filename, LOADER) for code, _ in stack)


def kind_of(stack: Sequence[Frame]) -> PhaseKind:
    """Return the kind of phase that a sample shows, by the names and packages of the functions on its stack."""
    for code, _ in stack:
        kind = kind_named(name_of(code), code.co_filename)
        if kind is not PhaseKind.OTHER:
            return kind
    return PhaseKind.OTHER


def name_of(code: CodeType) -> str:
    """Return a function's name, qualified from Python 3.11 on."""
    return getattr(code, "co_qualname", code.co_name)


def _phase_name(kind: PhaseKind, callee: CodeType | None, place: PhaseLines) -> str:
    if kind is not PhaseKind.OTHER:
        return str(kind.value)
    if callee is not None and not is_library(callee.co_filename) and not callee.co_name.startswith("<"):
        return f"{callee.co_name!s}()"
    return "other work"


def rounds_of(phase: SeenPhase, loops: Loops) -> tuple[CodeType, LoopLines] | None:
    """Return the outermost loop of a phase's own that holds most of it, with its function; None without one."""
    held: Counter[tuple[int, CodeType, LoopLines]] = Counter()
    for sample in phase.samples:
        for key in _own_loops(phase.place, sample.stack, loops):
            held[key] += sample.ns
    most = [key for key, ns in held.items() if ns >= MOSTLY * phase.ns]
    if not most:
        return None
    _, code, loop = min(most, key=lambda key: (key[0], key[2].first, -key[2].last))
    return code, loop


def _own_loops(place: PhaseLines, stack: tuple[Frame, ...], loops: Loops) -> set[tuple[int, CodeType, LoopLines]]:
    """Return the loops around a sample from the phase's lines inward, each with its depth."""
    begin = next((k for k, (code, line) in enumerate(stack) if _at(place, code, line)), len(stack))
    held = set()
    for depth, (code, line) in enumerate(stack[begin:]):
        if package_of(code.co_filename) in ("torch", "python"):
            continue
        for loop in loops[code.co_filename].around(line):
            if depth or (place.first <= loop.first and loop.last <= place.last):
                held.add((depth, code, loop))
    return held


def _at(place: PhaseLines, code: CodeType, line: int) -> bool:
    return code is place.code and place.first <= line <= place.last
