"""State what data a trace misses for its numbers to be meaningful, and which numbers are withheld for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from syncscan.facts.device_work import DeviceWork
from syncscan.facts.profiler_work import device_clock
from syncscan.model.arrays import Int64, median
from syncscan.model.duration import duration
from syncscan.model.interval import union
from syncscan.model.runtime_calls import is_graph_launch, is_launch, is_synchronize
from syncscan.model.slice_names import waits_for_event
from syncscan.model.step import SOUND, Integrity, Lack
from syncscan.model.trace import CALLS, HOST, NONE, Category, Trace, Vendor

HELD_NS = 250_000
"""A longer pause means that something blocked the device. After 80 whole replays in our recordings it is at most 12 µs,
and the slowest launch on an idle device began its work after 247 µs."""
LOOKED_AT = 256
"""Number of replays that are checked, spread from first to last, to bound the time for a server's trace."""
EXPLAINED = 2
"""If any stream works in more than one part in this many of the pause, that explains why the next work had to wait."""


def partly_recorded(trace: Trace, replays: Int64) -> list[int]:
    """Return the unexplained idle time after each of these replays, ns; 0 without one.

    Replays are graph launches with work in the trace; at most LOOKED_AT of them are checked.
    """
    some = replays[np.linspace(0, len(replays) - 1, min(len(replays), LOOKED_AT)).astype(np.int64)]
    held = _Held(trace)
    return [
        held.behind(replay, work) for replay, work in zip(some.tolist(), trace.works_of(some).tolist(), strict=True)
    ]


class _Held:
    """Measures the time after replays in which nothing runs although work waits."""

    def __init__(self, trace: Trace) -> None:
        self._trace, self._work = trace, trace.cached(DeviceWork)
        s, syncs = trace.slices, trace.where(is_synchronize, *CALLS)
        self._syncs = syncs[np.argsort(s.ts[syncs], kind="stable")]
        self._synced_at = s.ts[self._syncs]

    def behind(self, replay: int, last: int) -> int:
        """Return the unexplained idle time after a replay whose last work is at row `last`, ns."""
        s = self._trace.slices
        device, stream = s.device.item(last), s.stream.item(last)
        work = self._work.of(device, stream)
        done, returned = s.end.item(last), s.end.item(replay)
        following = int(work.launched.searchsorted(s.ts.item(replay), side="right"))
        sync = self._sync_behind(replay)
        if following < len(work.rows):
            row = int(work.rows[following])
            call = int(self._trace.calls_of(np.array([row])).item())
            launched = s.end.item(call) if call != NONE else work.launched.item(following)
            if sync == NONE or work.launched.item(following) < s.ts.item(sync):
                return self._idle(device, max(done, launched, returned), s.ts.item(row))
        return 0 if sync == NONE else self._idle(device, max(done, s.ts.item(sync)), s.end.item(sync))

    def _sync_behind(self, replay: int) -> int:
        """Return the first synchronize that the replay's thread calls after it, or NONE."""
        s = self._trace.slices
        first = int(self._synced_at.searchsorted(s.end.item(replay)))
        rows = self._syncs[first : first + LOOKED_AT]
        own = rows[s.track[rows] == s.track.item(replay)]
        return int(own[0]) if len(own) else NONE

    def _idle(self, device: int, begin: int, end: int) -> int:
        """Return the length of this interval if it is long and the device is busy in little of it; else 0."""
        if end - begin <= HELD_NS:
            return 0
        busy = self._work.of(device).busy.between(begin, end)
        return end - begin if EXPLAINED * busy < end - begin else 0


RECORDED = 0.9
"""Least share of launches (and of graph launches) with recorded device work for a verdict: lost work can then move a
share of the step by no more than what counts as notable. All 170 recordings have 100 %."""
COMPLETE = 0.98
"""A smaller share of launches with device work is reported; kineto leaves out work across the borders of its window."""
SKEW_NS = 50_000
"""Work that begins earlier than this before its launch shows that the clocks of host and device disagree. No work in
170 recordings does."""
SKEWED = 0.05
"""Share of work that begins too early from which on it is reported."""
AT_ONCE = 0.05
"""A stream runs one kernel at a time; a larger share of doubly used time is reported. In 170 recordings it is below
0.01."""
LATE_NS, LATE, FEW = 500_000, 0.2, 20
"""Time from a launch to its work on an idle device (usually some 10 µs), the share of work that takes longer from which
on it is reported, and the fewest pieces of work for that. In 98 recordings of devices that nothing else used, at most
0.02 took longer; in four whose device another process used (time slices of 2 ms), 0.30 to 0.58."""
DEPENDENT_LAUNCH, TWO_AT_ONCE = (9, 0), 2.0
"""The first compute capability with which a kernel may begin before the previous one on its stream is done, by
programmatic dependent launch (CUDA Programming Guide); it is reported only if more than two run all the time."""


