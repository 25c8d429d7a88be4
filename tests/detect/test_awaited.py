"""The trace tells what a call waited for, and whether it waited."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncscan import api
from syncscan.detect.awaited import AwaitedWork, place_of
from syncscan.detect.calls import blocking_calls
from syncscan.facts.device_work import DeviceWork
from syncscan.model.finding import Awaited, Place
from syncscan.model.trace import NONE
from tests.builder import MAIN, TraceBuilder
from tests.each import each

DONE = 5_001_000
"""When the work of `busy` ends, ns."""
SYNC = "cudaStreamSynchronize"


def waits(t: TraceBuilder) -> AwaitedWork:
    trace = t.trace()
    return AwaitedWork(trace, DeviceWork(trace))


def busy() -> AwaitedWork:
    """5 ms of work on stream 7 that was launched at 0."""
    t = TraceBuilder()
    t.launch("busy", at=0, lasts=5000)
    return waits(t)


def waited(waits: AwaitedWork, begin: int, end: int, place: Place, api: str) -> bool:
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


def rows(t: TraceBuilder, *names: str) -> tuple[AwaitedWork, tuple[int, ...]]:
    trace = t.trace()
    result = tuple(row for row in range(len(trace.slices)) if trace.name(row) in names)
    return AwaitedWork(trace, DeviceWork(trace)), result


def place(waits: AwaitedWork, call: tuple[int, ...]) -> tuple[int, int]:
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


STREAM, EVENT, DEVICE = "cudaStreamSynchronize", "cudaEventSynchronize", "cudaDeviceSynchronize"


def awaited(t: TraceBuilder) -> tuple[Awaited | None, tuple[int, int]]:
    """Return what the last blocking call waited for, and on which device and stream."""
    trace = t.trace()
    call = max(blocking_calls(trace, DeviceWork(trace)), key=lambda call: call.ts)
    return call.awaited, (call.device, call.stream)


def streams(t: TraceBuilder) -> list[int]:
    """The streams that the last blocking call waited for."""
    result, _ = awaited(t)
    return [] if result is None else [stream for _, stream in result.streams]


def done(t: TraceBuilder) -> float | None:
    """When what the last blocking call waited for was done, µs."""
    result, _ = awaited(t)
    return None if result is None or result.done is None else result.done / 1e3


def row(t: TraceBuilder, name: str, **args: int) -> None:
    """The synchronization row of the last call, on a track of its own."""
    call = t.events[-1]
    args = {"correlation": call["args"]["correlation"], "device": 0, "stream": -1, **args}
    t.event(ph="X", cat="cuda_sync", name=name, pid=0, tid=-1, ts=call["ts"], dur=call["dur"], args=args)


# ------------------------------------------------------------------ streams and devices


def two_streams(returns: float, api: str = STREAM) -> TraceBuilder:
    """Stream 7 works until 3,002 µs, stream 20, launched last, until 105; a call from 200 on."""
    t = TraceBuilder()
    t.launch("long", at=1, lasts=3000, stream=7)
    t.launch("side", at=4, lasts=100, stream=20)
    t.call(api, 200, returns)
    t.launch("next", at=returns + 1, lasts=5, stream=20)
    return t


def test_the_stream_whose_end_explains_the_block_is_awaited() -> None:
    """A call of 2.8 ms that returns as stream 7 ends waited for it, though the last launch went to stream 20."""
    t = two_streams(3010)
    assert awaited(t) == (Awaited(((0, 7),), 200_001, 3_002_000), (0, 7))


def test_a_short_call_waited_where_the_thread_launched_last() -> None:
    """Nothing is to be explained: both streams may be meant, and one of them is long done."""
    assert streams(two_streams(240)) == [20]


@pytest.mark.parametrize(("lasts", "stream"), [(49.999, 20), (50, 7)])
def test_a_block_of_50_us_needs_an_explanation(lasts: float, stream: int) -> None:
    """With nothing queued calls take up to 35 µs."""
    t = TraceBuilder()
    t.launch("long", at=1, lasts=3000, stream=7)
    t.launch("side", at=4, lasts=100, stream=20)
    t.call(STREAM, 3002 - lasts, 3002)
    assert streams(t) == [stream]


@pytest.mark.parametrize(("late", "stream"), [(100, 7), (100.001, 20)])
def test_only_a_prompt_return_explains(late: float, stream: int) -> None:
    """95 % of the waits return within 29 µs of their work, so that after 100 it is somebody else's."""
    assert streams(two_streams(3002 + late)) == [stream]


