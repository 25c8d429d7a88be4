"""How long a program was held: threads that wait side by side are counted once."""

from __future__ import annotations

from syncscan.api import analyze_trace
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
    """The same sync in the same op on two threads."""
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
