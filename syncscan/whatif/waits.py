"""From sync points to waits: which call held the host, what it waited for, what it costs with and without waiting."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypedDict

import numpy as np

from syncscan.model.finding import Removal
from syncscan.model.trace import NONE, Int64, Trace
from syncscan.whatif.copies import Copies
from syncscan.whatif.events import Events, Reached
from syncscan.whatif.launches import Launches

USUAL_CALL_NS = 10_000.0
"""A runtime call that has nothing to wait for takes at most this, where the trace has no shorter one of its name."""
USUAL_WAKE_NS = 10_000.0
"""From the device's end to the host's going on, where the trace has no wait to measure it on."""
MAX_WAKE_NS = 200_000.0
"""A host that goes on later than this was held by something else (another thread, the GIL): that stays its own time."""
_SKEW_NS = 5_000
_LONG_NS = 50_000
_FULL = 900
"""Launches in flight from which a long launch is a full queue, not the host's own time (about 1,024 fit in)."""
_LONG_LAUNCH_NS = 50_000


@dataclass(frozen=True, slots=True)
class Hold:
    """One sync point: the number of its finding (NONE: can't be removed), its calls and what it waits for."""

    finding: int
    calls: tuple[int, ...]
    device: int
    stream: int
    removal: Removal
    ops: tuple[int, ...] = ()
    """Rows of the ops around it, outermost first."""


@dataclass(frozen=True, slots=True)
class Held:
    """A hold as the replay needs it (see `graph.Wait`); between `ts` and `cut` the thread's time isn't its own."""

    track: int
    ts: int
    cut: int
    streams: tuple[int, ...]
    event: Reached | None
    call_ns: float
    wake_ns: float
    after_ns: float
    left_ns: float
    finding: int
    wait_ns: float
    spare_ns: float = 0.0
    copy: int = NONE
    pinned_ns: float = 0.0


def find_waits(trace: Trace, launches: Launches, events: Events, holds: Iterable[Hold]) -> list[Held]:
    """Measure every hold; those that didn't wait get the usual wake-up time of those that did."""
    ruler = _Ruler(trace, launches, events)
    holds = list(holds)
    held = _spared(trace, holds, [ruler.held(h) for h in holds])
    wakes = [h.wake_ns for h in held if h.wait_ns > 0]
    usual = float(np.median(wakes)) if wakes else USUAL_WAKE_NS
    return [h if h.wait_ns > 0 else replace(h, wake_ns=usual) for h in held]


def _spared(trace: Trace, holds: Sequence[Hold], held: list[Held]) -> list[Held]:
    """Give the host's own time in an op to the first wait in it."""
    s = trace.slices
    left: dict[int, float] = {}
    for hold, one in zip(holds, held, strict=True):
        op = _outermost(trace, hold)
        if op is not None:
            left[op] = left.get(op, float(s.dur[op])) - (one.cut - one.ts)
    return [
        replace(one, spare_ns=max(0.0, left.pop(op, 0.0)) if (op := _outermost(trace, hold)) is not None else 0.0)
        for hold, one in zip(holds, held, strict=True)
    ]


def _outermost(trace: Trace, hold: Hold) -> int | None:
    """The outermost of torch's own ops around a sync point: what a program calls, not what it is called in."""
    return next((row for row in hold.ops if trace.name(row).startswith("aten::")), None)


class _Pinned(TypedDict):
    copy: int
    pinned_ns: float


