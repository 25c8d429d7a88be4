"""From a Trace to its device work as the replay needs it: who launched it, and what it had to wait for on its stream."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from syncscan.model.trace import NONE, Category, Int64, Trace

Float64 = npt.NDArray[np.float64]

USUAL_GAP_NS = 1_000.0
"""Between two kernels of one stream, where the trace has no pair to measure it on."""
USUAL_LATENCY_NS = 2_000.0
"""From a launch's return to the start on an idle stream, where the trace has none to measure it on."""
LONG_NS = 20_000
"""A gap this long between queued work isn't the device's own: it isn't used to find the usual gap."""


@dataclass(frozen=True, eq=False, slots=True)
class Launches:
    """Kernels, copies and memsets with the call that launched them, in the order of the calls; times in ns.

    `gap` follows the work before it on its stream, when the stream is busy; `latency` follows the return of its call,
    when the stream is idle (negative where it starts before the call returns).
    """

    streams: tuple[tuple[int, int], ...]
    rows: Int64
    calls: Int64
    tracks: Int64
    stream: Int64
    issued: Int64
    returned: Int64
    start: Int64
    end: Int64
    gap: Float64
    latency: Float64
    usual_gap: float
    usual_latency: float

    def __len__(self) -> int:
        return len(self.rows)

    def done(self, stream: int, before: int) -> int:
        """When all that was launched on this stream before a time ended, in ns; 0 if there is none."""
        mine = np.flatnonzero((self.stream == stream) & (self.issued < before))
        return int(self.end[mine].max()) if len(mine) else 0


def find_launches(trace: Trace) -> Launches:
    """Join device work with its launching calls; work whose launch isn't in the trace is left out."""
    rows, calls = _joined(trace)
    s = trace.slices
    order = np.lexsort((s.ts[rows], s.ts[calls]))
    rows, calls = rows[order], calls[order]
    keys, stream = np.unique(
        np.stack([s.device[rows], s.stream[rows]], axis=1).astype(np.int64), axis=0, return_inverse=True
    )
    stream = stream.reshape(-1).astype(np.int64)
    issued, returned = s.ts[calls], s.end[calls]
    gap, queued = _gaps(stream, s.ts[rows], s.end[rows], returned, calls)
    latency = (s.ts[rows] - returned).astype(np.float64)
    usual_gap = _median(gap[queued & (gap < LONG_NS)], USUAL_GAP_NS)
    usual_latency = _median(latency[~queued & (latency < LONG_NS)], USUAL_LATENCY_NS)
    return Launches(
        streams=tuple((int(d), int(st)) for d, st in keys),
        rows=rows,
        calls=calls,
        tracks=s.track[calls].astype(np.int64),
        stream=stream,
        issued=issued,
        returned=returned,
        start=s.ts[rows],
        end=s.end[rows],
        gap=np.where(queued, gap, usual_gap),
        latency=np.where(queued, usual_latency, latency),
        usual_gap=usual_gap,
        usual_latency=usual_latency,
    )


def _joined(trace: Trace) -> tuple[Int64, Int64]:
    s = trace.slices
    work = trace.device_rows
    calls = np.flatnonzero(trace.is_category(Category.RUNTIME, Category.DRIVER) & (s.correlation != NONE))
    if not len(work) or not len(calls):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    calls = calls[np.argsort(s.correlation[calls], kind="stable")]
    keys = s.correlation[calls]
    at = np.minimum(np.searchsorted(keys, s.correlation[work]), len(keys) - 1)
    known = keys[at] == s.correlation[work]
    return work[known], calls[at[known]]


def _gaps(
    stream: Int64, start: Int64, end: Int64, returned: Int64, calls: Int64
) -> tuple[Float64, npt.NDArray[np.bool_]]:
    """Per launch: idle time of its stream before it, and whether it was already queued behind the work before it."""
    gap = np.zeros(len(start))
    queued = np.zeros(len(start), np.bool_)
    for number in np.unique(stream):
        mine = np.flatnonzero(stream == number)
        mine = mine[np.argsort(start[mine], kind="stable")]
        before = np.maximum.accumulate(end[mine])[:-1]
        gap[mine[1:]] = start[mine[1:]] - before
        queued[mine[1:]] = (returned[mine[1:]] <= before) | (calls[mine[1:]] == calls[mine[:-1]])
    return gap, queued


def _median(values: Float64, otherwise: float) -> float:
    return float(np.median(values)) if len(values) else otherwise
