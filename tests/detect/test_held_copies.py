"""A blocking copy waits for all that its stream waits for, work of other streams too."""

from __future__ import annotations

import pytest

from syncscan import api
from tests.builder import TraceBuilder

READ, WRITE = "Memcpy DtoH (Device -> Pageable)", "Memcpy HtoD (Pageable -> Device)"
CALLS = {"cuda": "cudaMemcpyAsync", "rocm": "hipMemcpyWithStream"}
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def behind_another_stream(
    copy: str = READ,
    *,
    vendor: str = "cuda",
    call: str = "",
    kernel: str = "side",
    record: bool = True,
    wait: bool = True,
    more: bool = False,
    begins: float = 431,
) -> TraceBuilder:
    """Steps that launch 400 µs of work on stream 20, have stream 7 wait for it, and copy on stream 7, which blocks.

    Args:
        copy: its name.
        vendor: whose calls they are.
        call: the copy's, by default the vendor's.
        kernel: the work on stream 20.
        record: whether the event's record is in the trace.
        wait: whether the stream's wait for it is.
        more: stream 20 gets other work behind the record.
        begins: when the copy does, µs of the step; stream 20 is done at 430.
    """
    t = TraceBuilder(vendor=vendor)
    for start in t.steps(4, lasts=1000):
        t.launch("gemm", at=start + 1, lasts=20, stream=7)
        t.launch(kernel, at=start + 20, lasts=400, stream=20, begins=start + 30)
        if record:
            t.call("cudaEventRecord", start + 25, start + 26)
        if more:
            t.launch("later", at=start + 26, lasts=200, stream=20)
        if wait:
            t.call("cudaStreamWaitEvent", start + 28, start + 29)
        with t.op("aten::copy_", start + 40, start + 520):
            end = start + begins + 10
            t.call(
                call or CALLS[vendor],
                start + 50,
                end,
                **({"kind": "2" if "DtoH" in copy else "1"} if vendor == "rocm" else {}),
            )
            t._work("gpu_memcpy", copy, start + begins, 2, 7, 0, bytes=8)
            if vendor == "cuda":
                t.call("cudaStreamSynchronize", end + 2, end + 4)
    return t


def waited(t: TraceBuilder) -> float:
    """How long all findings wait a step, µs."""
    return api.analyze_trace(t.trace()).step.wait_us


@pytest.mark.parametrize("vendor", ["cuda", "rocm"])
@pytest.mark.parametrize("copy", [READ, WRITE])
@pytest.mark.parametrize("record", [True, False])
@pytest.mark.parametrize("more", [True, False])
def test_what_an_event_holds_its_stream_for_is_waited_for(vendor: str, copy: str, record: bool, more: bool) -> None:
    """The wait spans the call at 50 until 430 µs and the copy's own 2; torch 1.12 to 2.1 don't write the record."""
    name = copy if vendor == "cuda" else copy.replace("Pageable", "Host")
    t = behind_another_stream(name, vendor=vendor, record=record, more=more)
    assert waited(t) == pytest.approx(382, abs=1)


@pytest.mark.parametrize("call", ["cudaMemcpy", "cudaMemcpyAsync"])
def test_copies_that_are_synchronous_by_definition_wait_too(call: str) -> None:
    """As pageable ones do."""
    assert waited(behind_another_stream(call=call)) == pytest.approx(382, abs=1)


def test_a_collective_is_such_work() -> None:
    """The wait is for other ranks, and so it is said beside the host, which takes more of the step."""
    analysis = api.analyze_trace(behind_another_stream(kernel=ALL_REDUCE).trace())
    assert analysis.step.wait_us == pytest.approx(382, abs=1)
    assert "waits for other ranks or the network for 40% and for the host" in analysis.step.reason


def test_a_read_back_needs_no_calls_to_be_seen_waiting() -> None:
    """Nothing but the device keeps it; what is sent to the device may be held by its host, which stages it."""
    assert waited(behind_another_stream(READ, record=False, wait=False)) == pytest.approx(382, abs=1)
    assert waited(behind_another_stream(WRITE, record=False, wait=False)) == pytest.approx(2, abs=1)


def test_work_that_ends_later_than_the_copy_begins_holds_nobody() -> None:
    """The copy begins at 300 µs, in the middle of it: the event is of something else."""
    assert waited(behind_another_stream(begins=300)) < 10