@pytest.mark.parametrize(("early", "stream"), [(20, 7), (20.001, 20)])
def test_a_call_that_returned_before_the_work_ended_waited_for_something_else(early: float, stream: int) -> None:
    """But for what the clocks of host and device may differ by."""
    assert streams(two_streams(3002 - early)) == [stream]


@pytest.mark.parametrize(("begins", "stream"), [(2952, 7), (2952.1, 20)])
def test_most_of_a_block_is_the_wait(begins: float, stream: int) -> None:
    """Half of it, exactly, is enough; work that ends sooner after the call began didn't hold it."""
    t = TraceBuilder()
    t.launch("long", at=1, lasts=3000, stream=7)
    t.launch("side", at=4, lasts=100, stream=20)
    t.call(STREAM, begins, 3052)
    assert streams(t) == [stream]


def test_where_nothing_else_explains_it_a_long_synchronize_waited_where_it_is_supposed_to() -> None:
    """The clocks may differ by more, and by definition it waits for its stream."""
    t = TraceBuilder()
    t.launch("long", at=1, lasts=3000)
    t.call(STREAM, 200, 2900)
    assert (streams(t), done(t)) == ([7], 3002)


def test_a_short_one_didnt_wait_for_work_that_ended_later() -> None:
    """It was of a stream that had nothing to do."""
    t = TraceBuilder()
    t.launch("long", at=1, lasts=3000)
    t.call(STREAM, 200, 210)
    assert (streams(t), done(t)) == ([], None)


def test_a_device_is_awaited_as_a_whole() -> None:
    """Until the last of its streams is done; it has no one stream."""
    t = two_streams(3003, DEVICE)
    result, place = awaited(t)
    assert result == Awaited(((0, 7), (0, 20)), 200_001, 3_002_000)
    assert place == (0, NONE)


def test_another_device_may_explain_a_block() -> None:
    """The thread launched last on the second, and waits for the first."""
    t = TraceBuilder()
    t.launch("long", at=1, lasts=3000, device=0)
    t.launch("side", at=4, lasts=10, device=1)
    t.call(DEVICE, 100, 3004)
    t.launch("next", at=3010, lasts=5, device=1)
    result, place = awaited(t)
    assert result == Awaited(((0, 7),), 100_001, 3_002_000)
    assert place == (0, NONE)


def test_what_a_copy_tells_needs_no_explanation() -> None:
    """It stands on a stream, whatever ends on others when it returns."""
    t = TraceBuilder()
    t.launch("long", at=1, lasts=3000, stream=7)
    t.copy("Memcpy DtoH (Device -> Pageable)", at=10, lasts=5, stream=20, blocks=True)
    t.events[-2]["dur"] = 3002 - 10
    assert (streams(t), done(t)) == ([20], 16)


@pytest.mark.parametrize(("expected", "stream"), [(20, 20), (-1, 7)])
def test_what_a_row_tells_needs_no_explanation(expected: int, stream: int) -> None:
    """Unless it leaves the stream open, as since CUDA 12.9: then the block tells."""
    t = TraceBuilder()
    t.launch("long", at=1, lasts=3000, stream=7)
    t.launch("side", at=4, lasts=100, stream=20)
    t.call(STREAM, 200, 3010)
    row(t, "Stream Sync", stream=expected)
    assert streams(t) == [stream]


def test_a_row_without_a_call_is_reported_or_explained_likewise() -> None:
    """By its stream, else by its length."""
    for entry, stream in ((20, 20), (-1, 7)):
        t = TraceBuilder()
        t.launch("long", at=1, lasts=3000, stream=7)
        t.launch("side", at=4, lasts=100, stream=20)
        args = {"correlation": 9999, "device": 0, "stream": entry}
        t.event(ph="X", cat="cuda_sync", name="Stream Sync", pid=0, tid=-1, ts=200, dur=2810, args=args)
        assert streams(t) == [stream]
        assert awaited(t)[1] == (0, stream)


