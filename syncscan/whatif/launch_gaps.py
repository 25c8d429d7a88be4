"""Join a trace's device work with its launches, and with what it waited for on its stream, for the replay."""

from __future__ import annotations

import msgspec
import numpy as np

from syncscan.model.arrays import Bool, Float64, Int32, Int64, median, numbered_pairs
from syncscan.model.interval import Interval
from syncscan.model.trace import NONE, Trace

USUAL_GAP_NS = 1_000.0
"""Gap between two kernels of one stream if the trace has no pair to measure it."""
USUAL_LATENCY_NS = 2_000.0
"""Time from a launch's return to the start on an idle stream if the trace has none to measure it."""
LONG_NS = 20_000
"""A longer gap between queued work isn't the device's own, and isn't used to find the usual gap."""


class Launches(msgspec.Struct, frozen=True, eq=False):
    """Kernels, copies and memsets with their launching calls, in the order of the calls; times in ns.

    `gap` follows the previous work on its stream if the stream is busy; `latency` follows the return of its call if the
    stream is idle (negative if it starts before the call returns).
    """

    streams: tuple[tuple[int, int], ...]
    by_stream: tuple[tuple[Int64, Int64], ...]
    """Per stream: when its work was launched, and when all work up to and including it was done."""
    rows: Int64
    calls: Int64
    tracks: Int64
    stream: Int32
    issued: Int64
    returned: Int64
    start: Int64
    end: Int64
    gap: Float64
    latency: Float64
    usual_gap: Float64
    """Gap that is usual between its kernel and the previous one."""
    usual_latency: float

    def __len__(self) -> int:
        return len(self.rows)

    def done(self, stream: int, before: int) -> int:
        """Return when all work launched on this stream before a time ended, ns; 0 without any."""
        issued, done = self.by_stream[stream]
        count = int(issued.searchsorted(before))
        return done.item(count - 1) if count else 0

    def work_of(self, track: int, within: Interval) -> tuple[int, float]:
        """Return the stream (or NONE) and the length of what a thread launches in this time, ns; the first's stream."""
        places = np.arange(*self.issued.searchsorted(within))
        places = places[self.tracks[places] == track]
        stream = int(self.stream[places[0]]) if len(places) else NONE
        return stream, float((self.end - self.start)[places].sum())


def find_launches(trace: Trace, begin: int, end: int) -> Launches:
    """Join device work with its launching calls.

    Work without a launch between `begin` and `end` (ns) in the trace is left out.
    """
    s, work, calls = trace.slices, trace.device_rows, trace.device_calls
    at = np.flatnonzero((calls != NONE) & (s.ts[calls] >= begin) & (s.ts[calls] < end))
    calls = calls[at]
    order = np.lexsort((s.ts[work[at]], s.ts[calls]))
    at, calls = at[order], calls[order]
    rows = work[at]
    keys, stream = numbered_pairs(s.device[rows], s.stream[rows])
    issued, returned = s.ts[calls], s.end[calls]
    place, reached = (column[at] for column in _before(trace))
    before = np.where(place == NONE, NONE, work[place])
    gap = (s.ts[rows] - reached).astype(np.float64)
    same_call = trace.device_calls[place] == calls
    queued = (before != NONE) & ((returned <= reached) | same_call)
    latency = (s.ts[rows] - returned).astype(np.float64)
    pairs, pair = numbered_pairs(s.name[before], s.name[rows])
    usual_gap = _usual_gaps(gap, pair, len(pairs), queued & (gap < LONG_NS))
    on_idle = latency[~queued & (latency < LONG_NS)]
    usual_latency = median(on_idle) if len(on_idle) else USUAL_LATENCY_NS
    unseen = queued | ((before == NONE) & (latency > LONG_NS))
    return Launches(
        streams=tuple((device, number) for device, number in keys.tolist()),
        by_stream=tuple(
            (issued[stream == k], np.maximum.accumulate(s.end[rows][stream == k])) for k in range(len(keys))
        ),
        rows=rows,
        calls=calls,
        tracks=s.track[calls].astype(np.int64),
        stream=stream,
        issued=issued,
        returned=returned,
        start=s.ts[rows],
        end=s.end[rows],
        gap=np.where(queued, gap, usual_gap),
        latency=np.where(unseen, usual_latency, latency),
        usual_gap=usual_gap,
        usual_latency=usual_latency,
    )


def _usual_gaps(gap: Float64, pair: Int32, pairs: int, telling: Bool) -> Float64:
    """Return the median gap of each launch's pair of kernels, of those that tell; USUAL_GAP_NS if none does, in ns.

    The device's own pause depends on both kernels: about 0.9 µs between small ones, 1.6 µs before a matrix product
    (H200).
    """
    places = np.flatnonzero(telling)
    places = places[np.lexsort((gap[places], pair[places]))]
    count = np.bincount(pair[places], minlength=pairs)
    seen = np.flatnonzero(count)
    usual = np.full(pairs, USUAL_GAP_NS)
    usual[seen] = gap[places[(np.cumsum(count) - count + count // 2)[seen]]]
    return usual[pair]


def _before(trace: Trace) -> tuple[Int64, Int64]:
    """Return for each of `trace.device_rows` the index of the previous work on its stream (or NONE), and its end.

    Work from before the recording counts, though its launch isn't in the trace.
    """
    s, rows = trace.slices, trace.device_rows
    before, reached = np.full(len(rows), NONE, np.int64), np.zeros(len(rows), np.int64)
    if not len(rows):
        return before, reached
    key = s.device[rows].astype(np.int64) * (1 << 32) + s.stream[rows]
    if (key == key[0]).all():  # one stream, as in most programs
        before[1:], reached[1:] = np.arange(len(rows) - 1), np.maximum.accumulate(s.end[rows])[:-1]
        return before, reached
    order = np.argsort(key, kind="stable")
    group = np.cumsum(np.concatenate([[0], np.diff(key[order]) != 0]))
    ends = s.end[rows][order] - int(s.ts[rows].min())
    far = int(ends.max()) + 1
    done = np.maximum.accumulate(ends + group * far) - group * far + int(s.ts[rows].min())
    follows = order[1:][np.diff(group) == 0]
    leads = np.flatnonzero(np.diff(group) == 0)
    before[follows], reached[follows] = order[leads], done[leads]
    return before, reached
