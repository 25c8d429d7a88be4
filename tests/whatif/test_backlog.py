"""A wait for work launched before the first step costs what it costs, gains nothing, and is no step's time anywhere."""

from __future__ import annotations

import pytest

from syncscan.api import analyze_trace
from syncscan.model.analysis import Analysis
from syncscan.model.step import Bound
from syncscan.report import render
from tests.builder import TraceBuilder

BACKLOG = 20_000


def held(kind: str, recorded: bool) -> Analysis:
    """Five steps of 4 ms with 2.4 ms of kernels, the first of which begins with a call that is blocked for 20 ms.

    Args:
        kind: that call: an explicit `sync`, a `copy` of pageable memory or a read-back, `item`.
        recorded: whether the file has the work that it waits for.
    """
    t = TraceBuilder()
    if recorded:
        work = {"device": 0, "stream": 7, "correlation": 9}
        t.event(ph="X", cat="kernel", name="earlier", pid=0, tid=7, ts=0, dur=BACKLOG - 10, args=work)
    begin = 0.0
    for number in range(5):
        end = begin + 4000 + (BACKLOG if number == 0 else 0)
        with t.step(begin, end):
            start = begin + BACKLOG if number == 0 else begin
            _blocked(t, kind, begin + 50, start)
            for k in range(40):
                t.launch("gemm", at=start + 20 + 95 * k, lasts=60)
        begin = end
    return analyze_trace(t.trace())


def _blocked(t: TraceBuilder, kind: str, begin: float, until: float) -> None:
    """The call at the begin of a step, which blocks until then; a short one in all steps but the first."""
    until = max(until, begin + 5)
    if kind == "sync":
        t.call("cudaStreamSynchronize", begin, until)
        return
    op, name = (
        ("aten::to", "HtoD (Pageable -> Device)") if kind == "copy" else ("aten::item", "DtoH (Device -> Pinned)")
    )
    args = {"correlation": int(begin), "device": 0, "stream": 7, "bytes": 1024}
    with t.op(op, begin - 2, until + 2):
        if kind == "copy":
            t.call("cudaMemcpyAsync", begin, until, correlation=int(begin))
        else:
            t.call("cudaMemcpyAsync", begin, begin + 1, correlation=int(begin))
            t.call("cudaStreamSynchronize", begin + 2, until)
    t.event(ph="X", cat="gpu_memcpy", name=f"Memcpy {name}", pid=0, tid=7, ts=until - 2, dur=1, args=args)


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("kind", ["sync", "copy", "item"])
def test_a_wait_for_earlier_work_is_no_time_of_the_steps(kind: str, recorded: bool) -> None:
    """Step, parts of the host, replay and `whatif` have one length; the wait is stated, and gains nothing."""
    analysis = held(kind, recorded)
    assert analysis.step.bound is Bound.HOST
    assert analysis.step.observed_us == pytest.approx(4000, rel=0.02)
    counted = analysis.host_time.counted
    assert counted is not None
    assert counted.step_us == pytest.approx(analysis.step.observed_us, rel=0.02)
    projection = analysis.whatif("all")
    assert (projection.observed_us, projection.baseline_us) == pytest.approx((4000, 4000), rel=0.02)
    (finding,) = analysis.findings
    assert finding.wait_us == pytest.approx(BACKLOG / 5, rel=0.02)
    assert finding.recoverable_us is not None
    assert finding.recoverable_range_us[1] < 0.02 * analysis.step.observed_us
    shown = " ".join(render(analysis, "text", verbose=True).split())
    assert "The host waits once for 19.9 ms for work launched before the first step." in shown


def test_a_wait_for_the_steps_own_work_keeps_its_gain() -> None:
    """The control: the same call in each step, for kernels of that step."""
    t = TraceBuilder()
    for start in t.steps(5, lasts=4000):
        t.launch("gemm", at=start + 10, lasts=1900)
        t.synchronize(at=start + 20, api="cudaStreamSynchronize")
    analysis = analyze_trace(t.trace())
    (finding,) = analysis.findings
    assert analysis.step.bound is Bound.SYNC
    assert finding.recoverable_us is not None
    assert finding.recoverable_us > 1500
    assert "launched before" not in render(analysis, "text")
