"""A trace's columns answer the questions that the stages ask of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncscan.facts.paths import Paths
from syncscan.model.trace import CALLS, NONE, Category, Slices, Trace, once
from tests.builder import TraceBuilder, names


def nested() -> TraceBuilder:
    t = TraceBuilder()
    with t.step(0, 1000), t.scope("loss", 10, 500), t.op("aten::index", 20, 400):
        t.sync("aten::nonzero", at=30, wait=100)
    return t


def test_rows_are_sorted_and_parents_come_before_children():
    """By track, start and length; every host slice lies inside its parent, on its track."""
    s = nested().trace().slices
    order = np.lexsort((-s.dur, s.ts, s.track))
    assert (order == np.arange(len(s))).all()
    rows = np.flatnonzero(s.parent != NONE)
    parents = s.parent[rows]
    assert (parents < rows).all()
    assert (s.track[parents] == s.track[rows]).all()
    assert ((s.ts[parents] <= s.ts[rows]) & (s.end[rows] <= s.end[parents])).all()


def test_ancestors_are_outermost_first():
    """The chain from the step to the op around a call."""
    trace = nested().trace()
    (call,) = [r for r in range(len(trace.slices)) if trace.name(r) == "cudaStreamSynchronize"]
    assert names(trace, trace.ancestors(call)) == ["ProfilerStep#2", "loss", "aten::index", "aten::nonzero"]


def test_ops_and_scopes_are_distinguished():
    """Around a call, the profiler's step is no scope, and the call itself no op."""
    trace = nested().trace()
    (call,) = [r for r in range(len(trace.slices)) if trace.name(r) == "cudaStreamSynchronize"]
    around = [*trace.ancestors(call), call]
    paths = Paths(trace)
    path = paths.to(around[-1])
    assert list(path.rows) == around
    assert names(trace, path.ops) == ["aten::index", "aten::nonzero"]
    assert path.names.scopes == ("loss",)
    assert trace.name(paths.outermost_op(call)) == "aten::index"
    assert paths.outermost_op(paths.outermost_op(call)) == NONE


def test_device_work_has_no_parent():
    """Kernels and copies lie on streams, where nothing nests."""
    trace = nested().trace()
    assert len(trace.device_rows) == 2
    assert (trace.slices.parent[trace.device_rows] == NONE).all()


def test_device_rows_are_in_order_of_their_start():
    """Over all streams."""
    t = TraceBuilder()
    t.launch("late", at=100, lasts=5, stream=1)
    t.launch("early", at=10, lasts=5, stream=2)
    trace = t.trace()
    assert names(trace, trace.device_rows.tolist()) == ["early", "late"]


def test_launches_join_calls_and_work():
    """The call that launched a kernel is found by correlation."""
    t = TraceBuilder()
    t.launch("gemm", at=10, lasts=50)
    trace = t.trace()
    (kernel,) = trace.device_rows.tolist()
    call = int(trace.calls_of(np.array([kernel]))[0])
    assert trace.name(call) == "cudaLaunchKernel"
    assert trace.launched_at.tolist() == [10_000]


def graph(own_streams: bool) -> TraceBuilder:
    """A call that starts two kernels, the longer one on the first stream, and one that starts none."""
    t = TraceBuilder()
    t.call("cudaGraphLaunch", 10, 11)
    t._work("kernel", "long", 12, 50, stream=7, device=0)
    t._work("kernel", "short", 13, 5, stream=8 if own_streams else 7, device=0)
    t.call("cudaEventRecord", 20, 21)
    return t


@pytest.mark.parametrize("own_streams", [False, True])
def test_the_calls_of_a_correlation(own_streams: bool) -> None:
    """Several pieces of work can have one call; NONE stands for no correlation, and for one that no call has."""
    trace = graph(own_streams).trace()
    launch, record = np.flatnonzero(trace.is_category(*CALLS)).tolist()
    assert trace.calls_of(trace.device_rows).tolist() == [launch, launch]
    assert trace.calls_with(trace.slices.correlation[[launch, record]]).tolist() == [launch, record]
    assert trace.calls_with(np.array([NONE, 7_777], np.int64)).tolist() == [NONE, NONE]


