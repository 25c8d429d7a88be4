"""How long a program was held: threads that wait side by side are counted once."""

from __future__ import annotations

from msgspec.structs import replace

from syncscan.api import analyze_trace
from syncscan.cost.held import times_held
from syncscan.model.finding import Cost, Occurrence
from tests.builder import MAIN, TraceBuilder


def test_waits_of_two_threads_at_once_are_one_wait_of_the_step() -> None:
    """800 and 600 µs of a step that takes 1,000, within each other."""
    t = TraceBuilder()
    with t.step(0, 1000):
        t.launch("busy", at=0, lasts=899)
        with t.op("aten::first", 90, 950):
            t.call("cudaStreamSynchronize", 100, 900)
    with t.thread("second", MAIN + 1), t.op("aten::second", 290, 950):
        t.call("cudaStreamSynchronize", 300, 900)
    analysis = analyze_trace(t.trace())
    assert sorted(f.wait_us for f in analysis.findings) == [600, 800]
    assert analysis.step.wait_us == 800


def test_a_finding_of_several_threads_counts_a_moment_once() -> None:
    """One sync in one op occurs on two threads."""
    t = TraceBuilder()
    with t.step(0, 1000):
        t.launch("busy", at=0, lasts=899)
        for tid, begins in ((MAIN, 100), (MAIN + 1, 50)):
            with t.thread("worker", tid), t.op("aten::mine", begins - 10, 950):
                t.call("cudaStreamSynchronize", begins, 900)
    (finding,) = analyze_trace(t.trace()).findings
    assert (finding.count, finding.wait_us) == (2, 850)


def test_waits_one_after_the_other_add_up() -> None:
    """On one thread they can't be at once."""
    t = TraceBuilder()
    with t.step(0, 1000):
        for at in (0, 500):
            t.launch("busy", at=at, lasts=300)
            t.synchronize(at=at + 10)
    assert analyze_trace(t.trace()).step.wait_us == 2 * 291


def occurrences(*waits: tuple[int, int]) -> list[Occurrence]:
    """Sync points that begin at such times and wait so long, ns."""
    t = TraceBuilder()
    with t.step(0, 1000):
        t.launch("busy", at=0, lasts=300)
        t.synchronize(at=10)
    one = analyze_trace(t.trace()).findings[0].occurrences[0]
    return [replace(one, sync=replace(one.sync, ts=ts), cost=Cost(wait, 0)) for ts, wait in waits]


def test_only_waits_of_one_group_are_at_once() -> None:
    """In any order, as far apart as a clock goes; a group without waits held nothing."""
    late = 2**62
    groups = [(30, 10), (0, 20), (10, 15)], [(5, 20), (late, 7), (40, 0)], [], [(0, 20), (15, 1)], [(7, 0)]
    assert times_held([occurrences(*group) for group in groups]) == [35, 27, 0, 20, 0]
