"""Facts about what habits are projected to gain: each saves at least what can be measured, whatever the step."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from syncscan import api, habits
from syncscan.model.analysis import Analysis
from syncscan.model.step import REPEATABILITY
from tests.builder import TraceBuilder
from tests.each import each
from tests.recordings import RECORDINGS, analyzed, large, name


def least_share(analysis: Analysis) -> float:
    """The smallest gain of a habit, as a part of the step; 1 where none is listed with a gain."""
    step = analysis.step
    period = step.unprofiled_us or step.observed_us
    return min((h.recoverable_us / period for h in analysis.habits if h.basis), default=1.0)


@each("path", RECORDINGS, name, large)
def test_a_habit_of_a_recording_saves_at_least_what_can_be_measured(path: Path) -> None:
    """Two measurements of one step differ by as much: what is below can't be told from nothing."""
    assert least_share(analyzed(path)) >= 0.99 * REPEATABILITY


LENGTHS = st.floats(0.0, 400.0)


@given(LENGTHS, LENGTHS, LENGTHS, st.integers(0, 80), st.sampled_from([None, 900.0]))
def test_a_habit_of_any_step_saves_at_least_what_can_be_measured(
    loading: float, pinning: float, product: float, launches: int, unprofiled: float | None
) -> None:
    """A loader, a pin, a product in fp32 and many launches, each from nothing to a notable part of the step."""
    t = TraceBuilder(**({"syncscan": {"unprofiled_step_us": unprofiled}} if unprofiled else {}))
    t.metadata["deviceProperties"] = [{"id": 0, "name": "A100", "computeMajor": 8, "computeMinor": 0}]
    for start in t.steps(3, lasts=2000):
        t.scope("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", start + 1, start + 1 + loading)
        t.op("aten::pin_memory", start + 402, start + 402 + pinning)
        with t.op("aten::mm", start + 810, start + 820):
            t.launch("volta_sgemm_128x64_nn", at=start + 811, lasts=product)
        for k in range(launches):
            t.launch("tiny", at=start + 830 + 12 * k, lasts=1)
    assert least_share(api.analyze_trace(t.trace())) >= 0.99 * REPEATABILITY


def test_a_habit_below_that_is_found_and_not_listed() -> None:
    """A product of 300 µs that a host of 2,000 hides would save nothing in tf32."""
    t = TraceBuilder()
    t.metadata["deviceProperties"] = [{"id": 0, "name": "A100", "computeMajor": 8, "computeMinor": 0}]
    for start in t.steps(3, lasts=2000):
        with t.op("aten::mm", start + 10, start + 20):
            t.launch("volta_sgemm_128x64_nn", at=start + 11, lasts=300)
    analysis = api.analyze_trace(t.trace())
    result, _ = habits.find(analysis.trace, analysis.findings, analysis.step)
    assert [h.rule for h in result] == ["fp32-matmul"]
    assert analysis.habits == ()
