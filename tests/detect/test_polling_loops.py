"""A loop that asks until the device is done is one wait; queries that wait for nothing are none."""

from __future__ import annotations

import pytest

from syncscan.api import analyze_trace
from syncscan.detect import detect
from syncscan.model.analysis import Analysis
from syncscan.model.finding import SyncPoint
from tests.builder import TraceBuilder


def polled(
    api: str = "cudaEventQuery", every: float = 40, until: float = 2450, vendor: str = "cuda", op: str = ""
) -> TraceBuilder:
    """Two steps of 3 ms, each with 2 ms of work that the host asks about so often, until a time of the step."""
    t = TraceBuilder(vendor)
    for start in t.steps(2, lasts=3000):
        done = t.launch("busy", at=start + 10, lasts=1900) - start
        t.call("cudaEventRecord", start + 20, start + 22)
        if op:
            t.op(op, start + 24, start + 2990)
        at = 30.0
        while at < min(done + every, until):
            t.call(api, start + at, start + at + 2)
            at += every
        t.launch("next", at=start + 2500, lasts=100)
    return t


def points(t: TraceBuilder) -> list[SyncPoint]:
    result, warnings = detect(t.trace())
    assert warnings == ()
    return [point for point in result if not point.diagnosis.intended]


@pytest.mark.parametrize("every", [5, 40, 500])
@pytest.mark.parametrize(
    ("api", "vendor", "target"),
    [
        ("cudaEventQuery", "cuda", "an event"),
        ("cudaStreamQuery", "cuda", "a stream"),
        ("hipEventQuery", "rocm", "event"),
    ],
)
def test_a_loop_of_queries_is_one_wait(api: str, vendor: str, target: str, every: float) -> None:
    """It goes from the first query to the last, and waits until the work is done."""
    first, second = points(polled(api, every, vendor=vendor))
    assert first.diagnosis.rule == second.diagnosis.rule == "polling"
    assert target in first.diagnosis.title
    assert first.ts == 30_000
    assert first.awaited is not None
    assert first.awaited.done == 1_911_000
    assert first.awaited.done <= first.end <= first.awaited.done + every * 1000 + 2000


def analyzed(t: TraceBuilder) -> Analysis:
    return analyze_trace(t.trace())


def test_it_costs_what_it_held_the_host() -> None:
    """The cost spans the first query until the work was done, with all of Python's work between the queries."""
    (finding,) = analyzed(polled()).findings
    assert finding.wait_us == 1911 - 30
    assert 0 < finding.bubble_us <= 2501 - 1911


def test_the_hosts_time_in_it_is_waiting() -> None:
    """It is neither queries nor Python."""
    counted = analyzed(polled()).host_time.counted
    assert counted is not None
    assert counted.waits_us == 1911 - 30
    assert counted.queries_us < 50


def test_the_step_without_it_is_as_long_as_its_work_or_its_host() -> None:
    """A replay that leaves the loop out launches what is behind it at once."""
    analysis = analyzed(polled())
    projection = analysis.whatif("all")
    assert projection.predicted_us == pytest.approx(2000, rel=0.1)
    assert projection.baseline_us == pytest.approx(3000, rel=0.05)


@pytest.mark.parametrize(
    "t",
    [
        polled(until=100),
        polled(op="aten::empty"),
        polled(every=5000),
    ],
    ids=["given up before the work is done", "in an op, as the allocator's", "asked once per step"],
)
def test_queries_that_do_not_wait_are_none(t: TraceBuilder) -> None:
    """Nothing was done when they ended, or torch itself asks."""
    assert points(t) == []


def test_a_query_between_launches_does_not_wait() -> None:
    """The program goes on meanwhile."""
    t = TraceBuilder()
    with t.step(0, 3000):
        t.launch("busy", at=10, lasts=1900)
        for at in range(30, 2000, 40):
            t.call("cudaEventQuery", at, at + 2)
            t.launch("small", at=at + 5, lasts=20, stream=9)
    assert points(t) == []


def test_a_watchdogs_thread_holds_nobody_up() -> None:
    """NCCL asks for its collectives on a thread that launches nothing."""
    t = TraceBuilder()
    with t.step(0, 3000):
        t.launch("busy", at=10, lasts=1900)
        with t.thread("pt_nccl_watchdg"):
            for at in range(30, 2000, 40):
                t.call("cudaEventQuery", at, at + 2)
    assert points(t) == []


def test_recording_its_queries_takes_none_of_the_hosts_own_time() -> None:
    """The host waits meanwhile, so the profiler's estimated overhead is the same for many queries as for few."""
    many, few = (analyzed(polled(every=every)).step.guessed_overhead for every in (5, 400))
    assert many == pytest.approx(few, rel=0.2)