@pytest.mark.parametrize("own_streams", [False, True])
def test_the_work_of_a_call(own_streams: bool) -> None:
    """For several, it is the last of their last stream; NONE where a call started none."""
    trace = graph(own_streams).trace()
    launch, record = np.flatnonzero(trace.is_category(*CALLS)).tolist()
    work, none = trace.works_of(np.array([launch, record])).tolist()
    assert trace.name(work) == "short"
    assert none == NONE
    assert trace.started_work(np.array([launch, record])).tolist() == [True, False]


def test_a_call_without_a_correlation_started_nothing() -> None:
    """Work that has none either isn't its own."""
    t = TraceBuilder()
    t.event(ph="X", cat="cuda_runtime", name="cudaLaunchKernel", pid=100, tid=100, ts=1, dur=1, args={})
    t.event(ph="X", cat="kernel", name="k", pid=0, tid=7, ts=10, dur=5, args={"device": 0, "stream": 7})
    trace = t.trace()
    assert trace.started_work(np.flatnonzero(trace.is_category(*CALLS))).tolist() == [False]


def test_a_driver_s_call_in_a_runtime_s_started_the_same_work() -> None:
    """The two share a correlation; work is linked to the outer one."""
    t = TraceBuilder()
    t.launch(at=1, lasts=5)
    launch = next(e for e in t.events if e.get("name") == "cudaLaunchKernel")
    t.event(**{**launch, "cat": "cuda_driver", "name": "cuLaunchKernel", "ts": launch["ts"] + 0.2, "dur": 0.5})
    t.call("cudaEventQuery", 10, 11)
    trace = t.trace()
    calls = np.flatnonzero(trace.is_category(*CALLS))
    assert names(trace, calls) == ["cudaLaunchKernel", "cuLaunchKernel", "cudaEventQuery"]
    assert trace.started_work(calls).tolist() == [True, True, False]


@pytest.mark.parametrize("categories", [(Category.CPU_OP,), CALLS, (), (Category.MEMSET, Category.KERNEL)])
def test_rows_are_found_by_category_and_name(categories: tuple[Category, ...]) -> None:
    """The rows that both masks hold, and only the names of those categories are asked."""
    trace, requested = nested().trace(), list[str]()

    def wanted(name: str) -> bool:
        requested.append(name)
        return "n" in name

    mask = trace.is_category(*categories)
    assert trace.where(wanted, *categories).tolist() == np.flatnonzero(mask & trace.named(lambda n: "n" in n)).tolist()
    assert sorted(requested) == sorted({trace.name(row) for row in np.flatnonzero(mask)})


def test_rows_are_asked_for_their_names() -> None:
    """One answer a row, in their order."""
    trace = nested().trace()
    rows = np.array([2, 0, 2], np.int64)
    second = trace.name(2)
    assert trace.called(rows, lambda name: name == second).tolist() == [True, trace.name(0) == second, True]


def test_without_any_link_work_counts_as_launched_when_it_starts():
    """A trace without runtime calls says nothing of launches."""
    t = TraceBuilder()
    t.event(ph="X", cat="kernel", name="k", pid=0, tid=7, ts=10, dur=5, args={"device": 0, "stream": 7})
    assert t.trace().launched_at.tolist() == [10_000]


