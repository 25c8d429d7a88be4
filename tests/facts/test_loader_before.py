"""What a loader takes before the first launch of a trace without marks, which is in no step."""

from __future__ import annotations

from syncscan.api import analyze_trace
from syncscan.facts.loader_before import loader_before
from syncscan.report.phrases import steps_found
from tests.builder import TraceBuilder

NEXT = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def one_pass(loads: float, marked: bool = False) -> TraceBuilder:
    """A pass that loads, and then works for 3 ms."""
    t = TraceBuilder()
    if marked:
        t.step(0, loads + 3100)
    t.scope(NEXT, 10, 10 + loads)
    t.launch("gemm", at=loads + 50, lasts=2000)
    t.sync("aten::item", at=loads + 60)
    return t


def test_without_marks_it_is_said() -> None:
    """The time from the first launch on holds none of it."""
    trace = one_pass(50_000).trace()
    assert loader_before(trace) == 50_000_000
    said = steps_found(analyze_trace(trace))
    assert "The DataLoader took 50.0 ms before the first launch, which is in none of these numbers" in said


def test_with_marks_it_is_the_steps() -> None:
    """There it counts as input."""
    trace = one_pass(50_000, marked=True).trace()
    assert loader_before(trace) == 0
    assert analyze_trace(trace).step.input_us == 50_000


def test_a_short_one_is_not_worth_a_word() -> None:
    """A twentieth of the step, or less."""
    assert "DataLoader" not in steps_found(analyze_trace(one_pass(60).trace()))
