"""Estimate how far the device's clock is off the host's, from work before its launch and waits that end too early.

Device times come from another clock than the host's, and the profiler converts them. In public traces they are early or
late by up to milliseconds (pytorch/kineto#868, #991, #1082). Both sides give bounds: no work begins before the call
that launches it, and no read-back returns before its copy is done, nor a device synchronize before all work is.
"""

from __future__ import annotations

import msgspec
import numpy as np

from syncscan.model.arrays import Bool, Int64, distinct, quantile
from syncscan.model.runtime_calls import (
    copies_and_waits,
    is_blocking_copy,
    is_copy,
    is_device_synchronize,
    is_queue_finish,
    is_stream_synchronize,
    only_asks,
)
from syncscan.model.trace import CALLS, NONE, Trace, once

TOLERANCE_NS = 5_000
"""Older traces have whole µs. In 270 recordings no work begins less than 3.5 µs after its call, and no read-back
returns less than 2.8 µs after its copy; on ROCm, one returns 1.2 µs before it."""
WIDEST_NS = 40_000
"""A shift known to within this is corrected: what remains is within the accuracy of all measured waits."""
FURTHEST_NS = 100_000
"""A larger shift is reported but not corrected. A choice: clocks that far apart mostly drift, too."""
SOME = 3
"""Least evidence of a late clock: copies read back, or other work that a device synchronize waits for. A single one may
be damaged."""
CLEAR_NS = 20_000
"""How late less evidence has to show it. In a recording on ROCm, one synchronize returns 7 µs before its work ends."""
_LOOKED_AT = 16
"""Launches before a synchronize that are checked for work that seems to end after it."""
_SOME_SYNCS = 256
"""Synchronizes of a stream that are checked, from the first to the last."""
_MOST_BETWEEN = 2
"""Most queries between a copy and the synchronize after it."""


class DeviceClock(msgspec.Struct, frozen=True):
    """Bounds of how late device times are by the host's clock, in ns; negative if they are early.

    A bound without evidence is None.
    """

    least: int | None
    most: int | None
    evidence: int = 0
    """Amount of work that the lower bound rests on."""

    @property
    def wrong(self) -> bool:
        """Whether a bound contradicts equal clocks."""
        return self.late or (self.most is not None and self.most < -TOLERANCE_NS)

    @property
    def late(self) -> bool:
        """Whether read-backs return before their copies are done.

        Few of them suffice if all work begins that much after its launch, too: no damaged event explains that.
        """
        if self.least is None or self.least <= TOLERANCE_NS or not self.evidence:
            return False
        if self.evidence >= SOME:
            return True
        return self.least > CLEAR_NS and self.most is not None and self.least <= self.most + TOLERANCE_NS

    @property
    def shift(self) -> int | None:
        """Shift by which device times can be corrected: the middle of both bounds; None unless they are close."""
        if not self.wrong or self.least is None or self.most is None or self.evidence < SOME:
            return None
        middle, width = (self.least + self.most) // 2, self.most - self.least
        return middle if -TOLERANCE_NS <= width <= WIDEST_NS and abs(middle) <= FURTHEST_NS else None


@once
def device_clock(trace: Trace) -> DeviceClock:
    """Return the bounds of this trace's device clock.

    A tenth (lower bound) or a hundredth (upper bound) of the events may disagree, since single events may be damaged.
    """
    s, calls = trace.slices, trace.device_calls
    linked = calls != NONE
    behind = s.ts[trace.device_rows[linked]] - s.ts[calls[linked]]
    most = int(quantile(behind, 0.01)) if len(behind) else None
    copies, returned = _read_backs(trace)
    late, evidence = s.end[copies] - returned, len(copies)
    at_syncs, pending = _synchronizes(trace, few=len(copies) < SOME)
    if len(at_syncs) and most is not None and quantile(at_syncs, 0.9) <= most + TOLERANCE_NS:
        late, evidence = np.concatenate([late, at_syncs]), evidence + pending  # else a clock doesn't explain them
    return DeviceClock(int(quantile(late, 0.9)) if len(late) else None, most, evidence)


