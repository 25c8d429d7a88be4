"""One step unfolded from its replay: each launch has its time, in order, and ends where the replay says."""

from __future__ import annotations

import numpy as np
import pytest

from syncscan import api
from syncscan.model.analysis import Analysis
from syncscan.model.projection import Schedule
from tests.builder import TraceBuilder


def story() -> Analysis:
    """Three steps: kernels, a nonzero that waits for them, and a busy host with little kernels behind it."""
    t = TraceBuilder()
    for start in t.steps(3, lasts=2000):
        with t.scope("select", start + 5, start + 900):
            for k in range(10):
                t.launch("gemm", at=start + 20 + 4 * k, lasts=60)
            t.sync("aten::nonzero", at=start + 100)
        with t.scope("heads", start + 1000, start + 1900):
            for k in range(20):
                t.launch("head", at=start + 1010 + 40 * k, lasts=5)
    return api.analyze_trace(t.trace())


def schedule(analysis: Analysis, *selectors: str) -> Schedule:
    result = analysis.schedule(*selectors)
    assert result is not None
    return result


def test_with_nothing_removed_the_step_is_as_recorded():
    """Launches start where they did, to 2 % of the step, and the step is as long."""
    analysis = story()
    s = schedule(analysis)
    assert s.replayed_end == pytest.approx(s.end, abs=2_000)
    early_or_late = s.start - analysis.trace.slices.ts[s.rows]
    assert np.median(np.abs(early_or_late)) < 40_000
    assert len(s.rows) == 32


def test_without_the_sync_the_step_is_as_short_as_projected():
    """The unfolded step ends where the projection says, in proportion."""
    analysis = story()
    s, p = schedule(analysis, "all"), analysis.whatif("all", fix=True)
    assert (s.replayed_end - s.begin) / (s.end - s.begin) == pytest.approx(p.predicted_us / p.baseline_us, rel=0.02)
    assert s.replayed_end < s.end - 300_000


@pytest.mark.parametrize("selectors", [(), ("all",)])
def test_work_of_a_stream_never_overlaps(selectors: tuple[str, ...]):
    """On a stream one piece of work follows the other."""
    s = schedule(story(), *selectors)
    order = np.argsort(s.start)
    start, end = s.start[order], (s.start + s.dur)[order]
    assert (start[1:] >= end[:-1]).all()


def test_the_host_s_clock_only_goes_on():
    """Recorded times map to replayed ones without going back; what follows the removed wait comes earlier."""
    analysis = story()
    s = schedule(analysis, "all")
    times = np.linspace(s.begin, s.end, 500).astype(np.int64)
    assert (np.diff(s.host(times)) >= 0).all()
    assert s.host(np.array([s.begin])).tolist() == [s.begin]
    heads = next(r for r in range(len(analysis.trace.slices)) if analysis.trace.name(r) == "heads")
    offset = int(analysis.trace.slices.ts[heads]) - analysis.trace.steps[0].ts
    assert int(s.host(np.array([s.begin + offset]))[0]) < s.begin + offset - 300_000


def test_a_step_is_chosen_by_time():
    """`at` picks the step around it."""
    analysis = story()
    for step in analysis.trace.steps:
        assert analysis.schedule("all", at=step.ts + 500_000).begin == step.ts


def test_without_device_work_there_is_none():
    """A trace of a CPU can't be replayed."""
    t = TraceBuilder(vendor="none")
    for start in t.steps(2, lasts=100):
        t.op("aten::mm", start + 1, start + 50)
    assert api.analyze_trace(t.trace()).schedule() is None


def test_a_step_without_launches_is_empty():
    """Only another step launched anything: nothing is drawn, and the step lasts what it lasted."""
    t = TraceBuilder()
    for start in t.steps(3, lasts=1000):
        if start == 0:
            t.launch("kernel", at=start + 10, lasts=100)
            t.sync("aten::nonzero", at=start + 20)
    result = api.analyze_trace(t.trace()).schedule(at=1_500_000)
    assert result is not None
    assert len(result.rows) == 0
    assert (result.begin, result.end) == (1_000_000, 2_000_000)


def test_where_the_host_is_blocked_is_in_it():
    """As it is the nonzero blocks the host until its work is done; without it nothing does."""
    analysis = story()
    (blocked,) = schedule(analysis).blocked
    assert analysis.findings[blocked.finding].rule == "nonzero"
    assert blocked.end - blocked.begin == pytest.approx(520_000, rel=0.1)
    assert schedule(analysis, "all").blocked == ()


def test_a_step_after_fixes_is_the_projected_one():
    """Its time and range are those of `whatif`; with nothing fixed the step is as it is."""
    analysis = story()
    assert analysis.projector is not None
    after = analysis.projector.after([f.id for f in analysis.findings], [], at=None)
    projected = analysis.whatif("all", fix=True)
    assert after is not None
    assert (after.us, after.range_us) == (projected.predicted_us, projected.range_us)
    unchanged = analysis.projector.after([], [], at=None)
    assert unchanged is not None
    assert unchanged.us == projected.baseline_us