def integrity_of(trace: Trace, known: Sequence[Lack] = ()) -> Integrity:
    """Return what data a trace misses and which numbers are withheld, including what is already known to be missing."""
    lacks = (*known, *_lacks(trace, assigned=not any(lack.waits for lack in known)))
    return Integrity(lacks) if lacks else SOUND


def _lacks(trace: Trace, assigned: bool) -> Iterator[Lack]:
    """Report what is missing; `assigned` says that device work can be assigned to its calls, so that clocks compare."""
    if trace.info.capture.pretended:
        sentences = ("A dry run on a simulated device: nothing was timed.", *trace.info.capture.notes)
        yield Lack(" ".join(sentences), verdict=True, waits=True)
        return
    if not len(trace.slices):
        yield Lack("The trace contains no slices.", verdict=True, waits=True)
        return
    if not len(trace.device_rows):
        calls = trace.is_category(*CALLS, Category.SYNC).any()
        why = (
            "the work that the host waited for is missing"
            if calls
            else "it was recorded on a CPU, or without its device"
        )
        yield Lack(f"The trace contains no device work: {why}.", verdict=True, waits=True)
        return
    if not trace.is_category(*HOST).any():
        yield Lack("The trace contains no host slices, so what the device waited for is unknown.", verdict=True)
        return
    if not trace.info.complete:
        yield Lack("The trace is truncated, and a part of it doesn't show what bounds the step.", verdict=True)
    yield from _dropped(trace)
    yield from _launches(trace)
    yield from _graphs(trace)
    if assigned:
        yield from _clocks(trace)
        yield from _shared_device(trace)
    yield from _streams(trace)
    yield from _events(trace)


def _dropped(trace: Trace) -> Iterator[Lack]:
    dropped = trace.info.dropped
    if dropped:
        yield Lack(f"The profiler's buffers were full: it dropped {dropped} device records.", verdict=True)


def _launches(trace: Trace) -> Iterator[Lack]:
    """Report launches whose device work isn't in the trace."""
    launches = _in_steps(trace, trace.where(is_launch, *CALLS))
    if not len(launches):
        return
    recorded = int(np.count_nonzero(trace.started_work(launches))) / len(launches)
    if recorded < COMPLETE:
        lost = f"Only {recorded:.0%} of the launches have device work in the trace"
        yield Lack(f"{lost}: the device may be busy where it looks idle.", verdict=recorded < RECORDED)


def _graphs(trace: Trace) -> Iterator[Lack]:
    """Report graphs replayed with none or only some of their kernels in the trace."""
    replays = _in_steps(trace, trace.where(is_graph_launch, *CALLS))
    started = trace.started_work(replays)
    bare = int(np.count_nonzero(~started))
    if bare:
        lost = f"{bare} of {len(replays)} graph launches have no kernels in the trace"
        withheld = bare > (1.0 - RECORDED) * len(replays)
        yield Lack(f"{lost}: the device may be busy where it looks idle.", verdict=withheld)
    held = partly_recorded(trace, replays[started]) if started.any() else []
    partly = [ns for ns in held if ns]
    if partly:
        lost = f"After {len(partly)} of {len(held)} graph launches the device is idle for no visible reason"
        sentence = f"{lost}, for {duration(median(partly) / 1e3)}: some of their kernels are missing from the trace"
        withheld = len(partly) > (1.0 - RECORDED) * len(held)
        yield Lack(f"{sentence}, and it may be busy where it looks idle.", verdict=withheld, waits=withheld)