class _Ruler:
    def __init__(self, trace: Trace, launches: Launches, events: Events) -> None:
        self.trace, self.launches, self.events = trace, launches, events
        self.copies = Copies(trace)
        self._usual: dict[int, float] = {}

    def held(self, hold: Hold) -> Held:
        s = self.trace.slices
        last = int(s.end[hold.calls[-1]])
        event = self._event(hold)
        streams, done = self._awaited(hold, event)
        if event is None and not self._explained(hold, done):
            streams, done = self._explaining(hold) or (streams, done)
        row = self._blocking(hold, done)
        start, end = int(s.ts[row]), int(s.end[row])
        waited = done > start
        wake = min(max(float(end - done), 0.0), MAX_WAKE_NS) if waited else 0.0
        call = min(float(end - start), self._usual_call(row)) if waited else float(end - start)
        after = float(last - end)
        cut = last - (int(end - done - wake) if waited and end > done else 0)
        return Held(
            track=int(s.track[row]),
            ts=start,
            cut=max(cut, start),
            streams=streams,
            event=event,
            call_ns=call,
            wake_ns=wake,
            after_ns=after,
            left_ns=self._left(hold, row),
            finding=hold.finding,
            wait_ns=float(max(0, done - start)),
            **self._pinned(hold),
        )

    def _pinned(self, hold: Hold) -> _Pinned:
        """What pinning the memory of its copy would save of the copy."""
        if hold.removal is Removal.NOTHING:
            return {"copy": NONE, "pinned_ns": 0.0}
        for row in hold.calls:
            found = self.copies.saved(row)
            if found and found[0] in self.launches.streams:
                return {"copy": self.launches.streams.index(found[0]), "pinned_ns": found[1]}
        return {"copy": NONE, "pinned_ns": 0.0}

    def _event(self, hold: Hold) -> Reached | None:
        row = hold.calls[-1]
        if "Event" not in self.trace.name(row):
            return None
        return self.events.awaited(row, int(self.trace.slices.end[row]))

    def _awaited(self, hold: Hold, event: Reached | None) -> tuple[tuple[int, ...], int]:
        """The streams that this hold waits for, and when they were done."""
        if event is not None:
            return (event.stream,), self.launches.done(event.stream, event.ts)
        s = self.trace.slices
        before = int(s.ts[hold.calls[-1]]) + 1
        end = int(s.end[hold.calls[-1]])
        done = {
            number: self.launches.done(number, before)
            for number, (device, stream) in enumerate(self.launches.streams)
            if hold.device in (NONE, device) and hold.stream in (NONE, stream)
        }
        possible = {number: at for number, at in done.items() if at <= end + _SKEW_NS}
        return tuple(possible), max(possible.values(), default=0)

    def _explained(self, hold: Hold, done: int) -> bool:
        """Whether what it is said to wait for explains how long it took; a stream is often only supposed."""
        s = self.trace.slices
        last = hold.calls[-1]
        short = s.dur[last] < _LONG_NS or len(hold.calls) > 1
        return bool(short or "Stream" not in self.trace.name(last) or s.end[last] - done < MAX_WAKE_NS)

    def _explaining(self, hold: Hold) -> tuple[tuple[int, ...], int] | None:
        """The stream whose end explains best when a stream synchronise returned; None if there is none."""
        s = self.trace.slices
        start, end = int(s.ts[hold.calls[-1]]), int(s.end[hold.calls[-1]])
        done = {number: self.launches.done(number, start + 1) for number in range(len(self.launches.streams))}
        within = {n: at for n, at in done.items() if start < at <= end + _SKEW_NS and end - at < MAX_WAKE_NS}
        best = max(within, key=lambda n: within[n], default=None)
        return None if best is None else ((best,), within[best])

    def _blocking(self, hold: Hold, done: int) -> int:
        """The call that was in progress when the awaited work ended; the last one where none was."""
        s = self.trace.slices
        for row in hold.calls:
            if int(s.ts[row]) < done <= int(s.end[row]) + _SKEW_NS:
                return row
        return hold.calls[-1]

    def _left(self, hold: Hold, row: int) -> float:
        copy = "Memcpy" in self.trace.name(row) or "memcpy" in self.trace.name(row)
        return self._usual_call(row) if copy and hold.removal is not Removal.NOTHING else 0.0

    def _usual_call(self, row: int) -> float:
        """What a call of this name costs when it needn't wait: a low quantile of those in the trace."""
        s = self.trace.slices
        name = int(s.name[row])
        if name not in self._usual:
            self._usual[name] = min(float(np.quantile(s.dur[s.name == name], 0.1)), USUAL_CALL_NS)
        return self._usual[name]


def pressed(trace: Trace, launches: Launches) -> list[Held]:
    """Launches that were long because the launch queue was full: their wait follows from the replay, not from them.

    A full queue shows as a launch that lasts with about a thousand others in flight. Work from before the recording
    counts too: it has no launch in the trace.
    """
    long = np.flatnonzero(launches.returned - launches.issued > _LONG_LAUNCH_NS)
    found = []
    for i in long[_in_flight(trace, launches.issued[long]) >= _FULL].tolist():
        call = int(launches.calls[i])
        if "emcpy" not in trace.name(call):
            issued, returned = int(launches.issued[i]), int(launches.returned[i])
            cut = max(issued, returned - int(_usual_length(trace, call)))
            found.append(Held(int(launches.tracks[i]), issued, cut, (), None, 0.0, 0.0, 0.0, 0.0, NONE, 0.0))
    return found


def _in_flight(trace: Trace, times: Int64) -> Int64:
    """How much device work was launched but not begun at these times, ns."""
    start, launched = trace.slices.ts[trace.device_rows], trace.launched_at
    known = np.sort(launched[launched < start])
    to_begin = len(start) - np.searchsorted(start, times, side="right")
    to_launch = len(known) - np.searchsorted(known, times, side="right")
    return to_begin - to_launch


def _usual_length(trace: Trace, call: int) -> float:
    s = trace.slices
    return float(np.median(s.dur[s.name == s.name[call]]))