def test_an_allocation_that_returns_before_the_work_ends_didnt_wait_for_it() -> None:
    """A call that takes long by itself isn't explained by other streams either."""
    t = two_streams(1200, "cudaMalloc")
    assert (streams(t), done(t)) == ([20], 105)


def test_without_device_work_nothing_is_known() -> None:
    """The call is there all the same."""
    t = TraceBuilder()
    with t.step(0, 100):
        t.call(DEVICE, 10, 60)
    assert awaited(t)[0] is None


# ------------------------------------------------------------------ events


def test_an_event_is_behind_the_work_before_its_record() -> None:
    """The nearest record of the thread, on the stream that it launched on last."""
    t = TraceBuilder()
    t.launch("first", at=1, lasts=100)
    t.call("cudaEventRecord", 5, 6)
    t.launch("behind", at=10, lasts=1000)
    t.call(EVENT, 20, 103)
    assert awaited(t) == (Awaited(((0, 7),), 5_000, 102_000, of_event=True), (0, 7))


def two_events(returns: float, other_thread: bool = False) -> TraceBuilder:
    """Records behind 3 ms of stream 7 and behind 100 µs of stream 20, the nearer one, and a wait for one of them.

    Args:
        returns: when the wait is over, µs.
        other_thread: whether the first is launched and recorded by another thread.
    """
    t = TraceBuilder()
    with t.thread("other", MAIN + 1 if other_thread else MAIN):
        t.launch("long", at=1, lasts=3000, stream=7)
        t.call("cudaEventRecord", 3, 4)
    t.launch("side", at=5, lasts=100, stream=20)
    t.call("cudaEventRecord", 7, 8)
    t.call(EVENT, 200, returns)
    return t


@pytest.mark.parametrize("other_thread", [False, True])
def test_the_record_whose_work_explains_the_block_is_meant(other_thread: bool) -> None:
    """Not the nearest, whoever made it: 2.8 ms prove that the work was awaited that ended then."""
    assert (streams(two_events(3010, other_thread)), done(two_events(3010, other_thread))) == ([7], 3002)


@pytest.mark.parametrize("other_thread", [False, True])
def test_a_short_wait_is_for_the_nearest_record_of_the_thread(other_thread: bool) -> None:
    """Which has been reached."""
    assert (streams(two_events(240, other_thread)), done(two_events(240, other_thread))) == ([20], 106)


def test_a_record_that_was_not_reached_by_the_return_isnt_meant() -> None:
    """The nearest one's work goes on; the one before it is done."""
    t = TraceBuilder()
    t.launch("first", at=1, lasts=100)
    t.call("cudaEventRecord", 3, 4)
    t.launch("second", at=5, lasts=3000)
    t.call("cudaEventRecord", 7, 8)
    t.call(EVENT, 200, 210)
    assert done(t) == 102


@pytest.mark.parametrize("named", [0, 1])
def test_a_row_names_the_record(named: int) -> None:
    """By the correlation of its call; also of another thread, and however short the wait."""
    t = two_events(240, other_thread=True)
    records = [e["args"]["correlation"] for e in t.events if e["name"] == "cudaEventRecord"]
    row(t, "Event Sync", wait_on_cuda_event_record_corr_id=records[named])
    assert streams(t) == [(7, 20)[named]]


def test_a_row_that_leaves_the_record_open_names_none() -> None:
    """-1 since CUDA 12.9: the block tells."""
    t = two_events(3010)
    row(t, "Event Sync", wait_on_cuda_event_record_corr_id=-1)
    assert streams(t) == [7]


