"""Find ranges that mark steps, where neither the profiler nor a serving framework named them, and name them as it does.

Programs under Nsight Systems mark their own: `step 12`, `iteration_3`, `train_step`, Lightning's
`[pl][profile]run_training_batch`. A range counts that repeats, is called a step, and contains nearly all launches.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from syncscan.facts.chosen_process import processes
from syncscan.load.repetition import LEAST
from syncscan.load.steps import with_steps
from syncscan.model.arrays import Bool, Int64
from syncscan.model.slice_names import STEP, is_optimizer
from syncscan.model.step_marks import FoundBy
from syncscan.model.trace import NONE, Category, Trace

_CALLED = re.compile(r"(step|iter|iteration|batch)(?![a-z])", re.IGNORECASE)
_OTHER = re.compile(r"optim|micro|epoch|warmup", re.IGNORECASE)
_NUMBER = re.compile(r"\d{1,18}")
_CONTAINED = 0.8
"""Least part of the launches that ranges must contain to be steps: a part of a step, such as its forward pass, starts
at most two thirds of its work."""


def with_named_steps(trace: Trace) -> Trace:
    """Return the trace with the ranges that are called steps as its steps, unless it has marked ones."""
    if trace.steps_found.by in (FoundBy.PROFILER, FoundBy.FRAMEWORK):
        return trace
    together = _called_steps(trace)
    marked = [best for pid in processes(trace) if (best := _best(trace, pid, together))] if together else []
    return _renamed(trace, marked) if marked else trace


def _called_steps(trace: Trace) -> dict[str, list[int]]:
    """Return the names of ranges that are called steps, those that only differ in numbers together."""
    together: dict[str, list[int]] = {}
    for number in trace.names_of(Category.ANNOTATION):
        name = trace.strings[number]
        if _CALLED.search(name) and not _OTHER.search(name) and not is_optimizer(name):
            together.setdefault(_NUMBER.sub("*", name), []).append(number)
    return together


def _best(trace: Trace, pid: str, together: dict[str, list[int]]) -> tuple[str, Int64] | None:
    """Return the pattern and the ranges that mark a process's steps; None if none contain enough of its launches."""
    of_process = np.array([track.pid == pid for track in trace.tracks], np.bool_)
    calls = trace.device_calls[trace.device_calls != NONE]
    launched = np.sort(trace.slices.ts[calls[of_process[trace.slices.track[calls]]]])
    candidates = [(pattern, _in_turn(trace, names, of_process)) for pattern, names in sorted(together.items())]
    parts = [_part_of(launched, trace.slices.ts[rows], trace.slices.end[rows]) for _, rows in candidates]
    return candidates[int(np.argmax(parts))] if max(parts) >= _CONTAINED else None


def _in_turn(trace: Trace, names: list[int], of_process: Bool) -> Int64:
    """Return the ranges of these names on the process's thread with most of them; none if they are few, or overlap."""
    s, (rows, of_rows) = trace.slices, trace.rows_of(Category.ANNOTATION)
    rows = rows[np.isin(of_rows, names) & of_process[s.track[rows]]]
    rows = rows[s.track[rows] == np.bincount(s.track[rows]).argmax()] if len(rows) else rows
    overlap = len(rows) < LEAST or (s.ts[rows[1:]] < s.end[rows[:-1]]).any()
    return rows[:0] if overlap else rows


def _part_of(launched: Int64, begins: Int64, ends: Int64) -> float:
    within = launched.searchsorted(ends) - launched.searchsorted(begins)
    return float(within.sum()) / len(launched) if len(launched) else 0.0


def _renamed(trace: Trace, marked: Sequence[tuple[str, Int64]]) -> Trace:
    """Return the trace with these ranges named as torch.profiler names steps."""
    names, strings = trace.slices.name.copy(), list(trace.strings)
    for pattern, rows in marked:
        names[rows] = len(strings) + np.arange(len(rows))
        strings += [f"{STEP}#{number}" for number in _numbers(trace, pattern, rows).tolist()]
    patterns = " and ".join(sorted({pattern for pattern, _ in marked}))
    info = replace(trace.info, warnings=(*trace.info.warnings, f"Its ranges named {patterns} count as steps."))
    return with_steps(replace(trace, info=info, strings=tuple(strings), slices=replace(trace.slices, name=names)))


def _numbers(trace: Trace, pattern: str, rows: Int64) -> Int64:
    """Return the numbers of steps: those in their ranges' names if these ascend, else as they come."""
    if pattern.count("*") == 1:
        stated: Int64 = np.array([int(_NUMBER.findall(trace.name(row))[0]) for row in rows.tolist()], np.int64)
        if (np.diff(stated) > 0).all():
            return stated
    return np.arange(len(rows))
