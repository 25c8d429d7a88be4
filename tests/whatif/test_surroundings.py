"""Other ranks decide a part of a step: some findings wait for them."""

from __future__ import annotations

import pytest

from syncscan.api import analyze_trace
from syncscan.whatif.surroundings import surroundings_of
from tests.builder import TraceBuilder


@pytest.mark.parametrize(("collective", "behind"), [(0.51, {0}), (0.49, set()), (0.0, set())])
def test_a_finding_waits_for_ranks_if_a_collective_alone_fills_half_of_its_wait(
    collective: float, behind: set[int]
) -> None:
    """A synchronize of 1,000 µs waits for a kernel and for a collective behind it."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=2000):
        t.launch(at=start + 1, lasts=1008 - 1000 * collective)
        if collective:
            t.collective(at=start + 3, begins=start + 1010 - 1000 * collective, until=start + 1010, stream=13)
        t.call("cudaDeviceSynchronize", start + 10, start + 1010)
    analysis = analyze_trace(t.trace())
    assert [f.wait_us for f in analysis.findings] == pytest.approx([1000], abs=1)
    assert surroundings_of(analysis.trace, analysis.findings, analysis.step).behind == behind
