"""Find autograd: its threads among the program's, by what they do, its passes, and the forward ops of backward ones.

Names don't suffice: Linux traces of torch up to 2023 call every thread `(python)`, and threads on Windows still have no
name.
"""

from __future__ import annotations

import numpy as np

from syncscan.model.arrays import Bool, Int64, among, distinct
from syncscan.model.slice_names import (
    is_autograd_thread,
    is_backward,
    is_engine,
    is_loader,
    is_optimizer,
    is_service_thread,
    is_step,
)
from syncscan.model.trace import HOST, NONE, Category, Trace, once

ENGINE_SHARE = 0.3
"""Least share of engine ranges among the outermost ranges of an autograd thread; FSDP and DDP run other ranges there. A
choice: of 141 such threads in our recordings, known by name, the lowest share is 0.52 (DDP)."""

BUSIER = 2.5
"""How many times as many calls as the program's thread autograd's may make: a backward pass has about twice those of
its forward pass. A choice."""


@once
def autograd_tracks(trace: Trace) -> Bool:
    """Return a mask over `Trace.tracks` of autograd's threads, which run backward passes and nothing else.

    Such a thread has autograd's name, or nearly all of its ranges are the engine's, and none marks a step, a loader or
    an optimizer, or is an op that autograd records. A program's own thread that runs a backward pass doesn't count.
    """
    named = np.array([is_autograd_thread(track.thread) for track in trace.tracks], np.bool_)
    runs = np.zeros(len(trace.tracks), np.bool_)
    runs[trace.slices.track[nodes(trace)]] = True
    runs[trace.slices.track[np.flatnonzero(_of_backward(trace))]] = True
    mask: Bool = named | (runs & _only_engine(trace, np.flatnonzero(runs & ~named)))
    return mask


@once
def _of_backward(trace: Trace) -> Bool:
    """Return which slices autograd marks as backward: they name a forward thread (`Fwd thread id`)."""
    return np.asarray((trace.slices.fwd_thread > 0) & (trace.slices.sequence != NONE), np.bool_)


def _only_engine(trace: Trace, tracks: Int64) -> Bool:
    """Return a mask over all threads: which of `tracks` do only the engine's work."""
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
    """Return whether only a program's own thread has ranges of this name, except inside an engine's node."""
    return is_step(name) or is_loader(name) or is_optimizer(name)


def program_track(trace: Trace, tracks: Int64) -> int:
    """Return the program's thread among the threads of these calls: the one with most calls; NONE without calls.

    Threads of autograd and of services count only if there is no other. A thread that runs an optimizer comes before
    those that don't, such as one that fetches batches ahead; and a process's first thread before others that make up to
    `BUSIER` as many calls, as autograd's do, which only a name or a range tells.
    """
    if not len(tracks):
        return NONE
    counts = np.bincount(tracks, minlength=len(trace.tracks))
    foreign = autograd_tracks(trace) | np.array([is_service_thread(t.thread) for t in trace.tracks], np.bool_)
    optimizes = np.zeros(len(counts), np.bool_)
    optimizes[trace.slices.track[trace.where(is_optimizer, *HOST)]] = True
    first = np.array([track.tid == track.pid for track in trace.tracks], np.bool_) & (counts * BUSIER >= counts.max())
    ranked = sorted(
        distinct(tracks).tolist(), key=lambda t: (foreign[t], not optimizes[t], not first[t], -counts[t], t)
    )
    return int(ranked[0])


@once
def nodes(trace: Trace) -> Int64:
    """Return the rows of the engine's ranges around graph nodes, ascending."""
    return trace.where(is_engine, *HOST)


@once
def node_begins(trace: Trace) -> Int64:
    return np.sort(trace.slices.ts[nodes(trace)])


def forward_ops(trace: Trace, backward: Int64) -> Int64:
    """Return the row of each op's forward op, NONE without a matching sequence number.

    Both have the same sequence number. If several forward ops have it, the last to begin before the backward op counts
    (torch/csrc/profiler/collection.cpp, generateForwardBackwardLink).
    """
    s, (ops, _) = trace.slices, trace.rows_of(Category.CPU_OP)
    forward = ops[(s.sequence.take(ops) != NONE) & (s.fwd_thread.take(ops) <= 0)]
    forward = forward[among(s.sequence[forward], s.sequence[backward])]
    rows = np.concatenate([forward, backward])
    is_forward = np.arange(len(rows)) < len(forward)
    order = np.lexsort((is_forward, s.ts[rows], s.sequence[rows]))
    last = np.maximum.accumulate(np.where(is_forward[order], np.arange(len(rows)), NONE))
    linked = ~is_forward[order] & (last != NONE) & (s.sequence[rows[order]] == s.sequence[rows[order[last]]])
    forward_of = np.full(len(rows), NONE, np.int64)
    forward_of[order[linked]] = rows[order[last[linked]]]
    return forward_of[len(forward) :]
