"""Device times that cannot be right are set aside and named: no times at all, or a duration over many later ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from syncscan.api import analyze_trace
from syncscan.model.step import Bound
from syncscan.model.trace import Trace
from tests.builder import TraceBuilder


def launching(kernels: int = 40, steps: int = 6) -> TraceBuilder:
    """Steps of 1 ms whose kernels take 800 µs, one after the other."""
    t = TraceBuilder()
    for start in t.steps(steps, lasts=1000):
        for k in range(kernels):
            t.launch("gemm", at=start + 10 + 20 * k, lasts=800 / kernels)
    return t


def kernels_of(t: TraceBuilder) -> Iterator[dict[str, Any]]:
    return (event for event in t.events if event.get("cat") == "kernel")


def noted(trace: Trace, text: str) -> bool:
    return any(text in warning for warning in trace.info.warnings)


def test_work_that_covers_many_later_ones_ends_where_the_next_one_begins() -> None:
    """Two of 240 kernels last 1.6 s: the steps, their bound and the device's end stay those of the others."""
    t = launching()
    for number, event in enumerate(kernels_of(t)):
        event["dur"] = 1_600_000 if number in (50, 150) else event["dur"]
    trace = t.trace()
    assert noted(trace, "2 device records have a duration (up to 1.60 s) that covers many later ones")
    usual, analysis = analyze_trace(launching().trace()), analyze_trace(trace)
    assert analysis.step.bound is usual.step.bound is Bound.HOST
    assert analysis.step.observed_us == pytest.approx(usual.step.observed_us, rel=0.01)


@pytest.mark.parametrize("few", [False, True])
def test_a_stream_whose_work_often_overlaps_is_left_as_it_is(few: bool) -> None:
    """Another backend may run it so: that is reported, not repaired. Nor is an overlap with the next few."""
    t = launching()
    for number, event in enumerate(kernels_of(t)):
        event["dur"] = (100 if number % 40 == 0 else 20) if few else 400
    assert not noted(t.trace(), "later ones")


def test_branches_of_one_graph_launch_may_run_beside_each_other() -> None:
    """Its kernels share the launch's number."""
    t = launching()
    for number, event in enumerate(kernels_of(t)):
        event["args"]["correlation"] = 5000 + number // 40
        event["dur"] = 600 if number == 40 else event["dur"]
    assert not noted(t.trace(), "later ones")


def test_work_without_times_is_left_out() -> None:
    """It begins at 0 and lasts 0, long before its launch; then the clocks aren't to blame."""
    t = launching()
    with t.step(6000, 7000):
        t.launch("gemm", at=6100, lasts=10)
    for number, event in enumerate(kernels_of(t)):
        if number >= 40:
            event.update(ts=0, dur=0)
    trace = t.trace()
    assert noted(trace, "201 device records have no times (begin and length 0): left out.")
    reason = " ".join(analyze_trace(trace).integrity.sentences())
    assert "clocks" not in reason
    assert "launches have device work in the trace" in reason


def test_work_of_no_length_at_the_begin_of_all_is_work() -> None:
    """A copy too short for the profiler's clock may begin with the trace."""
    t = launching(steps=2)
    first = next(kernels_of(t))
    first.update(ts=0, dur=0)
    assert not noted(t.trace(), "no times")