def _in_steps(trace: Trace, calls: Int64) -> Int64:
    """Return those of these calls that lie in the steps and can have device work, as they have a correlation."""
    s = trace.slices
    calls = calls[s.correlation.take(calls) != NONE]
    if trace.steps:
        ts = s.ts.take(calls)
        calls = calls[(ts >= trace.steps[0].ts) & (ts < trace.steps[-1].end)]
    return calls


def _clocks(trace: Trace) -> Iterator[Lack]:
    """Report work that begins long before its launch, or ends long after the wait for it."""
    s, rows, calls = trace.slices, trace.device_rows, trace.device_calls
    linked = calls != NONE
    if not linked.any():
        sentence = (
            "No device work names its launch, so what the host waited for, and what delayed the device, is unknown."
        )
        yield Lack(sentence, verdict=True, waits=True)
        return
    too_early = linked & (s.ts.take(rows) < s.ts.take(calls) - SKEW_NS)
    early = int(np.count_nonzero(too_early)) / int(np.count_nonzero(linked))
    if early > SKEWED:
        sentence = f"{early:.0%} of the device work begins before its launch: the clocks of host and device disagree"
        yield Lack(f"{sentence}.", verdict=True, waits=True)
    elif device_clock(trace).late:
        late = f"at least {(device_clock(trace).least or 0) / 1e3:.0f} µs late"
        sentence = "The host's waits end before the work they wait for: the clocks of host and device disagree"
        yield Lack(f"{sentence}, device times are {late}.", verdict=True, waits=True)


def _shared_device(trace: Trace) -> Iterator[Lack]:
    """Report work that begins late though the device is idle, as where another process has its turn on it."""
    s, rows, calls = trace.slices, trace.device_rows, trace.device_calls
    done = np.maximum.accumulate(s.end.take(rows))[:-1]
    rows, calls = rows[1:], calls[1:]
    begins, launched = s.ts.take(rows), s.ts.take(calls)
    idle = (calls != NONE) & (done < launched)
    count = int(np.count_nonzero(idle))
    if count < FEW or device_clock(trace).late:
        return
    late = int(np.count_nonzero(idle & (begins - launched > LATE_NS))) / count
    if late > LATE:
        sentence = (
            f"{late:.0%} of the work that finds the device idle begins over {LATE_NS / 1e6:.1f} ms after its launch"
        )
        cause = "another process may be using the device. Its time counts as waits here, so the gains may be too high"
        yield Lack(f"{sentence}: {cause}.")


def _streams(trace: Trace) -> Iterator[Lack]:
    """Report streams with more work than time, beyond what may legally overlap."""
    device_work = trace.cached(DeviceWork)
    dependent = (trace.info.compute_capability or (0, 0)) >= DEPENDENT_LAUNCH
    most = TWO_AT_ONCE if dependent and trace.info.vendor is Vendor.CUDA else 1.0 + AT_ONCE
    for device in device_work.devices:
        for stream, work in device_work.by_stream(device).items():
            took, there_was = _recorded_time(trace, work.rows), float(work.busy.length)
            if took > most * there_was:
                times = f"{duration(took / 1e3)} of work in {duration(there_was / 1e3)}"
                sentence = f"Stream {stream} of device {device} reports {times}"
                yield Lack(f"{sentence}, but a stream runs one task at a time.", verdict=True, waits=True)


def _recorded_time(trace: Trace, rows: Int64) -> float:
    """Return the recorded time of this work of one stream, ns; work of one graph launch may overlap."""
    s, calls = trace.slices, trace.calls_of(rows)
    of_graph = (calls != NONE) & trace.called(calls, is_graph_launch)
    took = float(s.dur[rows[~of_graph]].sum())
    inside = rows[of_graph][np.argsort(s.ts[rows[of_graph]], kind="stable")]
    starts, ends = union(s.ts[inside], s.end[inside])
    return took + float((ends - starts).sum())


def _events(trace: Trace) -> Iterator[Lack]:
    """Report waits for an event that don't name the event record that they wait for."""
    rows = trace.where(waits_for_event, Category.SYNC)
    unresolved = int(np.count_nonzero(trace.slices.awaits[rows] == NONE))
    if unresolved:
        waits = f"{unresolved} of {len(rows)} waits for an event don't name the event record that they wait for"
        yield Lack(f"{waits} (as of CUDA 12.9), so it was inferred from order and time.")
