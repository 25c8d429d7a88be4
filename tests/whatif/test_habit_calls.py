"""Facts about habits whose removal takes calls with it that are sync points too."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from syncscan.api import analyze_trace
from syncscan.model.habit import Change
from syncscan.model.interval import ThreadInterval
from syncscan.whatif.habit_gains import project_habits
from syncscan.whatif.projector import Projector
from tests.builder import TraceBuilder
from tests.report.example import LAUNCHES


def gain(change_of: str, cost_us: float) -> float:
    """Return the gain of a step of 1,000 µs without one of its calls: 200 µs that take memory, or 300 that wait for a
    kernel.
    """
    t = TraceBuilder(syncscan={"unprofiled_step_us": 1000.0})
    for start in t.steps(4, lasts=1000):
        t.launch("kernel", at=start + 2, lasts=20)
        t.call("cudaMalloc", start + 100, start + 300)
        t.launch("kernel", at=start + 400, lasts=300)
        t.synchronize(at=start + 402)
    analysis = analyze_trace(t.trace())
    trace = analysis.trace
    s, calls = trace.slices, tuple(row for row in range(len(trace.slices)) if trace.name(row) == change_of)
    host = tuple(ThreadInterval(int(s.track[call]), int(s.ts[call]), int(s.end[call])) for call in calls)
    habit = replace(LAUNCHES, cost_us=cost_us, changes=(Change(host=host, calls=calls),))
    projector = Projector(trace, analysis.findings, analysis.step.unprofiled_us)
    result = project_habits(projector, [habit])
    return (result[0].recoverable_us or 0.0) if result else 0.0


def test_a_call_that_goes_takes_its_time_with_it() -> None:
    """Though a sync point's time isn't its thread's own in the replay."""
    assert gain("cudaMalloc", 200.0) == pytest.approx(200, abs=5)


def test_a_call_that_goes_takes_its_wait_with_it() -> None:
    """300 µs of waiting for the kernel."""
    assert gain("cudaDeviceSynchronize", 300.0) == pytest.approx(300, abs=5)


def test_no_more_is_gained_than_the_calls_cost() -> None:
    """Whatever the replay says."""
    assert gain("cudaMalloc", 150.0) == 150.0
