"""Work that is done once, on first use, or anew for each new shape, is a finding of its own, not slow launching."""

from __future__ import annotations

import pytest

from syncscan.api import analyze_trace
from syncscan.model.habit import Habit
from syncscan.report import render
from tests.builder import TraceBuilder

ATTENTION = "aten::_cudnn_attention_forward"


def habits_of(t: TraceBuilder) -> dict[str, Habit]:
    """The habits of a trace by rule."""
    return {habit.rule: habit for habit in analyze_trace(t.trace()).habits}


def launching(lengths: list[float]) -> TraceBuilder:
    """One step whose launches take these µs, 50 µs apart."""
    t, at = TraceBuilder("rocm"), 100.0
    with t.step(0, sum(lengths) + 50 * len(lengths) + 200):
        for number, length in enumerate(lengths):
            with t.op("aten::add", at - 10, at + length + 10):
                t.call("cudaLaunchKernel", at, at + length, correlation=number)
            work = {"device": 0, "stream": 7, "correlation": number}
            t.event(ph="X", cat="kernel", name="add", pid=0, tid=7, ts=at + length + 1, dur=10, args=work)
            at += length + 50
    return t


def planning(op: str, takes: float, launches: int = 1, calls: int = 8) -> TraceBuilder:
    """Three steps of 46 ms in which calls of this op take so long on the host, with so many launches each."""
    t = TraceBuilder()
    for start in t.steps(3, lasts=46_000):
        for k in range(calls):
            begin = start + 10 + 5000 * k
            with t.op(op, begin, begin + takes):
                for number in range(launches):
                    t.launch("work", at=begin + takes - 2 * launches + 2 * number, lasts=1)
    return t


def test_an_op_that_plans_for_each_new_shape_is_named() -> None:
    """With how often, how long, and what to do."""
    habit = habits_of(planning(ATTENTION, 4000))["op-setup"]
    assert habit.title == f"{ATTENTION} sets something up in 24 of its 24 calls"
    assert "enable_cudnn_sdp(False)" in habit.fix
    assert habit.recoverable_us is not None
    assert habit.recoverable_us == pytest.approx(32_000, rel=0.02)


@pytest.mark.parametrize(
    ("op", "takes", "launches", "calls"),
    [(ATTENTION, 700, 1, 8), ("aten::_foreach_add_", 4000, 20, 8), ("mine::op", 4000, 1, 8), ("aten::add", 4000, 0, 8)],
)
def test_other_ops_just_take_their_time(op: str, takes: float, launches: int, calls: int) -> None:
    """Dispatch takes less; many launches take as long; the program's own ops may compute, as ops on the CPU do."""
    t = planning(op, takes, launches, calls)
    t.launch("last", at=138_001, lasts=1)
    assert "op-setup" not in habits_of(t)


def test_without_marked_steps_the_report_names_them_too() -> None:
    """A program recorded whole: a library that is set up takes most of it, which no step gains."""
    t = TraceBuilder()
    with t.op("aten::linear", 100, 2_000_500):
        t.launch("before", at=110, lasts=50)
        t.call("cudaFree", 200, 2_000_200)
        t.launch("gemm", at=2_000_300, lasts=50)
    analysis = analyze_trace(t.trace())
    text = " ".join(render(analysis, "text").split())
    assert "1 call takes 2.00 s of 2.00 s, as on first use, once, to load code or set a library up" in text
    assert "CUDA graphs" not in text
    assert [finding.recoverable_us for finding in analysis.findings] == [None]
