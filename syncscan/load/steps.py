"""Find the steps of a linked Trace: marked by the profiler, a framework or a scope, or by repetition."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

import msgspec
import numpy as np

from syncscan.errors import UsageError
from syncscan.load.repetition import Repetition, repeated_calls
from syncscan.model.arrays import Int64, grouped, median
from syncscan.model.slice_names import step_number
from syncscan.model.step_marks import FoundBy, StepMark, StepsFound, step_mark
from syncscan.model.trace import NONE, Category, Step, Trace

_RANGES = (Category.ANNOTATION, Category.CPU_OP)
"""Categories of ranges; torch 1.9 and older have no category of annotations."""
_NONE_THERE = np.zeros(0, np.int64)
LAUNCHED = 0.5
"""Least part of the launches that must lie in a framework's marks for them to be steps: a trace with a few marks beside
other work doesn't consist of them. A choice: in our two traces of serving frameworks it is 1."""


def with_steps(trace: Trace, scope: str | None = None, as_one_step: bool = False) -> Trace:
    """Return the trace with its steps: those that it marks, or every outermost range in the `scope` (a glob)."""
    if as_one_step:
        return msgspec.structs.replace(trace, steps=(), steps_found=StepsFound(asked=True))
    if scope is not None:
        return msgspec.structs.replace(
            trace, steps=_of_scope(trace, scope), steps_found=StepsFound(FoundBy.SCOPE, scope)
        )
    if steps := _of_profiler(trace):
        return msgspec.structs.replace(trace, steps=steps, steps_found=StepsFound(FoundBy.PROFILER))
    if steps := _of_framework(trace):
        frameworks = sorted({step.mark.framework for step in steps if step.mark})
        source = StepsFound(FoundBy.FRAMEWORK, " and ".join(frameworks))
        return msgspec.structs.replace(trace, steps=steps, steps_found=source)
    # A dry run marks its own steps, and its clock only counts: repetition before the first one isn't a step.
    if not trace.info.capture.pretended and (repetition := repeated_calls(trace)):
        source = StepsFound(FoundBy.REPETITION, calls=repetition.calls)
        return msgspec.structs.replace(trace, steps=_of_repetition(repetition), steps_found=source)
    return msgspec.structs.replace(trace, steps=(), steps_found=StepsFound())


def with_chosen_steps(trace: Trace, first: int | None, last: int | None) -> Trace:
    """Return the trace with some of its steps, counted from 0."""
    steps = trace.main_steps
    count = len(steps)
    begin, end = 0 if first is None else first, count if last is None else last
    if not 0 <= begin < end <= count:
        range_text = f"{'' if first is None else first}:{'' if last is None else last}"
        there = f"It has {count}, counted from 0: the last is {count - 1}:{count}." if count else "It has none."
        raise UsageError(f"{trace.info.path} has no steps {range_text}.", there)
    source = msgspec.structs.replace(trace.steps_found, chosen=(begin, end), count=count)
    return msgspec.structs.replace(trace, steps=steps[begin:end], steps_found=source)


def _of_profiler(trace: Trace) -> tuple[Step, ...]:
    s = trace.slices
    rows = _ranges(trace, lambda name: step_number(name) is not None)
    steps = [
        Step(step_number(trace.name(r)) or 0, int(s.track[r]), int(s.ts[r]), int(s.end[r]), r) for r in rows.tolist()
    ]
    steps = [
        msgspec.structs.replace(step, mark=mark) for step, mark in zip(steps, _marks_in(trace, steps), strict=True)
    ]
    return _finished(tuple(sorted(steps, key=lambda step: (step.ts, step.number))), trace)


def _finished(steps: tuple[Step, ...], trace: Trace) -> tuple[Step, ...]:
    """Return the steps without the one that a script's end cut short, unless it is the only one."""
    cut = trace.info.capture.unfinished_step
    return tuple(step for step in steps if step.number != cut) or steps


