"""The profiler's own work, by its own rows, is no time of a step; the driver's is."""

from __future__ import annotations

import pytest

from syncscan.api import analyze_trace
from syncscan.facts.profiler_overhead import profilers_own
from syncscan.model.analysis import Analysis
from syncscan.report.phrases import steps_found
from tests.builder import MAIN, TraceBuilder

STEP = 2400.0


def steps(held: dict[int, float], name: str = "Activity Buffer Request", between: bool = False) -> TraceBuilder:
    """Four steps of 20 launches; in some of them one launch, or the pause behind it, holds the profiler's own work.

    Args:
        held: number of the step → how long, µs.
        name: of the row.
        between: it lies behind the launch, where the thread does nothing else.
    """
    t, at = TraceBuilder(), 0.0
    for number in range(4):
        overhead_of_step = held.get(number, 0.0)
        with t.step(at, at + STEP + overhead_of_step):
            start = at + 10
            for launch in range(20):
                overhead = overhead_of_step if launch == 10 else 0.0
                inside = 0.0 if between else overhead
                with t.op("aten::linear", start, start + 18 + inside):
                    t.call("cudaLaunchKernel", start + 3, start + 7 + inside)
                    t._work("kernel", "gemm", start + 8 + inside, 30, 7, 0)
                if overhead:
                    begin = start + (30 if between else 4)
                    t.event(ph="X", cat="overhead", name=name, pid=-1, tid=0, ts=begin, dur=overhead, args={})
                start += 100 + overhead
            t.sync("aten::item", at=start)
        at += STEP + overhead_of_step
    return t


def analyzed(t: TraceBuilder) -> Analysis:
    return analyze_trace(t.trace())


@pytest.mark.parametrize("between", [False, True], ids=["in a call", "between calls"])
@pytest.mark.parametrize("held", [{1: 10_000.0}, dict.fromkeys(range(4), 3000.0)], ids=["one step", "each step"])
def test_the_step_is_as_long_as_without_it(held: dict[int, float], between: bool) -> None:
    """Its time, its verdict, its host's parts and its projections are those of the same steps without the rows."""
    usual, analysis = analyzed(steps({})), analyzed(steps(held, between=between))
    assert analysis.step.observed_us == usual.step.observed_us == STEP
    assert analysis.step.reason == usual.step.reason
    assert analysis.host_time.counted == usual.host_time.counted
    assert analysis.whatif("all").predicted_us == pytest.approx(usual.whatif("all").predicted_us, rel=1e-3)
    assert analysis.whatif("all").host_limit_us == pytest.approx(usual.whatif("all").host_limit_us, rel=1e-3)


def test_it_is_reported() -> None:
    """In how many steps, and how long."""
    text = steps_found(analyzed(steps({1: 10_000.0})))
    assert "Profiler overhead in 1 of them (10.0 ms, rows of category overhead) is excluded from all times." in text
    assert "profiler's own" not in steps_found(analyzed(steps({1: 20.0})))


@pytest.mark.parametrize("name", ["Command Buffer Full", "Lazy Function Loading", "Driver Compiler"])
def test_what_the_driver_does_is_the_steps(name: str) -> None:
    """A full queue, a kernel that is loaded when it is first used: so it is without a profiler too."""
    analysis = analyzed(steps({1: 10_000.0}, name))
    assert analysis.step.observed_us == STEP + 2500
    assert profilers_own(analysis.trace) == ()


def test_a_row_beside_a_working_thread_holds_nobody() -> None:
    """CUPTI flushes its buffers on a thread of its own."""
    t = steps({})
    t.event(ph="X", cat="overhead", name="Buffer Flush", pid=-1, tid=0, ts=100, dur=900, args={})
    assert profilers_own(t.trace()) == ()


def test_a_row_on_a_threads_own_track_is_of_that_thread() -> None:
    """So kineto writes it since 2026."""
    t = steps({})
    t.event(ph="X", cat="overhead", name="Buffer Flush", pid=MAIN, tid=MAIN, ts=1500, dur=80, args={})
    (own,) = profilers_own(t.trace())
    assert (own.begin, own.end) == (1_500_000, 1_580_000)
