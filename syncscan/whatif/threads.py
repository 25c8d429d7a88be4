"""From a Trace to its logical host threads: which tracks are one program that moves from thread to thread.

While autograd runs the backward pass on its own thread, the thread that called it is blocked: the two are one sequence.
A thread that launches work of its own in between (a loader that copies, a second model) is a sequence of its own.
"""

from __future__ import annotations

import numpy as np

from syncscan.facts.host_threads import autograd_tracks, program_track
from syncscan.model.arrays import Int64, distinct
from syncscan.model.trace import NONE, Trace

_TURNS = 0.1
"""A track that takes turns with the step's thread for less than this part of its slices is handed over to."""


def find_threads(trace: Trace, tracks: Int64) -> dict[int, int]:
    """Number the logical threads of these tracks; the step's own thread is 0.

    Args:
        trace: where it marks no steps, the program's track with the most launches and waits is the step's own.
        tracks: that of each launch and of each wait.

    Returns:
        track → number of its logical thread.
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
    turns = np.count_nonzero(np.diff(np.searchsorted(a, b)))
    return bool(turns <= max(4, _TURNS * len(b)))
