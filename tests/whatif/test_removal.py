"""A removed read-back leaves nothing, a data-dependent shape its kernels, a copy its launch."""

from __future__ import annotations

import pytest

from syncscan import api
from syncscan.model.analysis import Analysis
from syncscan.model.finding import Removal
from tests.builder import TraceBuilder

READ = "Memcpy DtoH (Device -> Pinned)"
READS, OP_US, CALL_US = 10, 20.0, 2.0


def host_bound(op: str, *, inner: str = "", kernels: int = 0, copy: str = READ) -> Analysis:
    """Steps whose host computes for 1,000 µs and makes ten ops of 20 µs that each read back from an idle device.

    Each op's copy and synchronize take 2 µs of the host each and wait for 1 µs; the rest is the op's own.
    """
    t = TraceBuilder()
    for start in t.steps(4, lasts=1000 + READS * OP_US):
        for k in range(READS):
            at = start + 50 * (k + 1)
            with t.op(op, at, at + OP_US):
                for launch in range(kernels):
                    t.launch("count", at=at + 1 + launch, lasts=3)
                if inner:
                    t.op(inner, at + 8, at + OP_US - 1)
                t.copy(copy, at=at + 10, lasts=0.5)
                t.call("cudaStreamSynchronize", at + 12, at + 12 + CALL_US)
    return api.analyze_trace(t.trace(), step_ms=1.2)


def saved_us(analysis: Analysis) -> float:
    return analysis.whatif("all").saving_us


def test_of_a_read_back_nothing_stays() -> None:
    """The op goes with its copy and its synchronize: ten times 20 µs."""
    analysis = host_bound("aten::item", inner="aten::_local_scalar_dense")
    assert {f.removal for f in analysis.findings} == {Removal.NOTHING}
    assert saved_us(analysis) == pytest.approx(READS * OP_US, rel=0.05)


def test_of_a_data_dependent_shape_the_op_and_its_kernels_stay() -> None:
    """Only the copy of the count and the synchronize go."""
    analysis = host_bound("aten::nonzero", kernels=2)
    assert {f.removal for f in analysis.findings} == {Removal.KERNELS}
    assert READS * CALL_US <= saved_us(analysis) < READS * OP_US / 2


def test_the_read_inside_such_an_op_goes() -> None:
    """`bincount` reads its largest value with an `item` of its own, of 11 µs, and keeps its kernels."""
    analysis = host_bound("aten::bincount", inner="aten::item", kernels=1)
    assert {f.removal for f in analysis.findings} == {Removal.KERNELS}
    assert saved_us(analysis) == pytest.approx(READS * 11, rel=0.1)


def test_a_whole_op_that_may_go_widens_the_range() -> None:
    """A replacement of `nonzero` may do without it: the range reaches down to the step without the op."""
    projection = host_bound("aten::nonzero", kernels=2).whatif("all")
    assert projection.baseline_us - projection.range_us[0] >= 0.95 * READS * OP_US


def test_a_read_back_takes_its_copy_off_the_device() -> None:
    """In a step that the device bounds, ten read-backs of copies of 30 µs each cost it 300 µs."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=2000):
        for k in range(10):
            at = start + 190 * k
            t.launch("gemm", at=at + 1, lasts=140)
            done = t.copy(READ, at=at + 5, lasts=30)
            t.op("aten::item", at + 3, done + 3)
            t.op("aten::_local_scalar_dense", at + 4, done + 2.5)
            t.call("cudaStreamSynchronize", at + 8, done + 2)
    analysis = api.analyze_trace(t.trace(), step_ms=2.0)
    assert analysis.whatif("all").device_limit_us == pytest.approx(1400, rel=0.02)


def test_the_wait_lies_in_the_synchronize_not_in_the_copy_before_it() -> None:
    """The copy's call takes 1 µs and the copy ends 2 µs later, when the synchronize has begun, that takes 5 µs.

    All of it goes with a read-back on an idle device, 9 µs of each of twenty: launch, copy and waking up too.
    """
    t = TraceBuilder()
    for start in t.steps(4, lasts=1000):
        for k in range(20):
            at = start + 40 * k
            t.op("aten::item", at, at + 9)
            t.op("aten::_local_scalar_dense", at + 0.5, at + 8.5)
            t.copy(READ, at=at + 1.5, lasts=2)
            t.call("cudaStreamSynchronize", at + 3, at + 8)
    assert saved_us(api.analyze_trace(t.trace(), step_ms=1.0)) == pytest.approx(20 * 9, rel=0.05)


def test_of_a_pageable_copy_its_staging_goes() -> None:
    """The call fills staging buffers for 400 µs, while the device copies; then the synchronize waits for 5 of them.

    A pinned copy is launched in 10 µs, and the device fetches it beside the 600 µs that the host computes.
    """
    t = TraceBuilder()
    for start in t.steps(4, lasts=1000):
        with t.op("aten::copy_", start + 9, start + 420):
            t.call("cudaMemcpyAsync", start + 10, start + 410)
            correlation = t.events[-1]["args"]["correlation"]
            t.call("cudaStreamSynchronize", start + 411, start + 416)
        t.events.append(
            {
                **{"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pageable -> Device)"},
                **{"pid": 0, "tid": 7, "ts": start + 12, "dur": 401},
                "args": {"device": 0, "stream": 7, "correlation": correlation, "bytes": 1_000_000},
            }
        )
    analysis = api.analyze_trace(t.trace(), step_ms=1.0)
    assert [f.removal for f in analysis.findings] == [Removal.PINNED_COPY]
    assert saved_us(analysis) == pytest.approx(400 - 10 + 5, abs=8)


@pytest.mark.parametrize("waits_once", [False, True])
def test_an_allocation_that_never_waited_takes_over_no_wait(waits_once: bool) -> None:
    """`cudaMalloc` behind a `cudaFree` finds the device idle; without the free it waits only if it did so elsewhere.

    The kernel of 600 µs is launched at once, the host is free again after 100 µs and computes for 400 µs at the end.
    """
    t = TraceBuilder()
    for start in t.steps(4, lasts=1000):
        done = t.launch("kernel", at=start, lasts=598)
        with t.op("aten::empty", start + 98, start + 620):
            t.call("cudaFree", start + 100, done + 1)
            t.call("cudaMalloc", done + 2, done + 5)
        if waits_once:
            done = t.launch("kernel", at=start + 700, lasts=50)
            t.call("cudaMalloc", start + 702, done + 1)
    analysis = api.analyze_trace(t.trace(), step_ms=1.0)
    (free,) = [f for f in analysis.findings if f.occurrences[0].api == "cudaFree"]
    assert (analysis.whatif(f"id:{free.id}").saving_us > 380) is not waits_once