def test_an_event_row_without_a_call_names_the_record_itself() -> None:
    """The waiting thread's own records come first where it doesn't."""
    for named, stream in ((True, 7), (False, 20)):
        t = two_events(240)
        first = next(e["args"]["correlation"] for e in t.events if e["name"] == "cudaEventRecord")
        t.events.pop()
        args = {"correlation": 9999, "device": 0, "stream": -1}
        args["wait_on_cuda_event_record_corr_id"] = first if named else -1
        t.event(ph="X", cat="cuda_sync", name="Event Sync", pid=0, tid=7, ts=200, dur=40, args=args)
        assert streams(t) == [stream]


def test_a_named_record_behind_nothing_is_reached() -> None:
    """Its thread had launched no work: there was nothing to wait for."""
    t = TraceBuilder()
    t.call("cudaEventRecord", 1, 2)
    record = t.events[-1]["args"]["correlation"]
    t.launch("long", at=3, lasts=3000)
    t.call(EVENT, 200, 3010)
    row(t, "Event Sync", wait_on_cuda_event_record_corr_id=record)
    assert (streams(t), done(t)) == ([], None)


def behind_records(behind: int, *, other_thread: bool) -> TraceBuilder:
    """A record behind 3 ms of stream 7, then work that ends too late, with so many records behind that; and a wait.

    Args:
        behind: how many.
        other_thread: whether a thread of their own makes those behind.
    """
    t = TraceBuilder()
    with t.thread("beside", MAIN + 1):
        t.launch("beside", at=0, lasts=3007, stream=20)
        t.call("cudaEventRecord", 1, 2)
        t.launch("later", at=2, lasts=5000, stream=20)
    t.launch("long", at=3, lasts=3000, stream=7)
    t.call("cudaEventRecord", 5, 6)
    t.launch("later", at=7, lasts=5000, stream=7)
    with t.thread("behind", MAIN + 2 if other_thread else MAIN):
        for k in range(behind):
            t.call("cudaEventRecord", 20 + k / 10, 20.05 + k / 10)
    t.call(EVENT, 200, 3020)
    return t


@pytest.mark.parametrize(("behind", "stream"), [(7, 7), (8, 20)])
def test_eight_records_of_the_thread_are_tried_first(behind: int, stream: int) -> None:
    """Then those of all threads, of which the one counts whose work ended last before the return."""
    assert streams(behind_records(behind, other_thread=False)) == [stream]


@pytest.mark.parametrize(("behind", "explained"), [(254, True), (255, True), (256, False)])
def test_256_records_of_all_threads_are_looked_through(behind: int, explained: bool) -> None:
    """With the waiting thread's own tried before."""
    t = behind_records(behind, other_thread=True)
    t.events = [e for e in t.events if e["ts"] != 5]  # its own
    assert (done(t) in (3003, 3008)) is explained


@pytest.mark.parametrize(("launches", "stream"), [(255, 7), (256, 20)])
def test_256_launches_before_a_record_tell_where_it_may_stand(launches: int, stream: int) -> None:
    """A stream that the thread used longer ago isn't sought."""
    t = TraceBuilder()
    t.launch("long", at=1, lasts=3000, stream=7)
    for k in range(launches):
        t.launch("short", at=2.1 + 2 * k, lasts=0.1, stream=20)
    t.call("cudaEventRecord", 600, 601)
    t.launch("later", at=602, lasts=5000, stream=7)
    t.call(EVENT, 700, 3010)
    assert streams(t) == [stream]


def test_an_event_whose_record_isnt_there_is_a_drained_stream() -> None:
    """It was recorded before the recording began; of two streams the one whose end explains the block."""
    t = two_streams(3010, EVENT)
    assert awaited(t)[0] == Awaited(((0, 7),), 200_001, 3_002_000)


def test_an_event_that_nothing_explains_is_the_nearest_record() -> None:
    """Something else kept the host: it isn't called a wait for the device."""
    t = TraceBuilder()
    t.launch("first", at=1, lasts=100)
    t.call("cudaEventRecord", 3, 4)
    t.launch("later", at=5, lasts=9000)
    t.call(EVENT, 200, 3000)
    assert done(t) == 102


# ------------------------------------------------------------------ several processes in one file


