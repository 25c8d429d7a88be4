"""Choose the process to analyze in a trace of several programs, such as merged ranks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from syncscan.errors import UsageError
from syncscan.model.arrays import Bool, Int64, Texts, distinct
from syncscan.model.step import Lack
from syncscan.model.trace import CALLS, HOST, NONE, Flows, Slices, Trace


def processes(trace: Trace) -> tuple[str, ...]:
    """Return the pids of the programs in this trace, ordered by number of steps, then of launches.

    A program marks steps or launches work. Pids that some traces give to a driver's queues don't count.
    """
    marked = Counter(trace.tracks[step.track].pid for step in trace.steps)
    launched = _launched(trace)
    pids = sorted(marked if len(marked) > 1 else launched, key=lambda pid: (-marked[pid], -launched[pid], pid))
    return tuple(pids)


def share_correlations(trace: Trace) -> bool:
    """Return whether processes share correlations, so that kernels can't be assigned to one of them."""
    s = trace.slices
    calls = np.flatnonzero(trace.is_category(*CALLS) & (s.correlation != NONE))
    _, pids = np.unique(_pids(trace, calls), return_inverse=True)
    both = np.unique(np.stack([s.correlation[calls], pids.astype(np.int64)]), axis=1)
    return bool(len(distinct(both[0])) < both.shape[1])


def of_process(trace: Trace, pid: str) -> Trace:
    """Return the trace reduced to one process: its host threads, and the device work that it launched.

    Device work without a known launch goes to the process that launched most work on its device.
    """
    is_own = np.array([track.pid == pid for track in trace.tracks], np.bool_)
    s = trace.slices
    chosen = np.where(trace.is_category(*HOST), is_own[s.track], True)
    chosen[trace.device_rows] = launched_by(trace, pid)
    number = np.cumsum(chosen) - 1
    parent = np.where(s.parent[chosen] == NONE, NONE, number[s.parent[chosen]])
    columns = {name: getattr(s, name)[chosen] for name in Slices.__struct_fields__}
    flows = is_own[trace.flows.from_track] & is_own[trace.flows.to_track] if len(trace.flows) else np.zeros(0, np.bool_)
    return replace(
        trace,
        slices=Slices(**{**columns, "parent": parent.astype(s.parent.dtype)}),
        frames=trace.frames.select(is_own[trace.frames.track]),
        drawn_frames=trace.drawn_frames.select(is_own[trace.drawn_frames.track]),
        flows=Flows(*(getattr(trace.flows, name)[flows] for name in Flows.__struct_fields__)),
        steps=tuple(
            replace(step, row=NONE if step.row == NONE else int(number[step.row]))
            for step in trace.steps
            if is_own[step.track]
        ),
    )


def _launched(trace: Trace) -> Counter[str]:
    """Return how much device work each process launched, by pid."""
    calls = trace.device_calls
    by_track = np.bincount(trace.slices.track[calls[calls != NONE]])
    launched: Counter[str] = Counter()
    for track in np.flatnonzero(by_track).tolist():
        launched[trace.tracks[track].pid] += by_track.item(track)
    return launched


def _pids(trace: Trace, rows: Int64) -> Texts:
    found: Texts = np.array([track.pid for track in trace.tracks] or [""])[trace.slices.track[rows]]
    return found


def launched_by(trace: Trace, pid: str) -> Bool:
    """Return a mask over `device_rows` of the work that this process launched."""
    calls, device = trace.device_calls, trace.slices.device[trace.device_rows]
    linked = calls != NONE
    owner = np.full(len(calls), "", dtype=object)
    owner[linked] = _pids(trace, calls[linked])
    for number in distinct(device).tolist():
        on_device = device == number
        most = Counter(owner[on_device & linked].tolist()).most_common(1)
        owner[on_device & ~linked] = most[0][0] if most else ""
    own: Bool = owner == pid
    return own


LISTED = 8
"""Other processes that the sentence about them names."""


def apart(trace: Trace, process: str | None = None) -> tuple[Trace, tuple[str, ...], tuple[Lack, ...]]:
    """Return the trace of one process, the pids of all (that one first), and what data is missing.

    A trace with a single process is returned unchanged. Without a `process` (its pid), the one with the most steps
    counts.
    """
    pids = processes(trace)
    if process is not None and process not in pids:
        raise UsageError(
            f"{trace.info.path} has no process {process} that launches work.", f"It has {', '.join(pids)}."
        )
    if len(pids) < 2:
        return trace, (), ()
    pids = tuple(sorted(pids, key=lambda pid: pid != process))
    lacks = [Lack(sentence) for sentence in only_one(pids)]
    if share_correlations(trace):
        lacks.append(Lack("Its processes share launch numbers, so work can't be assigned to a process.", True, True))
    return of_process(trace, pids[0]), pids, tuple(lacks)


def only_one(pids: Sequence[str]) -> tuple[str, ...]:
    """Return the sentence that a report covers the first of several processes; none for a single one."""
    if len(pids) < 2:
        return ()
    chosen, *left = pids
    more = f" and {len(left) - LISTED} more" if len(left) > LISTED else ""
    sentence = f"The trace holds {len(pids)} processes: this report covers process {chosen} only"
    return (f"{sentence} (--process PID chooses another: {', '.join(left[:LISTED])}{more}).",)
