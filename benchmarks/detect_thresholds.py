"""Print the figures that the thresholds of `syncscan.detect` rest on and their comments quote, from the recordings.

    python -m benchmarks.detect_thresholds [TRACE …]        (default: everything in sample_traces)

Recorded on an H200 with torch 2.11 (sample_traces/README.md). Run it again on recordings of another chip or version
before moving a threshold.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from syncscan import load
from syncscan.detect import Call, calls_of
from syncscan.facts.device_work import DeviceWork
from syncscan.facts.event_records import EventRecords
from syncscan.model.runtime_calls import (
    api_name,
    is_copy,
    is_graph_launch,
    is_stream_wait,
    is_synchronize,
    only_asks,
    waits_by_nature,
)
from syncscan.model.trace import CALLS, NONE, Category, Trace

SAMPLES = Path(__file__).parent.parent / "sample_traces"


def measure(paths: Sequence[Path]) -> None:
    traces = [load.load(path) for path in paths]
    returns, empty, unknown = [], [], []
    for trace in traces:
        work = DeviceWork(trace)
        for call in calls_of(trace):
            point = call.point
            ends, some = work.last_ends([(point.device, point.stream)], np.array([point.ts]))
            done = ends.item() if some.item() else None
            if not waits_by_nature(point.apis[0]):
                unknown.append(point.end - point.ts)
            elif done is not None and done - point.ts > 200_000 and point.end >= done:
                returns.append(point.end - done)
            elif done is not None and done <= point.ts:
                empty.append(point.end - point.ts)
    show("a wait returns this long after its work (µs)", returns)
    show("a call with nothing queued takes (µs)", empty)
    show("an allocator or unknown call takes (µs)", unknown)
    pairs = [pair for trace in traces for pair in copies_and_synchronizes(trace)]
    show("from a copy to its synchronize, in an op (µs)", [gap for gap, _, op in pairs if op])
    show("from a copy to its synchronize, without an op (µs)", [gap for gap, _, op in pairs if not op])
    print("calls between the two:", dict(sorted(Counter(n for _, n, _ in pairs).items())))
    show(
        "a copy's call returns this long after the copy (µs)", [ns for trace in traces for ns in copies_returned(trace)]
    )
    show("work begins this long after what its stream waits for (µs)", [ns for t in traces for ns in streams_apart(t)])
    followed = [ns for trace in traces for ns in work_followed(trace)]
    show("work that begins before the end of the one before on its stream, by (µs)", [-ns for ns in followed if ns < 0])
    print(f"  of {len(followed)} kernels and copies")
    for path, trace in zip(paths, traces, strict=True):
        share, count = blocking_launches(trace)
        print(f"launches that outlast their kernel: {share:6.1%} of {count:5} {path.name}")
    show_next(traces)


def copies_and_synchronizes(trace: Trace) -> Iterator[tuple[int, int, bool]]:
    """Gap in ns, calls between, and whether an op is around, of every copy whose next call but queries synchronizes."""
    slices = trace.slices
    rows = np.flatnonzero(trace.is_category(*CALLS))
    names = [api_name(trace.name(int(row))) for row in rows]
    for at, name in enumerate(names):
        if not is_copy(name):
            continue
        after = next((k for k in range(at + 1, len(rows)) if not only_asks(names[k])), None)
        if after is None or not is_synchronize(names[after]) or slices.track[rows[after]] != slices.track[rows[at]]:
            continue
        parent = int(slices.parent[rows[at]])
        if parent != slices.parent[rows[after]]:
            continue
        op = parent != NONE and slices.category[parent] == Category.CPU_OP
        yield int(slices.ts[rows[after]] - slices.end[rows[at]]), after - at - 1, bool(op)


def copies_returned(trace: Trace) -> Iterator[int]:
    """How much later than its own pageable copy each call returned that waited 50 µs for it, ns."""
    s = trace.slices
    for call in calls_of(trace):
        copy = trace.copies_of(np.array(call.point.calls[:1])).item()
        pinned = "Pinned" in call.point.copy
        if call.point.awaited and copy != NONE and not pinned and s.end[copy] - call.point.ts > 50_000:
            yield int(call.point.end - s.end[copy])


def streams_apart(trace: Trace) -> Iterator[int]:
    """How much later than the work before a record work began whose stream waits for it, as the trace states, ns."""
    s, known = trace.slices, np.flatnonzero(trace.device_calls != NONE)
    work, calls = trace.device_rows[known], trace.device_calls[known]
    order = np.lexsort((s.ts[calls], s.track[calls]))
    work, calls = work[order], calls[order]
    waits = set(trace.where(is_stream_wait, *CALLS).tolist())
    for wait, record in EventRecords(trace).stated.items():
        same_track = work[s.track[calls] == s.track[wait]]
        issued = s.ts[calls[s.track[calls] == s.track[wait]]]
        first, last = (int(issued.searchsorted(s.ts[row])) for row in (wait, record))
        if (
            wait in waits
            and last
            and first < len(same_track)
            and s.stream[same_track[first]] != s.stream[same_track[last - 1]]
        ):
            place = s.device.item(same_track[last - 1]), s.stream.item(same_track[last - 1])
            ends, _ = trace.cached(DeviceWork).last_ends([place], s.ts[[record]])
            yield int(s.ts[same_track[first]] - ends[0])


def work_followed(trace: Trace) -> Iterator[int]:
    """How much later than the end of all before on its stream each kernel and copy began, ns."""
    s, work = trace.slices, trace.cached(DeviceWork)
    for device in work.devices:
        for of_stream in work.by_stream(device).values():
            rows = of_stream.rows[np.argsort(s.ts[of_stream.rows], kind="stable")]
            yield from (s.ts[rows[1:]] - np.maximum.accumulate(s.end[rows])[:-1]).tolist()


def blocking_launches(trace: Trace) -> tuple[float, int]:
    """The share of kernels that end before their launch call does, and how many kernels there are."""
    slices = trace.slices
    kernels = np.flatnonzero(trace.is_category(Category.KERNEL))
    launch = trace.calls_of(kernels)
    single = (launch != NONE) & ~trace.named(is_graph_launch)[launch]
    kernel, launch = kernels[single], launch[single]
    return (float((slices.end[kernel] <= slices.end[launch] + 1_000).mean()) if len(kernel) else 0.0), len(kernel)


def show_next(traces: Sequence[Trace]) -> None:
    """How soon the next op begins after a number was read, by the case of the zoo that read it."""
    for trace in traces:
        for call in calls_of(trace):
            case = next((scope for scope in call.place.scopes if scope.startswith("op::")), "")
            if case and call.top == "aten::item" and call.after:
                gap = next_gap(call)
                print(f"{gap / 1e3:8.1f} µs to {call.after[0]:30} {case}")


def next_gap(call: Call) -> int:
    low, high = 0, 10_000_000
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if call.followed_within(middle) else (middle + 1, high)
    return low


def show(label: str, ns: Sequence[int]) -> None:
    if not ns:
        print(f"{label}: none")
        return
    cuts = np.percentile(np.array(ns) / 1e3, [0, 1, 5, 50, 90, 95, 99, 100])
    print(f"{label}: n {len(ns)}, 0/1/5/50/90/95/99/100 % " + " ".join(f"{cut:.1f}" for cut in cuts))


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="*", type=Path, metavar="TRACE")
    measure(parser.parse_args().traces or sorted(SAMPLES.rglob("*.json.gz")))


if __name__ == "__main__":
    main()