def _synchronizes(trace: Trace, few: bool) -> tuple[Int64, int]:
    """Return how long after each device synchronize returned the last work launched before it ended, ns.

    The profiler's own count too, and with `few` read-backs stream synchronizes. With several devices, it isn't known
    which one it waits for; then there are none. The number is that of synchronizes, or how much work seems to end after
    one.
    """
    s, linked = trace.slices, trace.device_calls != NONE
    rows, calls = trace.device_rows[linked], trace.device_calls[linked]
    syncs = _waits_for_all(trace, rows, few)
    if not len(syncs) or not len(rows) or len(distinct(s.device[rows])) != 1:
        return np.zeros(0, np.int64), 0
    order = np.argsort(s.end[calls], kind="stable")
    launched, ends = s.end[calls][order], s.end[rows][order]
    before = launched.searchsorted(s.ts[syncs])
    syncs, before = syncs[before > 0], before[before > 0]
    late: Int64 = np.maximum.accumulate(ends)[before - 1] - s.end[syncs]
    returns = zip(before.tolist(), s.end[syncs].tolist(), strict=True)
    pending = [int((ends[max(0, count - _LOOKED_AT) : count] > end).sum()) for count, end in returns]
    return late, max(len(syncs), *pending, 0)


def _waits_for_all(trace: Trace, rows: Int64, few: bool) -> Int64:
    """Return the rows of calls that block the host until all of this work that was launched before is done.

    Those are stream synchronizes if no call waits for the device, there are few read-backs, and all work is of one
    stream.
    """
    syncs = trace.where(is_device_synchronize, *CALLS)
    if len(syncs) or not few or len(distinct(trace.slices.stream[rows])) != 1:
        return syncs
    syncs = trace.where(_waits_for_a_stream, *CALLS)
    return syncs[np.linspace(0, len(syncs) - 1, min(len(syncs), _SOME_SYNCS)).astype(np.int64)]


def _waits_for_a_stream(name: str) -> bool:
    """Return whether a call of this name blocks the host until a stream, or an Intel device's queue, is done."""
    return is_stream_synchronize(name) or is_queue_finish(name)


def _read_backs(trace: Trace) -> tuple[Int64, Int64]:
    """Return the rows of copies to the host that it waits for, and when the waiting call of each returned, ns."""
    s, calls = trace.slices, trace.where(is_copy, *CALLS)
    names = trace.copy_names(calls)
    to_host = np.array(["DtoH" in name for name in names], np.bool_)
    pageable = np.array(["Pageable" in name for name in names], np.bool_)
    waits = trace.called(calls, lambda name: copies_and_waits(name) or is_blocking_copy(name)) | pageable
    copies, (paired, returned) = trace.copies_of(calls), _synchronized(trace, calls)
    returned = np.where(paired, returned, s.end[calls])
    chosen = to_host & (copies != NONE) & (paired | waits)
    return copies[chosen], returned[chosen]


def _synchronized(trace: Trace, copies: Int64) -> tuple[Bool, Int64]:
    """Return which calls are directly followed by a stream synchronize in their op, and when that returned."""
    s, every = trace.slices, np.flatnonzero(trace.is_category(*CALLS))
    if not len(every):
        return np.zeros(len(copies), np.bool_), np.zeros(len(copies), np.int64)
    at = np.searchsorted(every, copies)[:, None] + np.arange(1, 2 + _MOST_BETWEEN)
    following = every.take(at, mode="clip")
    does = ~trace.called(following.reshape(-1), only_asks).reshape(following.shape) & (at < len(every))
    after = following[np.arange(len(copies)), does.argmax(axis=1)] if len(copies) else copies
    paired: Bool = does.any(axis=1) & trace.called(after, _waits_for_a_stream)
    paired &= (s.track[after] == s.track[copies]) & (s.parent[after] == s.parent[copies]) & (s.parent[copies] != NONE)
    return paired, s.end[after]


HOST_NS = 20_000
"""Between a host's call and the device's work. Of 208 calls that wait for their own copy, one returned 20.2 µs before
the copy ended; all others returned at least 3.1 µs after it."""
STREAM_NS = 5_000
"""Between the work of two streams. None of 200 stream waits with a stated record let work begin earlier than 1.3 µs
after what they waited for. On one stream, where nothing overlaps, 104 of 90,142 kernels and copies begin up to 3.1 µs
before the previous one ends, and two begin 10 and 15 µs before it."""
