"""Device work is sorted, and its names are searched."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from syncscan.facts.device_work import DeviceWork
from syncscan.model import slice_names
from syncscan.model.interval import union
from syncscan.model.trace import NONE
from tests.builder import TraceBuilder

intervals = st.lists(st.tuples(st.integers(0, 200), st.integers(1, 40)), max_size=30)


def two_streams() -> DeviceWork:
    """Stream 7 works from 1 to 101 and from 301 to 401, stream 20 from 51 to 151; all in µs."""
    t = TraceBuilder()
    t.launch(at=0, lasts=100, stream=7)
    t.launch(at=50, lasts=100, stream=20)
    t.launch(at=300, lasts=100, stream=7)
    return DeviceWork(t.trace())


def test_devices_and_streams():
    """They are those that did work."""
    work = two_streams()
    assert (work.devices, work.streams(0)) == ((0,), (7, 20))


def test_devices_are_looked_for_once():
    """Each wait of a trace asks for them: finding them anew would cost what the square of the trace's length does."""
    work = two_streams()
    assert work.devices is work.devices


def test_busy_intervals_are_merged():
    """Over all streams of the device, and for one."""
    work = two_streams()
    assert work.of(0).busy.starts.tolist() == [1_000, 301_000]
    assert work.of(0).busy.ends.tolist() == [151_000, 401_000]
    assert work.of(0, 20).busy.starts.tolist() == [51_000]


def test_last_end_is_that_of_the_work_launched_before():
    """Work launched later doesn't count; before the first launch there is none."""
    work = two_streams().of(0)
    ends, some = work.last_ends(np.array([0, 10_000, 60_000, 300_000]))
    assert some.tolist() == [False, True, True, True]
    assert ends[some].tolist() == [101_000, 151_000, 151_000]


def test_work_launched_before_the_recording_began():
    """A kernel whose call is missing counts as launched before everything else."""
    t = TraceBuilder()
    t.event(
        ph="X", cat="kernel", name="old", pid=0, tid=7, ts=10, dur=5, args={"device": 0, "stream": 7, "correlation": 1}
    )
    t.launch(at=20, lasts=5)
    trace = t.trace()
    assert DeviceWork(trace).of(0).launched[0] < trace.slices.ts.min()


@given(intervals, st.integers(0, 250), st.integers(0, 250))
def test_busy_within_counts_every_busy_moment_once(pieces: list[tuple[int, int]], start: int, end: int):
    """However kernels overlap, the busy time of an interval is the number of its moments in which any of them runs."""
    t = TraceBuilder()
    for k, (at, lasts) in enumerate(pieces):
        t.launch(at=at, lasts=lasts, stream=k)
    busy = {m for at, lasts in pieces for m in range(at + 1, at + 1 + lasts)}
    expected = len([m for m in busy if start <= m < end])
    assert DeviceWork(t.trace()).of(0).busy.between(start * 1000, end * 1000) == expected * 1000


@given(intervals)
def test_merged_intervals_are_disjoint_ascending_and_cover_the_same(pieces: list[tuple[int, int]]):
    """The union has the same moments, in intervals that don't touch."""
    pieces = sorted(pieces)
    starts, ends = (np.array([p[0] for p in pieces], np.int64), np.array([p[0] + p[1] for p in pieces], np.int64))
    low, high = union(starts, ends)
    assert (low[1:] > high[:-1]).all()
    covered = {m for a, b in zip(low.tolist(), high.tolist(), strict=True) for m in range(a, b)}
    assert covered == {m for a, lasts in pieces for m in range(a, a + lasts)}


def test_last_ends_of_many_places() -> None:
    """Each stream by itself, a device as a whole; without work there, before any, or without a device it is none."""
    t = TraceBuilder()
    t.launch("first", at=10, lasts=100, stream=7)
    t.launch("second", at=20, lasts=500, stream=20)
    work = DeviceWork(t.trace())
    one_by_one = [work.of(0, 7).done.item(-1), work.of(0, 20).done.item(-1)]
    places = [(0, 7), (0, 20), (0, NONE), (0, 8), (NONE, NONE), (0, 7)]
    times = np.array([50_000, 50_000, 50_000, 50_000, 50_000, 5_000])
    ends, some = work.last_ends(places, times)
    assert some.tolist() == [True, True, True, False, False, False]
    assert ends.tolist() == [one_by_one[0], one_by_one[1], max(one_by_one), 50_000, 50_000, 5_000]


def test_every_collectives_kernel_holds_one_of_the_words() -> None:
    """It holds for each library's kernels: those without any of the words are never checked."""
    kernels = [
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "void rcclKernel_Broadcast",
        "msccl_kernel",
        "mscclppKernel",
        "oneccl_allreduce_kernel",
        "nvshmem_put_kernel",
        "CCL::allreduce",
        "void wrapped<ncclKernel_Sum>",
        "vllm::cross_device_reduce_1stage<half>",
        "one_shot_all_reduce_kernel",
        "void two_shot_all_reduce",
        "sglang::AllReduce_TwoShot",
        "multimem_all_reduce_kernel",
    ]
    assert list(filter(slice_names.is_collective_kernel, kernels)) == kernels
    assert [k for k in kernels if not any(word in k.lower() for word in slice_names.COLLECTIVE_WORDS)] == []
