"""Measure how long another stream's work kept a blocking copy from beginning.

A call that copies pageable memory, or a copy that is synchronous by definition, returns when the copy is done. So it
waits for everything that its stream waits for: the work before it there, and, after an event
(`cudaStreamWaitEvent`), work of any other stream, such as the end of a collective.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from syncscan.detect.awaited import SHORT_NS, AwaitedWork
from syncscan.detect.blocking_call import direction
from syncscan.detect.waits import SHORTEST_NS
from syncscan.facts.clock_tolerance import HOST_NS
from syncscan.facts.device_work import DeviceWork
from syncscan.facts.event_records import TRIES
from syncscan.facts.period import waits_before
from syncscan.model.arrays import Int64
from syncscan.model.finding import Place
from syncscan.model.runtime_calls import is_stream_wait
from syncscan.model.trace import CALLS, NONE, Trace

AT_ONCE_NS = 20_000
"""A stream continues this soon after the event that it waited for; a first kernel on an idle stream takes 2 to 16
µs."""


class HeldCopies:
    """Finds until when work of other streams blocked the copies of one trace.

    Args:
        trace: trace with the copies.
        work: work of its devices.
        awaited: what its calls waited for, with its events.
    """

    def __init__(self, trace: Trace, work: DeviceWork, awaited: AwaitedWork) -> None:
        self._trace, self._work, self._awaited = trace, work, awaited
        rows = trace.where(is_stream_wait, *CALLS)
        self._waits: Int64 = rows[np.argsort(trace.slices.ts[rows], kind="stable")]
        self._waited_at = trace.slices.ts[self._waits]

    def until(self, calls: Int64, names: Sequence[str]) -> Int64:
        """Return for each call the time until which other streams blocked its copy, ns; 0 if none did.

        Args:
            calls: rows of the calls.
            names: name of each call's copy; empty without one.
        """
        s, copies = self._trace.slices, self._trace.copies_of(calls)
        places = list(zip(s.device[copies].tolist(), s.stream[copies].tolist(), strict=True))
        free, _ = self._work.last_ends(places, s.ts[calls])
        free = np.maximum(free, s.ts[calls])
        late = (copies != NONE) & (s.ts[copies] - free > SHORTEST_NS) & (s.ts[copies] < s.end[calls] + HOST_NS)
        times = np.zeros(len(calls), np.int64)
        for at in np.flatnonzero(late).tolist():
            begin = s.ts.item(copies.item(at))
            held = max(self._behind_events(calls.item(at), begin, places[at]), self._before(calls.item(at)))
            if names[at] and direction(names[at]) == "DtoH" and begin - max(held, free.item(at)) > SHORT_NS:
                held = max(held, self._behind_others(free.item(at), begin, places[at], s.track.item(calls.item(at))))
            times[at] = min(held, begin)
        return times

    def _before(self, call: int) -> int:
        """Return until when this call waited for launches from before the first step, recorded or not; 0 if not."""
        s = self._trace.slices
        track, at = s.track.item(call), s.ts.item(call)
        return max((end for on, _, end in waits_before(self._trace) if on == track and at < end), default=0)

    def _behind_events(self, call: int, begin: int, place: Place) -> int:
        """Return when the last event was reached that this stream waits for since its last launch; 0 without one."""
        at = self._trace.slices.ts.item(call)
        launched = self._work.of(*place).launched
        before = int(launched.searchsorted(at))
        since = launched.item(before - 1) if before else 0
        first, behind = self._waited_at.searchsorted([since, at]).tolist()
        waits = self._waits[max(first, behind - TRIES) : behind].tolist()
        return max((self._reached(wait, begin, place) for wait in waits), default=0)

    def _reached(self, wait: int, begin: int, place: Place) -> int:
        """Return when the event of this wait was reached; 0 if no record can be meant."""
        times = [done for done in self._marked_ends(wait, begin, place) if done <= begin + HOST_NS]
        return next((done for done in times if begin - done <= AT_ONCE_NS), next(iter(times), 0))

    def _marked_ends(self, wait: int, begin: int, place: Place) -> Iterator[int]:
        """Yield when work on other streams ended that the event of this wait may mark, the likeliest first."""
        known, track = self._awaited.records, self._trace.slices.track.item(wait)
        records = [known.stated[wait]] if wait in known.stated else known.before(wait, TRIES, track=track)
        # torch 1.12 to 2.1 recorded none: then any work before the wait may be meant
        for record in records or [wait]:
            for marked in self._awaited.marked(record):
                if marked.done is not None and marked.streams[0] != place:
                    yield marked.done if records else self._last_done(marked.streams[0], marked.before, begin)

    def _last_done(self, place: Place, before: int, begin: int) -> int:
        """Return when the last work of a stream launched before `before` and done before the copy began ended."""
        work = self._work.of(*place)
        ends = work.done[: work.launched.searchsorted(before)]
        last = int(ends.searchsorted(begin + HOST_NS, side="right")) - 1
        return ends.item(last) if last >= 0 else 0

    def _behind_others(self, free: int, begin: int, place: Place, track: int) -> int:
        """Return when a stream finished that worked for most of the time before this copy, and just until it began.

        Nothing else keeps a copy to the host from beginning, as its host does nothing for it. So this shows waits whose
        calls aren't recorded, such as `cudaEventRecord` in torch 1.12 to 2.1, and those of the legacy default stream.
        """
        foreign, ends = self._awaited.of_other_processes(track), [0]
        for stream in self._work.streams(place[0]):
            work, until = self._work.of(place[0], stream), self._last_done((place[0], stream), begin, begin)
            worked = 2 * work.busy_within(free, begin) >= begin - free
            other = stream != place[1] and (place[0], stream) not in foreign
            if other and worked and begin - until <= AT_ONCE_NS:
                ends.append(until)
        return max(ends)
