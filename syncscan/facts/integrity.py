"""From a trace to what it lacks for its numbers to mean something: a sentence each, and what is withheld for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from syncscan.facts.device_clock import device_clock
from syncscan.facts.device_work import DeviceWork
from syncscan.facts.graph_replays import partly_recorded
from syncscan.model.arrays import Int64, median
from syncscan.model.integrity import SOUND, Integrity, Lack
from syncscan.model.interval import union
from syncscan.model.names import waits_for_event
from syncscan.model.runtime_calls import is_graph_launch, is_launch
from syncscan.model.trace import CALLS, HOST, NONE, Category, Trace, Vendor

RECORDED = 0.9
"""A verdict needs the device work of at least this part of the launches, and of the graph launches: what is lost can
then move a share of the step by no more than what counts as notable. Of 170 recordings each has all of it."""
COMPLETE = 0.98
"""Of launches without work less than this is said: kineto leaves out what crosses the border of its window."""
SKEW_NS = 50_000
"""Work can't begin before its launch; by so much it does only where the clocks of host and device disagree. In none of
170 recordings does any."""
SKEWED = 0.05
"""It is said where this part of the work begins too early."""
AT_ONCE = 0.05
"""A stream runs one kernel after the other: it is said where more than this part of its time is taken twice. In 170
recordings it is below 0.01."""
DEPENDENT_LAUNCH, TWO_AT_ONCE = (9, 0), 2.0
"""From this compute capability on a kernel may begin before the one before it on its stream is done (programmatic
dependent launch, CUDA Programming Guide): it is said only where more than two are at work all the time."""


def integrity_of(trace: Trace, known: Sequence[Lack] = ()) -> Integrity:
    """What is missing of this trace, and which numbers are withheld for it; with what is known of that already."""
    lacks = (*known, *_lacks(trace))
    return Integrity(lacks) if lacks else SOUND


def _lacks(trace: Trace) -> Iterator[Lack]:
    if trace.info.capture.pretended:
        said = ("A dry run, on a device that wasn't there: nothing was timed.", *trace.info.capture.notes)
        yield Lack(" ".join(said), verdict=True, waits=True)
        return
    if not len(trace.slices):
        yield Lack("The trace holds no slices.", verdict=True, waits=True)
        return
    if not len(trace.device_rows):
        calls = trace.is_category(*CALLS, Category.SYNC).any()
        why = "what the host waited for isn't in it" if calls else "it is of a CPU, or was recorded without the device"
        yield Lack(f"The trace holds no device work: {why}.", verdict=True, waits=True)
        return
    if not trace.is_category(*HOST).any():
        yield Lack("The trace holds nothing of the host: what the device waited for can't be told.", verdict=True)
        return
    if not trace.info.complete:
        yield Lack("The trace is cut short: a part of it doesn't tell what bounds the step.", verdict=True)
    yield from _dropped(trace)
    yield from _launches(trace)
    yield from _graphs(trace)
    yield from _clocks(trace)
    yield from _streams(trace)
    yield from _events(trace)


def _dropped(trace: Trace) -> Iterator[Lack]:
    """Records that the profiler itself says it lost."""
    dropped = trace.info.dropped
    if dropped:
        yield Lack(f"The profiler's buffers were full: it dropped {dropped} records of the device.", verdict=True)


def _launches(trace: Trace) -> Iterator[Lack]:
    """Launches whose device work isn't in the trace."""
    launches = _in_steps(trace, trace.where(is_launch, *CALLS))
    if not len(launches):
        return
    recorded = int(np.count_nonzero(trace.started_work(launches))) / len(launches)
    if recorded < COMPLETE:
        lost = f"Only {recorded:.0%} of the launches have their device work in the trace"
        yield Lack(f"{lost}: the device may be busy where it looks idle.", verdict=recorded < RECORDED)


def _graphs(trace: Trace) -> Iterator[Lack]:
    """Graphs that were replayed without a trace of their kernels, or of some of them."""
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
        lost = f"Behind {len(partly)} of {len(held)} graph launches the device seems to be held by nothing"
        said = f"{lost}, for {median(partly) / 1e6:.3g} ms: a part of their kernels isn't in the trace"
        withheld = len(partly) > (1.0 - RECORDED) * len(held)
        yield Lack(f"{said}, and it may be busy where it looks idle.", verdict=withheld, waits=withheld)


def _in_steps(trace: Trace, calls: Int64) -> Int64:
    """Of these rows of calls those in the steps that can have device work: they have a correlation."""
    s = trace.slices
    calls = calls[s.correlation.take(calls) != NONE]
    if trace.steps:
        ts = s.ts.take(calls)
        calls = calls[(ts >= trace.steps[0].ts) & (ts < trace.steps[-1].end)]
    return calls


def _clocks(trace: Trace) -> Iterator[Lack]:
    """Work that begins long before it was launched, or ends long behind the wait for it."""
    s, rows, calls = trace.slices, trace.device_rows, trace.device_calls
    linked = calls != NONE
    if not linked.any():
        yield Lack("No device work names its launch: what held the device up can't be told.", verdict=True)
        return
    too_early = linked & (s.ts.take(rows) < s.ts.take(calls) - SKEW_NS)
    early = int(np.count_nonzero(too_early)) / int(np.count_nonzero(linked))
    if early > SKEWED:
        said = f"{early:.0%} of the device work begins before its launch: the clocks of host and device disagree"
        yield Lack(f"{said}.", verdict=True, waits=True)
    elif device_clock(trace).late:
        late = f"at least {(device_clock(trace).least or 0) / 1e3:.0f} µs late"
        said = "The host's waits return before what they wait for is done: the clocks of host and device disagree"
        yield Lack(f"{said}, device times are {late}.", verdict=True, waits=True)


def _streams(trace: Trace) -> Iterator[Lack]:
    """Streams that are said to work longer than there is time, beyond what may lawfully overlap."""
    device_work = trace.kept(DeviceWork)
    dependent = (trace.info.compute_capability or (0, 0)) >= DEPENDENT_LAUNCH
    most = TWO_AT_ONCE if dependent and trace.info.vendor is Vendor.CUDA else 1.0 + AT_ONCE
    for device in device_work.devices:
        for stream, work in device_work.by_stream(device).items():
            took, there_was = _told(trace, work.rows), float(work.busy_sum[-1])
            if took > most * there_was:
                ms = f"{took / 1e6:.3g} ms in {there_was / 1e6:.3g} ms"
                said = f"Stream {stream} of device {device} is said to work {ms}"
                yield Lack(f"{said}, though a stream does one thing after the other.", verdict=True, waits=True)


def _told(trace: Trace, rows: Int64) -> float:
    """How long this work of one stream is said to take, ns; that of one graph's launch may lie side by side."""
    s, calls = trace.slices, trace.calls_of(rows)
    of_graph = (calls != NONE) & trace.called(calls, is_graph_launch)
    took = float(s.dur[rows[~of_graph]].sum())
    inside = rows[of_graph][np.argsort(s.ts[rows[of_graph]], kind="stable")]
    starts, ends = union(s.ts[inside], s.end[inside])
    return took + float((ends - starts).sum())


def _events(trace: Trace) -> Iterator[Lack]:
    """Waits for an event that don't say which record of it they mean."""
    rows = trace.where(waits_for_event, Category.SYNC)
    unresolved = int(np.count_nonzero(trace.slices.awaits[rows] == NONE))
    if unresolved:
        waits = f"{unresolved} of {len(rows)} waits for an event don't name the record that they wait for"
        yield Lack(f"{waits} (so in CUDA 12.9 and later): which work it is was inferred from order and time.")
