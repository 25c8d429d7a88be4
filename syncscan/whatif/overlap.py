"""Measure how a trace's streams share a device, and move work to other streams as a pipeline would."""

from __future__ import annotations

import itertools
from fnmatch import fnmatchcase

import numpy as np
from msgspec.structs import replace

from syncscan.errors import UsageError
from syncscan.facts.device_work import DeviceWork
from syncscan.facts.period import step_intervals, work_of_steps
from syncscan.model.arrays import Bool, Int64
from syncscan.model.interval import union
from syncscan.model.projection import Overlap
from syncscan.model.slice_names import is_step
from syncscan.model.trace import Category, Trace
from syncscan.whatif.launches import Launches

NOTABLE = 0.01
"""Least part of a device's work for a stream to be listed."""


def overlaps(trace: Trace) -> tuple[Overlap, ...]:
    """Return for each pair of streams of a device how long each worked, and how long both did, per recorded step.

    All recorded work counts, including that launched before the recording: a device behind its host does it in these
    steps. The number of steps is scaled by the work of the recorded ones.
    """
    steps = step_intervals(trace)
    s, rows = trace.slices, trace.device_rows
    launched = s.dur[work_of_steps(trace, steps)]
    if not launched.any():
        return ()
    count = len(steps) * float(s.dur[rows].sum()) / float(launched.sum())
    pairs: list[Overlap] = []
    work = trace.cached(DeviceWork)
    for device in work.devices:
        busy = {k: (own.busy_from, own.busy_to) for k, own in work.by_stream(device).items()}
        pairs += _pairs(device, busy, count)
    return tuple(pairs)


def _pairs(device: int, busy: dict[int, tuple[Int64, Int64]], count: float) -> list[Overlap]:
    work = {k: float((ends - starts).sum()) / count / 1e3 for k, (starts, ends) in busy.items()}
    least = NOTABLE * sum(work.values())
    notable = [k for k in busy if work[k] >= least]
    return [
        Overlap(device, (a, b), (work[a], work[b]), _shared(busy[a], busy[b]) / count / 1e3)
        for a, b in itertools.combinations(notable, 2)
    ]


def _shared(a: tuple[Int64, Int64], b: tuple[Int64, Int64]) -> float:
    """Return the length of the intersection of two unions of intervals: both lengths minus that of their union."""
    starts, ends = np.concatenate([a[0], b[0]]), np.concatenate([a[1], b[1]])
    order = np.argsort(starts, kind="stable")
    first, last = union(starts[order], ends[order])
    return float((a[1] - a[0]).sum() + (b[1] - b[0]).sum() - (last - first).sum())


def launched_in(trace: Trace, launches: Launches, glob: str) -> Bool:
    """Return which launches belong to the scopes that match: those on any thread while such a scope is open."""
    s = trace.slices
    scopes = np.flatnonzero(trace.is_category(Category.ANNOTATION) & trace.named(lambda n: fnmatchcase(n, glob)))
    if not len(scopes):
        names = {trace.name(int(r)) for r in np.flatnonzero(trace.is_category(Category.ANNOTATION))}
        known = sorted(n for n in names if not is_step(n))[:8]
        raise UsageError(f"No scope of this trace is named {glob!r}.", f"It has {', '.join(known) or 'none'}.")
    inside = np.zeros(len(launches), np.bool_)
    for row in scopes.tolist():
        inside |= (launches.issued >= s.ts[row]) & (launches.issued < s.end[row])
    return inside


def ahead(launches: Launches, moved: Bool) -> Launches:
    """Return the launches with the moved ones on streams of their own, where they don't wait for the others."""
    count = len(launches.streams)
    stream = np.where(moved, launches.stream + count, launches.stream)
    by_stream = tuple(
        (launches.issued[stream == k], np.maximum.accumulate(launches.end[stream == k])) for k in range(2 * count)
    )
    return replace(launches, streams=launches.streams * 2, stream=stream, by_stream=by_stream)
