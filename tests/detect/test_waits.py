"""Every threshold of what a call waits for, and of when the host counts as blocked, from both sides."""

from __future__ import annotations

import numpy as np
import pytest

from syncscan.detect.waits import Waits
from syncscan.facts.device_work import DeviceWork
from syncscan.model.finding import Place
from syncscan.model.trace import NONE
from tests.builder import MAIN, TraceBuilder

DONE = 5_001_000
"""When the work of `busy` ends, ns."""
SYNC = "cudaStreamSynchronize"


def waits(t: TraceBuilder) -> Waits:
    trace = t.trace()
    return Waits(trace, DeviceWork(trace))


def busy() -> Waits:
    """5 ms of work on stream 7 that was launched at 0."""
    t = TraceBuilder()
    t.launch("busy", at=0, lasts=5000)
    return waits(t)


def waited(waits: Waits, begin: int, end: int, place: Place, api: str) -> bool:
    """Whether the host was held by one call, ns."""
    return waits.waited(np.array([begin]), np.array([end]), [place], [api]).item()


@pytest.mark.parametrize(("left", "held"), [(20_000, False), (20_001, True)])
def test_a_wait_is_longer_than_the_call_itself_can_take(left: int, held: bool) -> None:
    """Work that ends up to 20 µs after the call began may have ended while the call was entered."""
    assert waited(busy(), DONE - left, DONE, (0, 7), SYNC) == held


@pytest.mark.parametrize(("early", "held"), [(20_000, True), (20_001, False)])
def test_a_call_that_returns_before_the_work_is_done_didnt_wait_for_it(early: int, held: bool) -> None:
    """Up to 20 µs early is the clocks' difference."""
    assert waited(busy(), 1_000_000, DONE - early, (0, 7), SYNC) == held


@pytest.mark.parametrize(("late", "held"), [(100_000, True), (100_001, False)])
@pytest.mark.parametrize("api", ["cudaHostAlloc", "cudaMalloc", "cudaSomethingNew"])
def test_a_call_that_takes_long_by_itself_has_to_return_promptly(api: str, late: int, held: bool) -> None:
    """Else it was busy with its own work, which ended by chance after the device's."""
    assert waited(busy(), 1_000_000, DONE + late, (0, 7), api) == held


@pytest.mark.parametrize("api", [SYNC, "cudaMemcpy", "cudaMemcpyAsync", "cudaFree"])
def test_a_call_that_only_waits_may_return_late(api: str) -> None:
    """The host was put to sleep, or waited for the interpreter's lock."""
    assert waited(busy(), 1_000_000, DONE + 100_001, (0, 7), api)


@pytest.mark.parametrize(("late", "held"), [(600_000, True), (600_001, False)])
def test_most_of_the_call_has_to_be_the_wait(late: int, held: bool) -> None:
    """Half of it, exactly, still counts."""
    assert waited(busy(), DONE - 600_000, DONE + late, (0, 7), SYNC) == held


def test_only_work_launched_before_the_call_holds_it() -> None:
    """Work that another thread launches meanwhile doesn't count."""
    t = TraceBuilder()
    t.launch("later", at=100, lasts=5000)
    assert not waited(waits(t), 100_000, 5_101_000, (0, 7), SYNC)
    assert waited(waits(t), 100_001, 5_101_000, (0, 7), SYNC)


def test_only_work_of_the_awaited_stream_and_device_holds_it() -> None:
    """All streams where none is named; nothing where no device is known."""
    assert not waited(busy(), 1_000_000, DONE, (0, 8), SYNC)
    assert not waited(busy(), 1_000_000, DONE, (1, 7), SYNC)
    assert not waited(busy(), 1_000_000, DONE, (NONE, 7), SYNC)
    assert waited(busy(), 1_000_000, DONE, (0, NONE), SYNC)


