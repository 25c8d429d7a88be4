"""Convert a recording to the table of lines for a trace's metadata."""

from __future__ import annotations

import importlib
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from syncscan.capture.lines import Frame, RecordedWaits, Sync
from syncscan.capture.stack_frames import RUNNER, naming
from syncscan.facts.program_frames import ModulePaths, shortened
from syncscan.model.libraries import calls_modules
from syncscan.source.loops import Loops

Json = dict[str, Any]

_HERE = Path(__file__).parent
_OURS = tuple(str(_HERE / name) for name in ("lines.py", "waits_by_name.py"))

T = TypeVar("T", bound=Hashable)


class Interned(dict[T, int]):
    """Distinct values in order of first use, each with its index."""

    def __missing__(self, value: T) -> int:
        return self.setdefault(value, len(self))


def lines_table(recording: RecordedWaits) -> Json:
    """Return the table of a recording's syncs, all JSON values.

    It has `frames` ([file as `naming` has it, line, function]), `stacks` (frame indices, innermost first), `modules`
    (the outermost module's class and the names below it, `TinyLM/enc/layers/0`), `syncs` (rows as in
    `model.capture.SyncRecord`), `calls` (timed by name: begin, end, tid, stack) and `looped` (indices of frames within
    a network whose line is in a loop of their function).
    """
    frames: Interned[Frame] = Interned()
    looped, loops = set[int](), Loops()
    stacks: Interned[tuple[int, ...]] = Interned()
    modules: Interned[str] = Interned()
    path_of, named = ModulePaths(), naming()

    def number(stack: Iterable[Frame]) -> int:
        listed = list(stack)
        numbers = tuple(frames[named(file), line, function] for file, line, function in listed)
        for index, (file, line, _) in zip(numbers, in_network(listed), strict=False):
            if index not in looped and loops[file].repeats(line):
                looped.add(index)
        return stacks[numbers]

    rows = []
    syncs, timed = recording.syncs, recording.calls
    for (at, tid, kind, handle, _, module, borrowed), stack in zip(syncs, _stacks(syncs), strict=True):
        stack_id = number(stack) if stack else -1
        module_id = modules[path_of(recording.roots.get(id(module), module), module)] if module is not None else -1
        rows.append([at, tid, kind, stack_id, module_id, handle, tid if borrowed is None else recording.trainer])
    calls = [
        [begin, end, tid, number(stack)]
        for (begin, end, tid, _), stack in zip(timed, _resolve([c[-1] for c in timed]), strict=True)
    ]
    return {
        "source": "callbacks",
        "frames": [list(frame) for frame in frames],
        "stacks": [list(stack) for stack in stacks],
        "modules": list(modules),
        "syncs": rows,
        "calls": calls,
        "looped": sorted(looped),
    }


def in_network(stack: Sequence[Frame]) -> Sequence[Frame]:
    """Return the frames of a stack that a module's call encloses, innermost first; none without one."""
    outermost = max((at for at, (file, _, _) in enumerate(stack) if calls_modules(file)), default=0)
    return stack[:outermost]


def trimmed(stack: Iterable[Frame]) -> list[Frame]:
    """Return the program's frames of a stack: without the callback inside and the script runner outside."""
    program_frames: list[Frame] = []
    for frame in stack:
        file, _, function = frame
        if file == RUNNER:
            break
        if not program_frames and (file in _OURS or function == "fire_callbacks"):
            continue
        program_frames.append(frame)
    return shortened(program_frames)


def _stacks(syncs: Sequence[Sync]) -> list[list[Frame]]:
    """Return the trimmed stack of each sync, its own or the borrowed one."""
    resolved = iter(_resolve([traceback for *_, traceback, _, borrowed in syncs if borrowed is None]))
    return [trimmed(borrowed) if borrowed is not None else next(resolved) for *_, borrowed in syncs]


def _resolve(captured: list[Any]) -> list[list[Frame]]:
    """Return the trimmed stacks of captured tracebacks, which torch symbolizes all at once."""
    resolve = importlib.import_module("torch")._C._profiler.symbolize_tracebacks
    stacks = resolve(captured) if captured else []
    return [trimmed((f["filename"], f["line"], f["name"]) for f in stack) for stack in stacks]
