"""From a trace that holds several programs, as ranks that were merged into one file, to the trace of each of them."""

from __future__ import annotations

from collections import Counter

import numpy as np
from msgspec.structs import replace

from syncscan.model.arrays import Bool, Int64, Texts, distinct
from syncscan.model.trace import CALLS, HOST, NONE, Flows, Frames, Slices, Trace


def processes(trace: Trace) -> tuple[str, ...]:
    """Pids of the programs in this trace, the one with the most steps first, then the one that launched the most.

    A program is what marks steps, or launches work: a driver's queues have a pid of their own in some traces, and are
    none.
    """
    marked = Counter(trace.tracks[step.track].pid for step in trace.steps)
    launched = _launched(trace)
    found = sorted(marked if len(marked) > 1 else launched, key=lambda pid: (-marked[pid], -launched[pid], pid))
    return tuple(found)


def share_correlations(trace: Trace) -> bool:
    """Whether calls of different processes have one number: which of them launched a kernel can't be told then."""
    s = trace.slices
    calls = np.flatnonzero(trace.is_category(*CALLS) & (s.correlation != NONE))
    _, pids = np.unique(_pids(trace, calls), return_inverse=True)
    both = np.unique(np.stack([s.correlation[calls], pids.astype(np.int64)]), axis=1)
    return bool(len(distinct(both[0])) < both.shape[1])


def of_process(trace: Trace, pid: str) -> Trace:
    """The same trace with the host threads of one process only, and the device work that it launched.

    Device work of no known launch goes with its device: to the process that launched the most on that.
    """
    mine = np.array([track.pid == pid for track in trace.tracks], np.bool_)
    s = trace.slices
    kept = np.where(trace.is_category(*HOST), mine[s.track], True)
    kept[trace.device_rows] = _launched_by(trace, pid)
    number = np.cumsum(kept) - 1
    parent = np.where(s.parent[kept] == NONE, NONE, number[s.parent[kept]])
    columns = {name: getattr(s, name)[kept] for name in Slices.__struct_fields__}
    flows = mine[trace.flows.from_track] & mine[trace.flows.to_track] if len(trace.flows) else np.zeros(0, np.bool_)
    frames = mine[trace.frames.track] if len(trace.frames) else np.zeros(0, np.bool_)
    return replace(
        trace,
        slices=Slices(**{**columns, "parent": parent.astype(s.parent.dtype)}),
        frames=Frames(*(getattr(trace.frames, name)[frames] for name in Frames.__struct_fields__)),
        flows=Flows(*(getattr(trace.flows, name)[flows] for name in Flows.__struct_fields__)),
        steps=tuple(
            replace(step, row=NONE if step.row == NONE else int(number[step.row]))
            for step in trace.steps
            if mine[step.track]
        ),
    )


def _launched(trace: Trace) -> Counter[str]:
    """How much device work each process launched, by pid."""
    calls = trace.device_calls
    by_track = np.bincount(trace.slices.track[calls[calls != NONE]])
    launched: Counter[str] = Counter()
    for track in np.flatnonzero(by_track).tolist():
        launched[trace.tracks[track].pid] += by_track.item(track)
    return launched


def _pids(trace: Trace, rows: Int64) -> Texts:
    found: Texts = np.array([track.pid for track in trace.tracks] or [""])[trace.slices.track[rows]]
    return found


def _launched_by(trace: Trace, pid: str) -> Bool:
    """Which of the device work this process launched; a mask over `device_rows`."""
    calls, device = trace.device_calls, trace.slices.device[trace.device_rows]
    linked = calls != NONE
    owner = np.full(len(calls), "", dtype=object)
    owner[linked] = _pids(trace, calls[linked])
    for number in distinct(device).tolist():
        here = device == number
        most = Counter(owner[here & linked].tolist()).most_common(1)
        owner[here & ~linked] = most[0][0] if most else ""
    found: Bool = owner == pid
    return found