def rows(t: TraceBuilder, *names: str) -> tuple[Waits, tuple[int, ...]]:
    trace = t.trace()
    result = tuple(row for row in range(len(trace.slices)) if trace.name(row) in names)
    return Waits(trace, DeviceWork(trace)), result


def place(waits: Waits, call: tuple[int, ...]) -> tuple[int, int]:
    (result,) = waits.places(np.array(call[:1]), np.array(call[-1:]))
    return result


def test_a_copy_says_where_it_is() -> None:
    """Whatever the thread launched last."""
    t = TraceBuilder()
    t.launch("busy", at=1, lasts=5, stream=9, device=1)
    t.copy("Memcpy DtoH (Device -> Pinned)", at=10, stream=3, device=2)
    answers, (row,) = rows(t, "cudaMemcpyAsync")
    assert place(answers, (row,)) == (2, 3)


def sync_row(t: TraceBuilder, correlation: int, **args: int) -> None:
    args = {"stream": 4, "device": 1, "correlation": correlation, **args}
    t.event(ph="X", cat="cuda_sync", name="Stream Sync", pid=0, tid=4, ts=20, dur=5, args=args)


def test_a_synchronization_row_says_what_the_last_call_waited_for() -> None:
    """In a pair the synchronize has a row."""
    t = TraceBuilder()
    t.launch("busy", at=1, lasts=5, stream=9)
    t.call("cudaMemcpyAsync", 10, 11)
    t.call(SYNC, 20, 25)
    sync_row(t, t.events[-1]["args"]["correlation"])
    answers, pair = rows(t, "cudaMemcpyAsync", SYNC)
    assert place(answers, pair) == (1, 4)


def test_a_row_that_names_no_device_says_nothing() -> None:
    """CUDA 12.9 and later leave fields out: then the last launch tells."""
    t = TraceBuilder()
    t.launch("busy", at=1, lasts=5, stream=9)
    t.call(SYNC, 20, 25)
    sync_row(t, t.events[-1]["args"]["correlation"], device=-1)
    answers, work = rows(t, SYNC)
    assert place(answers, work) == (0, 9)


@pytest.mark.parametrize(
    ("api", "stream"),
    [(SYNC, 9), ("cudaEventSynchronize", 9), ("cudaDeviceSynchronize", NONE), ("cuCtxSynchronize", NONE)],
)
def test_without_either_the_last_launch_of_the_thread_tells(api: str, stream: int) -> None:
    """A stream or an event is taken to be the last one used; a device is waited for as a whole."""
    t = TraceBuilder()
    t.launch("before", at=1, lasts=5, stream=8)
    t.launch("last", at=10, lasts=5, stream=9)
    t.call(api, 20, 25)
    t.launch("after", at=30, lasts=5, stream=10)
    answers, work = rows(t, api)
    assert place(answers, work) == (0, stream)


def test_another_threads_launches_tell_nothing() -> None:
    """Then the first device is as good as any, and all of its streams."""
    t = TraceBuilder()
    with t.thread("other", tid=MAIN - 1):
        t.launch("busy", at=1, lasts=5, stream=9, device=3)
    t.call(SYNC, 20, 25)
    answers, work = rows(t, SYNC)
    assert place(answers, work) == (3, NONE)


def test_a_launch_that_blocks_waits_for_its_own_work() -> None:
    """The last launch up to and with the call itself."""
    t = TraceBuilder()
    t.launch("first", at=1, lasts=5, stream=8)
    t.launch("second", at=10, lasts=5, stream=9)
    answers, (first, second) = rows(t, "cudaLaunchKernel")
    assert answers.last_launches(np.array([first, second])) == [(0, 8), (0, 9)]


def test_without_any_device_work_no_device_is_known() -> None:
    """The call is still there, on a device that nobody knows."""
    t = TraceBuilder()
    t.call(SYNC, 20, 25)
    answers, work = rows(t, SYNC)
    assert (place(answers, work), answers.first_device) == ((NONE, NONE), NONE)
