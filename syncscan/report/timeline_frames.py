"""Pack the Python frames of the steps' thread, for the report's picture of the host's time in view.

They are no lane of the timeline: 30 rows of libraries would hide what the thread waits for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from syncscan.facts.paths import innermost_until
from syncscan.model.arrays import Bool, largest
from syncscan.model.interval import Interval
from syncscan.model.libraries import is_library
from syncscan.model.slice_names import frame_parts
from syncscan.model.trace import MOST_DRAWN_FRAMES, NONE, Frames, Trace
from syncscan.report.printable import shown
from syncscan.report.timeline_lanes import pack

MAX_FRAMES = 20_000
"""Most frames in a report, the longest ones: 0.2 MB. A picture draws what takes 0.05% of its width, thus no more than
2,000 beside one another."""
MAX_TEXTS = 200_000
"""Characters that all names together may take."""
PROGRAM, LIBRARY = 0, 1
"""Whose function a frame is: the program's, or another one."""

_BUILT_IN = re.compile(
    r"<(?P<kind>built-in (?:method|function)) (?P<function>[^ >]+)(?P<of> of .+?)?(?: at 0x[0-9a-fA-F]+)?>"
)
"""A function without Python code. Its object's address is left out: calls are summed up over a type's objects."""
_MODULE = "nn.Module: "


def python_frames(trace: Trace, track: int, intervals: Sequence[Interval], extent: Interval) -> dict[str, Any] | None:
    """Return the frames of a thread as columns, in ns since the begin of `extent`; None without any.

    What calls the program's first function, such as a script runner, is left out.
    """
    of_track = trace.drawn_frames.select(trace.drawn_frames.track == track)
    frames = of_track.select(_reaches_into(of_track, intervals) & ~_starts_program(trace, of_track))
    if not len(frames):
        return None
    longest = frames.select(largest(frames.dur, MAX_FRAMES))
    start = np.clip(longest.ts, extent.begin, extent.end)
    numbers, which = np.unique(longest.name, return_inverse=True)
    limit = max(12, min(200, MAX_TEXTS // len(numbers)))
    texts: dict[tuple[str, str, int], int] = {}
    name = [texts.setdefault(_texts(trace.strings[number], limit), len(texts)) for number in numbers.tolist()]
    return {
        "start": pack(start - extent.begin, delta=True),
        "dur": pack(np.clip(longest.end, start, extent.end) - start),
        "name": pack(np.array(name, np.int64)[which.reshape(-1)]),
        "texts": list(texts),
        "least": _least(trace.drawn_frames, MOST_DRAWN_FRAMES, _least(frames, MAX_FRAMES, 0)),
    }


def _reaches_into(frames: Frames, intervals: Sequence[Interval]) -> Bool:
    inside = np.zeros(len(frames), np.bool_)
    for begin, end in intervals:
        inside |= (frames.ts < end) & (frames.end > begin)
    return inside


def _starts_program(trace: Trace, frames: Frames) -> Bool:
    """Mark the frames outside of the program's own that lead to one: of runpy, a launcher, a profiler, a thread."""
    own = _is_programs(trace, frames.name)
    around = innermost_until(frames.track, frames.end, np.maximum(frames.end, frames.ts + 1)).tolist()
    within, leads = own.tolist(), own.tolist()
    for row, caller in enumerate(around):
        within[row] = within[row] or (caller != NONE and within[caller])
    for row in range(len(around) - 1, -1, -1):
        if around[row] != NONE and leads[row]:
            leads[around[row]] = True
    starts: Bool = np.array(leads, np.bool_) & ~np.array(within, np.bool_)
    return starts


def _is_programs(trace: Trace, names: Any) -> Bool:
    """Return which of these numbers name a function of the program's own files."""
    numbers, which = np.unique(names, return_inverse=True)
    own = np.array([_owner(trace.strings[number]) == PROGRAM for number in numbers.tolist()], np.bool_)
    return own[which.reshape(-1)]


def _owner(name: str) -> int:
    parts = frame_parts(name)
    return LIBRARY if parts is None or is_library(parts[0]) else PROGRAM


def _texts(name: str, limit: int) -> tuple[str, str, int]:
    """Return a frame's function, its place, and whose it is."""
    if parts := frame_parts(name):
        file, line, function = parts
        return shown(function, limit), shown(f"{file}:{line}", limit), _owner(name)
    if built_in := _BUILT_IN.fullmatch(name):
        return shown(built_in["function"], limit), shown(f"{built_in['kind']}{built_in['of'] or ''}", limit), LIBRARY
    is_module = name.startswith(_MODULE)
    return shown(name.removeprefix(_MODULE), limit), "nn.Module" if is_module else "", LIBRARY


def _least(frames: Frames, most: int, otherwise: int) -> int:
    """Return how long the shortest of the `most` longest frames is, ns; `otherwise` where there are fewer."""
    if len(frames) < most:
        return otherwise
    return max(otherwise, int(np.partition(frames.dur, len(frames) - most)[len(frames) - most]))
