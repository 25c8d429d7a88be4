"""Waits that only a synchronization row shows: which rows are new, whose thread waited, and in which op."""

from __future__ import annotations

from typing import Any

import pytest

from syncscan.detect.blocking_call import BlockingCall
from syncscan.detect.calls import blocking_calls
from syncscan.facts.device_work import DeviceWork
from syncscan.model.trace import NONE, Trace
from tests.builder import MAIN, TraceBuilder


def row(t: TraceBuilder, start: float, end: float, name: str = "Stream Sync", pid: int = 0, **args: Any) -> None:
    """A synchronization row on a track of the device, with a correlation that no runtime call has."""
    args = {"stream": 7, "device": 0, "correlation": 77, **args}
    t.event(ph="X", cat="cuda_sync", name=name, pid=pid, tid=args.pop("tid", 7), ts=start, dur=end - start, args=args)


def unseen(t: TraceBuilder) -> tuple[Trace, list[BlockingCall]]:
    """The waits that no runtime call shows."""
    trace = t.trace()
    result = blocking_calls(trace, DeviceWork(trace))
    return trace, [call for call in result if call.api.endswith(" Sync") or call.api == "HOST_EVENT"]


def thread(t: TraceBuilder) -> str | None:
    """The thread of the one unseen wait; None without one."""
    trace, result = unseen(t)
    return trace.tracks[result[0].track].tid if result else None


def around(t: TraceBuilder) -> str:
    """The op or annotation around the one unseen wait; empty at the top."""
    trace, (call,) = unseen(t)
    return trace.name(call.around) if call.around != NONE else ""


def called(at: float = 10) -> TraceBuilder:
    """A thread that has called the runtime once."""
    t = TraceBuilder()
    t.launch("busy", at=at, lasts=900)
    return t


def test_all_facts_come_from_the_row() -> None:
    """It is measured, so it waited; and it has no copy."""
    t = called()
    row(t, 30, 903, stream=9, device=2)
    _, (call,) = unseen(t)
    assert (call.api, call.apis, call.ts, call.end) == ("Stream Sync", ("Stream Sync",), 30_000, 903_000)
    assert (call.device, call.stream, call.waited, call.copy, call.launches) == (2, 9, True, "", 0)
    assert call.synchronizes


def test_a_context_is_waited_for_as_a_whole() -> None:
    """Whatever stream the row names."""
    t = called()
    row(t, 30, 903, name="Context Sync")
    _, (call,) = unseen(t)
    assert (call.device, call.stream) == (0, NONE)


def test_without_a_device_it_is_the_first() -> None:
    """A row may not say."""
    t = called()
    row(t, 30, 903, device=-1)
    _, (call,) = unseen(t)
    assert call.device == 0


@pytest.mark.parametrize("name", ["Stream Wait Event", "GPU_BARRIER_EXECUTION", "GPU_BARRIER_MEMORY"])
def test_the_devices_own_waits_are_none(name: str) -> None:
    """They order streams; the host goes on."""
    t = called()
    row(t, 30, 903, name=name)
    trace = t.trace()
    assert blocking_calls(trace, DeviceWork(trace)) == []


@pytest.mark.parametrize(("until", "new"), [(130, 0), (129.999, 1)])
def test_a_row_that_a_call_covers_by_half_is_the_same_wait(until: float, new: int) -> None:
    """The two clocks differ a little; half of the row, exactly, is enough."""
    t = called()
    t.call("cudaStreamSynchronize", 20, until)
    row(t, 30, 230)
    assert len(unseen(t)[1]) == new


@pytest.mark.parametrize(("start", "new"), [(130, 0), (130.001, 1)])
def test_the_call_may_also_begin_within_the_row(start: float, new: int) -> None:
    """Its other half."""
    t = called()
    with t.thread("other"):
        t.call("cudaStreamSynchronize", start, 300)
    row(t, 30, 230)
    assert len(unseen(t)[1]) == new


def test_a_row_of_no_length_is_new_unless_a_call_contains_it() -> None:
    """Nothing is no half of it."""
    t = called()
    t.call("cudaStreamSynchronize", 20, 25)
    row(t, 30, 30)
    assert len(unseen(t)[1]) == 1


def test_a_row_of_a_runtime_call_is_that_call() -> None:
    """Also where the times don't fit, and the call isn't known to wait."""
    t = called()
    t.call("cudaGetDeviceProperties", 20, 25)
    row(t, 300, 500, correlation=t.events[-1]["args"]["correlation"])
    assert unseen(t)[1] == []


def test_the_thread_that_called_the_runtime_last_waited() -> None:
    """With two threads; a thread without ops and calls can't have waited."""
    t = called(10)
    with t.thread("later", tid=200):
        t.launch("busy", at=20, lasts=5)
    row(t, 30, 500)
    assert thread(t) == "200"


