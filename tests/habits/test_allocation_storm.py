"""Facts about memory that is taken from the driver: when it is a habit, and what of it is a sync's finding."""

from __future__ import annotations

import pytest

from syncscan import api
from syncscan.model.finding import Confidence
from syncscan.model.habit import Basis
from tests.builder import TraceBuilder
from tests.each import each


def allocating(
    calls=4, name="cudaMalloc", only_first=False, frees=False, op="aten::empty", steps=3, lasts=50, tid=None
):
    """Steps of 1 ms that the host bounds, with calls of 50 µs that ask the driver for memory."""
    t = TraceBuilder(syncscan={"unprofiled_step_us": 1000.0})
    for number, start in enumerate(t.steps(steps, lasts=1000)):
        t.launch("gemm", at=start + 5, lasts=20)
        if frees:
            t.call("cudaFree", start + 40, start + 80)
        with t.thread("other", tid or t.tid):
            for k in range(calls if number == 0 or not only_first else 0):
                at = start + 100 + 100 * k
                with t.op(op, at, at + lasts + 20):
                    t.call(name, at + 5, at + 5 + lasts)
        for k in range(20):
            t.launch("tiny", at=start + 600 + 15 * k, lasts=2)
    return t


def habit(builder):
    return {h.rule: h for h in api.analyze_trace(builder.trace()).habits}.get("allocation-storm")


def test_memory_that_every_step_takes_is_gained():
    """Four calls of 50 µs."""
    flagged = habit(allocating())
    assert flagged.cost_us == pytest.approx(200)
    assert flagged.basis is Basis.REPLAY
    assert flagged.recoverable_us == pytest.approx(200, abs=5)
    assert flagged.per_step == 4
    assert flagged.op == "aten::empty"
    assert flagged.confidence is Confidence.MEDIUM
    assert flagged.evidence == (
        "driver calls per step that allocate memory: cudaMalloc: 4; they take 200 µs of host time",
    )


@pytest.mark.parametrize("name", ["hipMalloc", "cuMemCreate", "cudaHostAlloc"])
def test_each_vendor_s_calls_and_pinned_memory_count(name):
    """Whatever the allocator behind it."""
    assert habit(allocating(name=name)).recoverable_us == pytest.approx(200, abs=5)


def test_memory_that_is_given_back_in_the_step_proves_that_it_is_taken_anew():
    """The finding of the sync says what giving it back costs, and the habit names it."""
    t = allocating(frees=True)
    flagged = habit(t)
    assert flagged.confidence is Confidence.HIGH
    assert flagged.cost_us == pytest.approx(200)
    findings = [f for f in api.analyze_trace(t.trace()).findings if f.rule == "empty-cache"]
    assert flagged.evidence[1] == f"memory is freed in the steps, a sync of its own: {findings[0].id}"


@each(
    "builder",
    [
        allocating(only_first=True),
        allocating(calls=1),
        allocating(steps=1),
        allocating(lasts=1),
        allocating(name="cudaHostAlloc", op="aten::pin_memory"),
        allocating(name="cudaHostAlloc", tid=333),
        allocating(name="cudaMallocHostile"),
    ],
    ids=[
        "in the first step",
        "one a step",
        "one step",
        "short ones",
        "a batch is pinned",
        "a loader's thread",
        "other",
    ],
)
def test_what_is_no_storm_is_let_alone(builder):
    """A cache that still grows, stragglers, what another habit is about, threads that launch nothing."""
    assert habit(builder) is None


def test_calls_that_waited_for_the_device_are_their_finding_s():
    """`cudaMalloc` returns when the kernel before it has ended: the finding says what that costs."""
    t = TraceBuilder(syncscan={"unprofiled_step_us": 1000.0})
    for start in t.steps(3, lasts=1000):
        for k in range(3):
            end = t.launch("gemm", at=start + 5 + 300 * k, lasts=200)
            with t.op("aten::empty", start + 10 + 300 * k, end + 3):
                t.call("cudaMalloc", start + 12 + 300 * k, end + 1)
    analysis = api.analyze_trace(t.trace())
    assert [f.rule for f in analysis.findings if not f.intended] == ["allocator"]
    assert habit(t) is None
