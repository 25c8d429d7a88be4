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


class UsualGaps(msgspec.Struct, frozen=True, eq=False):
    """How long a stream usually pauses between two kernels; columns have one entry per launch.

    The device's own pause depends on both kernels: about 0.9 µs between small ones, 1.6 µs before a matrix product
    (H200).
    """

    gap: Float64
    """Gap after the previous work, ns."""
    pair: Int32
    """Number of the pair of its kernel's name and the previous one's."""
    pairs: int
    telling: Bool
    """Whether it was queued with a short gap."""

    def of(self, places: Int64) -> Float64:
        """Return the median gap of these launches' kernel pairs, USUAL_GAP_NS if unknown, in ns."""
        wanted = np.zeros(self.pairs, np.bool_)
        wanted[self.pair[places]] = True
        matches = np.flatnonzero(self.telling & wanted.take(self.pair))  # few, as it is needed for few launches
        matches = matches[np.lexsort((self.gap[matches], self.pair[matches]))]
        count = np.bincount(self.pair[matches], minlength=self.pairs)
        seen = np.flatnonzero(count)
        usual = np.full(self.pairs, USUAL_GAP_NS)
        usual[seen] = self.gap[matches[(np.cumsum(count) - count + count // 2)[seen]]]
        return usual[self.pair[places]]


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
    usual_gaps: UsualGaps
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
    usual_gaps = UsualGaps(gap, pair, len(pairs), queued & (gap < LONG_NS))
    unqueued, gap = np.flatnonzero(~queued), gap.copy()
    gap[unqueued] = usual_gaps.of(unqueued)
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
        gap=gap,
        latency=np.where(unseen, usual_latency, latency),
        usual_gaps=usual_gaps,
        usual_latency=usual_latency,
    )


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