@pytest.mark.parametrize("api", [STREAM, EVENT])
@pytest.mark.parametrize(("pid", "waited"), [(MAIN, True), (MAIN + 50, False)])
def test_another_processs_work_explains_no_block(api: str, pid: int, waited: bool) -> None:
    """A thread waits for what its own process launched and recorded, be it on another thread and another device."""
    t = TraceBuilder()
    with t.thread("beside"):
        t.launch("long", at=1, lasts=3000, device=1)
        t.events[-2]["pid"] = pid
        t.call("cudaEventRecord", 3, 4)
        t.events[-1]["pid"] = pid
    t.launch("side", at=5, lasts=100)
    t.call(api, 200, 3005)
    t.launch("next", at=3010, lasts=5)
    assert (done(t) == 3002) is waited


@pytest.mark.parametrize("api", [STREAM, EVENT])
def test_work_that_names_no_launch(api: str) -> None:
    """No thread is known to have launched it; that is no reason to fail."""
    t = TraceBuilder()
    t.event(ph="X", cat="kernel", name="gemm", pid=0, tid=7, ts=0, dur=300, args={"device": 0, "stream": 7})
    t.call(api, 100, 310)
    assert len(blocking_calls(t.trace(), DeviceWork(t.trace()))) == 1


@pytest.mark.parametrize("api", [STREAM, DEVICE])
@pytest.mark.parametrize("stream", [NONE, 7])
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(7, 8)), max_size=3), st.integers(0, 1))
def test_a_wait_is_placed_where_it_waited(api: str, stream: int, on: list[tuple[int, int]], device: int) -> None:
    """On the one stream that a call of a stream awaited, else on the device; as supposed where that is the same."""
    supposed, waited = (device, stream), Awaited(tuple(on), 0, None)
    one = len(on) == 1 and api == STREAM
    expected = supposed if not on else on[0] if one else supposed if on[0][0] == device else (on[0][0], NONE)
    assert place_of(waited, api, supposed) == expected
    assert place_of(None, api, supposed) == supposed


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


def waited_us(t: TraceBuilder) -> float:
    """How long all findings wait a step, µs."""
    return api.analyze_trace(t.trace()).step.wait_us


@pytest.mark.parametrize("vendor", ["cuda", "rocm"])
@pytest.mark.parametrize("copy", [READ, WRITE])
@pytest.mark.parametrize("record", [True, False])
@each("more", [True, False])
def test_what_an_event_holds_its_stream_for_is_waited_for(vendor: str, copy: str, record: bool, more: bool) -> None:
    """The wait spans the call at 50 until 430 µs and the copy's own 2; torch 1.12 to 2.1 don't write the record."""
    name = copy if vendor == "cuda" else copy.replace("Pageable", "Host")
    t = behind_another_stream(name, vendor=vendor, record=record, more=more)
    assert waited_us(t) == pytest.approx(382, abs=1)


@pytest.mark.parametrize("call", ["cudaMemcpy", "cudaMemcpyAsync"])
def test_copies_that_are_synchronous_by_definition_wait_too(call: str) -> None:
    """As pageable ones do."""
    assert waited_us(behind_another_stream(call=call)) == pytest.approx(382, abs=1)


def test_a_collective_is_such_work() -> None:
    """The wait is for other ranks, and so it is said beside the host, which takes more of the step."""
    analysis = api.analyze_trace(behind_another_stream(kernel=ALL_REDUCE).trace())
    assert analysis.step.wait_us == pytest.approx(382, abs=1)
    assert "waits for other ranks or the network for 40% and for the host" in analysis.step.reason


def test_a_read_back_needs_no_calls_to_be_seen_waiting() -> None:
    """Nothing but the device keeps it; what is sent to the device may be held by its host, which stages it."""
    assert waited_us(behind_another_stream(READ, record=False, wait=False)) == pytest.approx(382, abs=1)
    assert waited_us(behind_another_stream(WRITE, record=False, wait=False)) == pytest.approx(2, abs=1)


def test_work_that_ends_later_than_the_copy_begins_holds_nobody() -> None:
    """The copy begins at 300 µs, in the middle of it: the event is of something else."""
    assert waited_us(behind_another_stream(begins=300)) < 10
