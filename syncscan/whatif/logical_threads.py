"""Find the logical host threads of a trace: tracks of one program that moves between threads.

While autograd runs backward on its own thread, the calling thread is blocked, so both are one sequence. A thread that
launches its own work in between (a loader that copies, a second model) is a sequence of its own.
"""

from __future__ import annotations

import numpy as np

from syncscan.facts.host_threads import autograd_tracks, program_track
from syncscan.model.arrays import Int64, distinct
from syncscan.model.trace import NONE, Trace

_TURNS = 0.1
"""Largest part of a track's slices that may alternate with the step's thread, or during which that thread may begin
slices of its own, if work is handed over to it."""


def find_threads(trace: Trace, tracks: Int64) -> dict[int, int]:
    """Return the logical thread of each of these tracks; the step's own thread is 0.

    Args:
        trace: any trace; without steps, the program's track with most launches and waits is the step's own.
        tracks: track of each launch and each wait.

    Returns:
        Number of the logical thread by track.
    """
    main = _main(trace, tracks)
    threads = {main: 0}
    for track in sorted({*distinct(tracks).tolist()} - {main}):
        threads[track] = 0 if _handed_over(trace, main, track) else max(threads.values()) + 1
    return threads


def _main(trace: Trace, tracks: Int64) -> int:
    if trace.steps:
        return trace.main_steps[0].track
    return program_track(trace, tracks)


def _handed_over(trace: Trace, main: int, other: int) -> bool:
    if main == NONE:
        return False
    if autograd_tracks(trace)[other]:
        return True
    s = trace.slices
    a, b = s.ts[trace.track_rows(main)], s.ts[trace.track_rows(other)]
    begun = np.searchsorted(a, b)
    if np.count_nonzero(np.searchsorted(a, s.end[trace.track_rows(other)]) > begun) > _TURNS * len(b):
        return False
    return bool(np.count_nonzero(np.diff(begun)) <= max(4, _TURNS * len(b)))