@given(st.lists(st.tuples(st.integers(-2, 12), st.integers(-2, 12)), max_size=5))
def test_work_is_found_by_when_it_was_launched(intervals: list[tuple[int, int]]) -> None:
    """In intervals that overlap, are empty or end before they begin, and in the order of its start, not its launch."""
    t = TraceBuilder()
    for at in range(10):
        t.launch("kernel", at=at, lasts=1, stream=at % 2, begins=30 - 20 * (at % 2))
    trace = t.trace()
    launched = (trace.launched_at // 1000).tolist()
    expected = [any(begin <= at < end for begin, end in intervals) for at in launched]
    requests = [(begin * 1000, end * 1000) for begin, end in intervals]
    assert trace.launched_in(requests).tolist() == expected
    for interval in requests:
        assert trace.launched_within(*interval).tolist() == np.flatnonzero(trace.launched_in([interval])).tolist()


def test_what_is_made_of_a_trace_is_made_once_for_each_trace():
    """Stages that ask for the same get the same object; another trace has its own."""
    built: list[int] = []

    @once
    def rows(trace: Trace) -> list[int]:
        built.append(len(trace.slices))
        return built[-1:]

    one, other = nested().trace(), TraceBuilder().trace()
    assert rows(one) is rows(one)
    assert rows(other) == [0]
    assert len(built) == 2


def test_named_asks_once_a_distinct_name():
    """The predicate sees each string once, however often it occurs."""
    t = TraceBuilder()
    for k in range(100):
        t.op("aten::add", k, k + 0.5)
    trace = t.trace()
    requests: list[str] = []
    hits = trace.named(lambda n: requests.append(n) or n == "aten::add")
    assert hits.all()
    assert len(requests) == len(set(requests))


def test_masks_and_runs():
    """Categories as masks, tracks as runs of rows."""
    t = TraceBuilder()
    t.op("aten::add", 0, 1)
    with t.thread("other"):
        t.op("aten::mul", 0, 1)
    trace = t.trace()
    assert trace.is_category(Category.CPU_OP).all()
    assert not trace.is_category(Category.KERNEL, Category.MEMCPY).any()
    runs = [trace.track_rows(k) for k in range(len(trace.tracks))]
    assert [names(trace, range(run.start, run.stop)) for run in runs] == [["aten::add"], ["aten::mul"]]


def test_an_empty_trace_answers_too():
    """No slices, no answers, no error."""
    trace = TraceBuilder().trace()
    assert len(trace.slices) == len(trace.device_rows) == len(trace.launched_at) == 0
    assert len(trace.named(lambda n: True)) == 0
    assert trace.steps == ()


@pytest.mark.parametrize(("other", "main"), [(1, [2, 3]), (2, [2, 3]), (3, [7, 8, 9])])
def test_the_steps_of_a_trace_are_those_of_the_thread_with_the_most(other: int, main: list[int]):
    """The first thread has two, the other one so many, all of them earlier."""
    t = TraceBuilder()
    with t.thread("other"):
        for k in range(other):
            t.step(10 * k, 10 * k + 10, number=7 + k)
    t.step(200, 300, number=3)
    t.step(100, 200, number=2)
    assert [step.number for step in t.trace().main_steps] == main


def test_columns_have_their_types():
    """Each column has the type that its annotation says, and all have one length."""
    s = nested().trace().slices
    columns = {name: kind.removeprefix("Int") for name, kind in Slices.__annotations__.items()}
    assert {name: str(getattr(s, name).dtype.itemsize * 8) for name in columns} == columns
    assert len({len(getattr(s, name)) for name in columns}) == 1


@given(st.lists(st.integers(0, 40), max_size=12))
def test_the_steps_of_many_times_are_those_of_each(times: list[int]) -> None:
    """Before, in, between and after two steps; without any, in none."""
    t = TraceBuilder()
    t.op("aten::add", 0, 40)
    without = t.trace()
    for number, begin in enumerate((5, 20)):
        t.step(begin, begin + 10, number)
    trace, requested = t.trace(), np.array(times, np.int64) * 1000
    each = [next((s for s in trace.steps if s.ts <= ts < s.end), None) for ts in requested.tolist()]
    assert trace.steps_at(requested) == each
    assert trace.in_steps(requested).tolist() == [step is not None for step in each]
    assert not without.in_steps(requested).any()
