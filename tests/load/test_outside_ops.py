"""A call that another clock puts a little outside of its op belongs to it by its id."""

from __future__ import annotations

import pytest

from syncscan import api
from syncscan.model.trace import Trace
from tests.builder import MAIN, TraceBuilder


def told(begin: float, end: float, *, op: int = 2, tid: int = MAIN, correlation: int = 7) -> Trace:
    """An op from 100 to 200 µs in an outer one, and a call that names one of them by its id."""
    t = TraceBuilder()
    t.op("aten::item", 98, 202)
    t.op("aten::_local_scalar_dense", 100, 200)
    args = {"External id": op, "correlation": correlation}
    t.event(
        ph="X", cat="cuda_runtime", name="hipMemcpyWithStream", pid=MAIN, tid=tid, ts=begin, dur=end - begin, args=args
    )
    return t.trace()


def call(trace: Trace) -> tuple[float, float, list[str]]:
    """When the call begins and ends, µs, and what is around it."""
    s = trace.slices
    row = trace.where(lambda name: name == "hipMemcpyWithStream", *range(4)).item()
    return s.ts.item(row) / 1e3, s.end.item(row) / 1e3, [trace.name(r) for r in trace.ancestors(row)]


INSIDE = ["aten::item", "aten::_local_scalar_dense"]


@pytest.mark.parametrize(
    ("begin", "end", "moved"),
    [
        (110, 190, (110, 190)),
        (110, 203, (110, 200)),
        (97, 190, (100, 190)),
        (95, 205, (100, 200)),
        (110, 220, (110, 200)),
    ],
)
def test_a_call_a_few_us_outside_is_cut_to_its_op(begin: float, end: float, moved: tuple[float, float]) -> None:
    """At either end or both."""
    assert call(told(begin, end)) == (*moved, INSIDE)


@pytest.mark.parametrize(
    ("begin", "end", "args"),
    [
        (110, 221, {}),
        (79, 190, {}),
        (110, 203, {"op": 9}),
        (110, 203, {"tid": MAIN + 1}),
        (110, 203, {"correlation": 2}),
    ],
)
def test_what_isnt_surely_the_ops_stays_where_it_is(begin: float, end: float, args: dict[str, int]) -> None:
    """Beside it or far outside, of another op or thread, or with its correlation for an id, as before torch 2.6."""
    assert call(told(begin, end, **args))[:2] == (begin, end)


@pytest.mark.parametrize("late", [-3.0, 0.0, 3.0])
def test_a_read_back_is_one_wherever_its_call_lies(late: float) -> None:
    """The rule is one, and the host's parts add up to the step."""
    t = TraceBuilder(vendor="rocm")
    for start in t.steps(4, lasts=2000):
        for k in range(20):
            with t.op("aten::linear", start + 10 + 25 * k, start + 30 + 25 * k):
                t.launch("gemm", at=start + 12 + 25 * k, lasts=75)
        end = t.free_at() + 10
        t.op("aten::item", start + 520, end + 4)
        t.op("aten::_local_scalar_dense", start + 522, end + 2)
        t.call("hipMemcpyWithStream", start + 522 + late, end + 2 + late, kind="2", bytes=8)
        t.events[-1]["args"]["External id"] = t._external
        t._work("gpu_memcpy", "Memcpy DtoH (Device -> Host)", end - 8, 2, 7, 0, bytes=8)
    analysis = api.analyze_trace(t.trace())
    assert [f.rule for f in analysis.findings] == ["item"]
    counted = analysis.host_time.counted
    assert counted is not None
    assert counted.step_us == pytest.approx(analysis.step.observed_us, rel=0.01)
