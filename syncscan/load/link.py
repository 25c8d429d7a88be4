"""From unordered columns to a linked Trace: sorts rows, nests host slices, finds the steps."""

from __future__ import annotations

import re

import numpy as np

from syncscan.model.trace import (
    HOST,
    NONE,
    Category,
    Flows,
    Frames,
    Int32,
    Int64,
    Slices,
    Step,
    Trace,
    TraceInfo,
    Track,
)

_SLACK_NS = 2
_STEP = re.compile(r"ProfilerStep#?(\d+)")


def link(
    info: TraceInfo, strings: tuple[str, ...], tracks: tuple[Track, ...], slices: Slices, frames: Frames, flows: Flows
) -> Trace:
    """Order the rows, nest the host slices and find the steps; the arrays may come in any order."""
    ordered = _nested(_sorted_slices(slices))
    return Trace(
        info=info,
        strings=strings,
        tracks=tracks,
        slices=ordered,
        frames=_sorted_frames(frames),
        flows=flows,
        steps=_steps(strings, ordered),
    )


def _sorted_slices(s: Slices) -> Slices:
    order = np.lexsort((s.category, -s.dur, s.ts, s.track))
    return Slices(**{name: getattr(s, name)[order] for name in Slices.__slots__})


def _sorted_frames(f: Frames) -> Frames:
    order = np.lexsort((-f.dur, f.ts, f.track))
    return Frames(**{name: getattr(f, name)[order] for name in Frames.__slots__})


def _nested(s: Slices) -> Slices:
    parent = np.full(len(s), NONE, dtype=np.int32)
    host = np.flatnonzero(np.isin(s.category, np.array(HOST, dtype=np.int8)))
    if len(host):
        parent[host] = _parents(host, s.track[host], s.ts[host], s.end[host])
    columns = {name: getattr(s, name) for name in Slices.__slots__}
    return Slices(**{**columns, "parent": parent})


def _parents(rows: Int64, track: Int32, ts: Int64, end: Int64) -> Int32:
    """The innermost slice around each, by time; a slice that outlives the one it began in belongs to that one's parent.

    The rows are sorted by (track, ts, -dur). One pass with a stack a track: linear, and right also for traces whose
    slices overlap without nesting.
    """
    out = np.full(len(rows), NONE, dtype=np.int32)
    stack: list[int] = []
    on = NONE
    starts, ends, tracks, ids = ts.tolist(), end.tolist(), track.tolist(), rows.tolist()
    for i in range(len(ids)):
        if tracks[i] != on:
            on, stack = tracks[i], []
        while stack and (ends[stack[-1]] <= starts[i] or ends[stack[-1]] + _SLACK_NS < ends[i]):
            stack.pop()
        if stack:
            out[i] = ids[stack[-1]]
        stack.append(i)
    return out


def _steps(strings: tuple[str, ...], s: Slices) -> tuple[Step, ...]:
    numbers = {i: int(m.group(1)) for i, text in enumerate(strings) if (m := _STEP.fullmatch(text))}
    if not numbers:
        return ()
    named = np.isin(s.name, np.fromiter(numbers, dtype=np.int32))
    rows = np.flatnonzero(named & np.isin(s.category, np.array([Category.ANNOTATION, Category.CPU_OP], dtype=np.int8)))
    steps = [
        Step(numbers[int(s.name[r])], int(s.track[r]), int(s.ts[r]), int(s.ts[r] + s.dur[r]), int(r)) for r in rows
    ]
    return tuple(sorted(steps, key=lambda step: (step.ts, step.number)))