def test_a_thread_that_calls_nothing_but_the_driver_can_wait() -> None:
    """Triton's and other extensions' launches go past the runtime."""
    t = called(10)
    with t.thread("later", tid=200):
        t.call("cuLaunchKernel", 20, 21)
    t.events[-1]["cat"] = "cuda_driver"
    row(t, 30, 500)
    assert thread(t) == "200"


def test_of_a_threads_calls_the_last_counts() -> None:
    """Not the first, nor how many."""
    t = called(5)
    t.call("cudaEventRecord", 20, 21)
    with t.thread("between", tid=200):
        t.launch("busy", at=10, lasts=5)
    row(t, 30, 500)
    assert thread(t) == str(MAIN)


@pytest.mark.parametrize(("again", "waited"), [(500, "200"), (499.999, str(MAIN))])
def test_a_thread_that_calls_meanwhile_didnt_wait(again: float, waited: str) -> None:
    """It may call again after the row's end."""
    t = called(10)
    with t.thread("later", tid=200):
        t.launch("busy", at=20, lasts=5)
        t.call("cudaEventRecord", again, again + 1)
    row(t, 30, 500)
    assert thread(t) == waited


@pytest.mark.parametrize(("at", "waited"), [(30, str(MAIN)), (30.001, None)])
def test_a_thread_has_called_by_the_rows_start(at: float, waited: str | None) -> None:
    """Together with it is early enough; who called only later can't be waiting."""
    t = called(at)
    row(t, 30, 500)
    assert thread(t) == waited


def test_without_any_host_thread_there_is_no_wait() -> None:
    """A trace of the device alone."""
    t = TraceBuilder()
    t._work("kernel", "gemm", 1, 100, 7, 0)
    row(t, 30, 500)
    assert thread(t) is None


def test_on_intel_the_rows_tid_names_the_thread() -> None:
    """Also where another thread called later."""
    t = called(10)
    with t.thread("later", tid=200):
        t.launch("busy", at=20, lasts=5)
    row(t, 30, 500, name="HOST_EVENT", pid=-1, tid=MAIN)
    assert thread(t) == str(MAIN)


def test_on_intel_an_unknown_tid_is_no_thread() -> None:
    """It isn't given to another one."""
    t = called(10)
    row(t, 30, 500, name="HOST_EVENT", pid=-1, tid=4242)
    assert thread(t) is None


@pytest.mark.parametrize(("end", "op"), [(500, "inner"), (499.999, "outer")])
def test_the_innermost_op_that_holds_the_row_is_around_it(end: float, op: str) -> None:
    """Up to its end, exactly; an op that ended before is none, nor is one that begins later."""
    t = TraceBuilder()
    t.op("outer", 1, 900)
    t.op("inner", 5, end)
    t.call("cudaEventQuery", 8, 9)
    t.op("done", 20, 25)
    t.op("later", 600, 700)
    row(t, 30, 500)
    assert around(t) == op


def test_an_annotation_can_be_around_it_and_a_call_cant() -> None:
    """A runtime call that goes on meanwhile belongs to something else."""
    t = TraceBuilder()
    t.scope("scope", 1, 900)
    t.call("cudaGetDeviceProperties", 5, 600)
    row(t, 30, 500)
    assert around(t) == "scope"


@pytest.mark.parametrize(("start", "op"), [(30, "aten::op"), (30.001, "")])
def test_an_op_has_begun_by_the_rows_start(start: float, op: str) -> None:
    """Together with it is early enough; at the top nothing is around it."""
    t = TraceBuilder()
    t.call("cudaEventQuery", 8, 9)
    t.op("aten::op", start, 900)
    row(t, 30, 500)
    assert around(t) == op


def test_the_ops_of_another_thread_arent_around_it() -> None:
    """The last slice before it on the waiting thread is where the search begins."""
    t = TraceBuilder()
    with t.thread("before", tid=MAIN - 1):
        t.op("foreign", 1, 900)
    t.call("cudaEventQuery", 8, 9)
    row(t, 30, 500)
    assert around(t) == ""


def test_the_op_may_be_the_first_slice_of_its_thread() -> None:
    """On Intel no runtime call need be there."""
    t = TraceBuilder()
    t.op("aten::item", 20, 900)
    row(t, 30, 500, name="HOST_EVENT", pid=-1, tid=MAIN)
    assert around(t) == "aten::item"


def test_nothing_may_have_begun_yet() -> None:
    """Then nothing is around it, whatever lies on the thread before in the trace's order."""
    t = TraceBuilder()
    with t.thread("before", tid=MAIN - 1):
        t.op("foreign", 1, 900)
    t.op("aten::item", 600, 900)
    row(t, 30, 500, name="HOST_EVENT", pid=-1, tid=MAIN)
    assert around(t) == ""
