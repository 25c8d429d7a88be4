"""From what the threads of a trace do to whose they are: autograd's, or the program's own.

Names don't tell it everywhere: Linux traces of torch up to 2023 call every thread `(python)`, and on Windows none has a
name, today too.
"""

from __future__ import annotations

import numpy as np

from syncscan.facts.engine import nodes
from syncscan.model.arrays import Bool, Int64, distinct
from syncscan.model.names import is_autograd_thread, is_backward, is_loader, is_optimizer, is_service_thread, is_step
from syncscan.model.trace import HOST, NONE, Category, Trace, once

ENGINE_SHARE = 0.3
"""A thread of autograd's runs its engine in at least this part of its outermost ranges; beside them stand what FSDP and
DDP do there. A choice: of 141 such threads in our recordings, known by their names, the least has 0.52 (DDP)."""


@once
def autograd_tracks(trace: Trace) -> Bool:
    """A mask over `Trace.tracks`: the threads of autograd's engine, on which backward passes run and nothing else.

    They are called so, or nearly all that they do is the engine's: nothing there is a step's, a loader's or an
    optimizer's, and no op is one that autograd follows. A program that runs its backward pass itself is none.
    """
    named = np.array([is_autograd_thread(track.thread) for track in trace.tracks], np.bool_)
    runs = np.zeros(len(trace.tracks), np.bool_)
    runs[trace.slices.track[nodes(trace)]] = True
    runs[trace.slices.track[np.flatnonzero(_of_backward(trace))]] = True
    mask: Bool = named | (runs & _only_engine(trace, np.flatnonzero(runs & ~named)))
    return mask


@once
def _of_backward(trace: Trace) -> Bool:
    """Which slices autograd says belong to a backward pass: they name the forward thread (`Fwd thread id`)."""
    return np.asarray((trace.slices.fwd_thread > 0) & (trace.slices.sequence != NONE), np.bool_)


def _only_engine(trace: Trace, tracks: Int64) -> Bool:
    """Which of these threads do nothing but the engine's work; a mask over all."""
    mask, s = np.zeros(len(trace.tracks), np.bool_), trace.slices
    for track in tracks.tolist():
        run = trace.track_rows(track)
        rows = np.arange(run.start, run.stop)
        rows = rows[(s.parent[run] == NONE) & np.isin(s.category[run], (Category.CPU_OP, Category.ANNOTATION))]
        backward = trace.called(rows, is_backward) | _of_backward(trace)[rows]
        followed = (s.sequence[rows] != NONE) & ~backward
        programs = followed.any() or trace.called(rows, _is_programs).any()
        mask[track] = not programs and np.count_nonzero(backward) >= ENGINE_SHARE * len(rows)
    return mask


def _is_programs(name: str) -> bool:
    """Whether only a program's own thread has a range of this name, but for what an engine's node calls."""
    return is_step(name) or is_loader(name) or is_optimizer(name)


def program_track(trace: Trace, tracks: Int64) -> int:
    """The thread of the program that these calls are of: that with the most of them; NONE without any.

    Autograd's threads and those of services are others', unless there is no other; one that runs an optimizer is the
    program's before any that doesn't, as one that fetches batches ahead.

    Args:
        trace: any trace.
        tracks: that of each call.
    """
    if not len(tracks):
        return NONE
    counts = np.bincount(tracks, minlength=len(trace.tracks))
    others = autograd_tracks(trace) | np.array([is_service_thread(t.thread) for t in trace.tracks], np.bool_)
    optimizes = np.zeros(len(counts), np.bool_)
    optimizes[trace.slices.track[trace.where(is_optimizer, *HOST)]] = True
    ranked = sorted(distinct(tracks).tolist(), key=lambda t: (others[t], not optimizes[t], -counts[t], t))
    return int(ranked[0])


__all__ = ["autograd_tracks", "program_track"]