def _marks_in(trace: Trace, steps: Sequence[Step]) -> list[StepMark | None]:
    """Return for each step the framework's mark in it; None without one, or with several."""
    s = trace.slices
    marks = _outermost(trace, _ranges(trace, lambda name: step_mark(name) is not None))
    of_track = {track: (marks[places], s.ts[marks[places]]) for track, places in grouped(s.track[marks])}
    marks_of: list[StepMark | None] = []
    for step in steps:
        own, times = of_track.get(step.track, (_NONE_THERE, _NONE_THERE))
        first, behind = times.searchsorted([step.ts, step.end]).tolist()
        marks_of.append(step_mark(trace.name(int(own[first]))) if behind - first == 1 else None)
    return marks_of


def _of_scope(trace: Trace, scope: str) -> tuple[Step, ...]:
    rows = _outermost(trace, _ranges(trace, lambda name: name == scope or fnmatchcase(name, scope)))
    if not len(rows):
        names = sorted({trace.name(r) for r in np.flatnonzero(trace.is_category(Category.ANNOTATION)).tolist()})
        import difflib

        near = difflib.get_close_matches(scope.strip("*"), names, n=5, cutoff=0.3)
        listed = [*near, *(name for name in names if name not in near)]
        more = f" and {len(listed) - 5} more" if len(listed) > 5 else ""
        hint = f"It has {', '.join(listed[:5])}{more}." if listed else "It has no record_function scopes."
        raise UsageError(f"No range in {trace.info.path} is called {scope!r}.", hint)
    return _number_steps(trace, rows)


def _of_framework(trace: Trace) -> tuple[Step, ...]:
    rows = _outermost(trace, _ranges(trace, lambda name: step_mark(name) is not None))
    steps = _number_steps(trace, rows)
    return steps if steps and _share_of_launches(trace, steps) >= LAUNCHED else ()


def _share_of_launches(trace: Trace, steps: Sequence[Step]) -> float:
    at = np.sort(trace.launched_at[trace.calls_of(trace.device_rows) != NONE], kind="stable")
    times = np.array([(step.ts, step.end) for step in steps], np.int64).reshape(-1, 2)
    first, behind = at.searchsorted(times).T
    return float((behind - first).sum()) / len(at) if len(at) else 1.0


def _ranges(trace: Trace, wanted: Callable[[str], bool]) -> Int64:
    return trace.where(wanted, *_RANGES)


def _outermost(trace: Trace, rows: Int64) -> Int64:
    chosen = set(rows.tolist())
    return np.array([r for r in rows.tolist() if chosen.isdisjoint(trace.ancestors(r))], np.int64)


def _number_steps(trace: Trace, rows: Int64) -> tuple[Step, ...]:
    """Return the ranges of the thread with most of them as steps, each up to the next one's begin.

    Time between two ranges belongs to the step before it: a server samples and copies its tokens back after its range.
    A pause longer than the usual step doesn't; numbers skip one there, as if a step were missing.
    """
    s = trace.slices
    tracks = Counter(s.track[rows].tolist())
    rows = rows[s.track[rows] == max(sorted(tracks), key=tracks.__getitem__, default=NONE)]
    begins, ends = s.ts[rows], s.end[rows]
    pauses = begins[1:] - ends[:-1]
    usual = median(np.diff(begins)) if len(rows) > 1 else 0.0
    follows = pauses <= usual
    pause = max(int(median(pauses[follows])), 0) if follows.any() else 0
    until = np.append(np.where(follows, begins[1:], ends[:-1] + pause), ends[-1:] + pause)
    numbers = np.arange(len(rows)) + np.append(np.zeros(min(len(rows), 1), np.int64), np.cumsum(~follows))
    track = int(s.track[rows[0]]) if len(rows) else NONE
    return tuple(
        Step(number, track, begin, end, row, step_mark(trace.name(row)))
        for number, begin, end, row in zip(
            numbers.tolist(), begins.tolist(), until.tolist(), rows.tolist(), strict=True
        )
    )


def _of_repetition(repetition: Repetition) -> tuple[Step, ...]:
    bounds = repetition.bounds
    return tuple(
        Step(number, repetition.track, begin, end) for number, (begin, end) in enumerate(itertools.pairwise(bounds))
    )
