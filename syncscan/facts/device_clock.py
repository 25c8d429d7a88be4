"""From what can't be to how far the device's clock is off the host's: work before its launch, a wait that ends first.

Device times come from another clock than the host's, and are converted by the profiler; public traces have them early
and late by up to milliseconds (pytorch/kineto#868, #991, #1082). Both sides bound it: no work begins before the call
that launches it, and no read-back returns before its copy is done, nor a device's synchronise before all is.
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
    is_stream_synchronize,
    only_asks,
)
from syncscan.model.trace import CALLS, NONE, Trace, once

TOLERANCE_NS = 5_000
"""Older traces have whole µs. In 270 recordings no work begins less than 3.5 µs behind its call, and no read-back
returns less than 2.8 µs behind its copy; on ROCm one does 1.2 µs before it."""
WIDEST_NS = 40_000
"""A shift that is known to less than this can be taken back: what is left is within what all waits are measured to."""
FURTHEST_NS = 100_000
"""A shift beyond this is said and not taken back. A choice: clocks that lie so far apart mostly drift, too."""
SOME = 3
"""Copies that are read back, or other work that a device's synchronise waits for, that have to say it: a single one may
be damaged."""
_LOOKED_AT = 16
"""Launches before a synchronise whose work is counted that seems to end behind it."""
_MOST_BETWEEN = 2
"""Queries between a copy and the synchronise behind it."""


class DeviceClock(msgspec.Struct, frozen=True):
    """How late device times are by the host's clock: at least, and at most; ns, negative where they are early.

    Either is None where nothing tells it.
    """

    least: int | None
    most: int | None
    told_by: int = 0
    """How much work tells the least."""

    @property
    def wrong(self) -> bool:
        """Whether one of the two shows what can't be."""
        return self.late or (self.most is not None and self.most < -TOLERANCE_NS)

    @property
    def late(self) -> bool:
        """Whether read-backs return before their copies are done."""
        return self.least is not None and self.least > TOLERANCE_NS and self.told_by >= SOME

    @property
    def shift(self) -> int | None:
        """By how much device times can be taken back: what both sides agree on; None where they don't closely."""
        if not self.wrong or self.least is None or self.most is None or self.told_by < SOME:
            return None
        middle, width = (self.least + self.most) // 2, self.most - self.least
        return middle if -TOLERANCE_NS <= width <= WIDEST_NS and abs(middle) <= FURTHEST_NS else None


@once
def device_clock(trace: Trace) -> DeviceClock:
    """What this trace says of its device's clock.

    Of each side all but a tenth and a hundredth have to agree: single events may be damaged.
    """
    s, calls = trace.slices, trace.device_calls
    linked = calls != NONE
    behind = s.ts[trace.device_rows[linked]] - s.ts[calls[linked]]
    most = int(quantile(behind, 0.01)) if len(behind) else None
    copies, returned = _read_backs(trace)
    late, told_by = s.end[copies] - returned, len(copies)
    at_syncs, pending = _synchronises(trace)
    if len(at_syncs) and most is not None and quantile(at_syncs, 0.9) <= most + TOLERANCE_NS:
        late, told_by = np.concatenate([late, at_syncs]), told_by + pending  # else it is no clock that explains them
    return DeviceClock(int(quantile(late, 0.9)) if len(late) else None, most, told_by)


def _synchronises(trace: Trace) -> tuple[Int64, int]:
    """How much later than each device's synchronise returned the last work ended that was launched before it, ns.

    The profiler's own is one. Of several devices nobody knows which one it waits for: then none are told.

    Returns:
        Of each synchronise behind work the time; and how many there are, or how much work seems to end behind one.
    """
    s, syncs = trace.slices, trace.where(is_device_synchronize, *CALLS)
    linked = trace.device_calls != NONE
    rows, calls = trace.device_rows[linked], trace.device_calls[linked]
    if not len(syncs) or not len(rows) or len(distinct(s.device[rows])) != 1:
        return np.zeros(0, np.int64), 0
    order = np.argsort(s.end[calls], kind="stable")
    launched, ends = s.end[calls][order], s.end[rows][order]
    before = launched.searchsorted(s.ts[syncs])
    syncs, before = syncs[before > 0], before[before > 0]
    late: Int64 = np.maximum.accumulate(ends)[before - 1] - s.end[syncs]
    each = zip(before.tolist(), s.end[syncs].tolist(), strict=True)
    pending = [int((ends[max(0, count - _LOOKED_AT) : count] > end).sum()) for count, end in each]
    return late, max(len(syncs), *pending, 0)


def _read_backs(trace: Trace) -> tuple[Int64, Int64]:
    """Rows of the copies to the host that it waits for, and when the waiting call of each returned, ns."""
    s, calls = trace.slices, trace.where(is_copy, *CALLS)
    names = trace.copy_names(calls)
    to_host = np.array(["DtoH" in name for name in names], np.bool_)
    pageable = np.array(["Pageable" in name for name in names], np.bool_)
    waits = trace.called(calls, lambda name: copies_and_waits(name) or is_blocking_copy(name)) | pageable
    copies, (paired, returned) = trace.copies_of(calls), _synchronised(trace, calls)
    returned = np.where(paired, returned, s.end[calls])
    chosen = to_host & (copies != NONE) & (paired | waits)
    return copies[chosen], returned[chosen]


def _synchronised(trace: Trace, copies: Int64) -> tuple[Bool, Int64]:
    """Which of these calls have a stream's synchronise directly behind them in their op, and when that returned."""
    s, every = trace.slices, np.flatnonzero(trace.is_category(*CALLS))
    if not len(every):
        return np.zeros(len(copies), np.bool_), np.zeros(len(copies), np.int64)
    at = np.searchsorted(every, copies)[:, None] + np.arange(1, 2 + _MOST_BETWEEN)
    following = every.take(at, mode="clip")
    does = ~trace.called(following.reshape(-1), only_asks).reshape(following.shape) & (at < len(every))
    after = following[np.arange(len(copies)), does.argmax(axis=1)] if len(copies) else copies
    paired: Bool = does.any(axis=1) & trace.called(after, is_stream_synchronize)
    paired &= (s.track[after] == s.track[copies]) & (s.parent[after] == s.parent[copies]) & (s.parent[copies] != NONE)
    return paired, s.end[after]


__all__ = ["DeviceClock", "device_clock"]
