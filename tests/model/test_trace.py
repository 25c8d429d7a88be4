"""A trace's columns answer the questions that the stages ask of them."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from syncscan.model.trace import NONE, Category, Slices
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


def test_without_any_link_work_counts_as_launched_when_it_starts():
    """A trace without runtime calls says nothing of launches."""
    t = TraceBuilder()
    t.event(ph="X", cat="kernel", name="k", pid=0, tid=7, ts=10, dur=5, args={"device": 0, "stream": 7})
    assert t.trace().launched_at.tolist() == [10_000]


def test_named_asks_once_a_distinct_name():
    """The predicate sees each string once, however often it occurs."""
    t = TraceBuilder()
    for k in range(100):
        t.op("aten::add", k, k + 0.5)
    trace = t.trace()
    asked: list[str] = []
    hits = trace.named(lambda n: asked.append(n) or n == "aten::add")
    assert hits.all()
    assert len(asked) == len(set(asked))


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


def test_columns_have_their_types():
    """Each column has the type that its annotation says, and all have one length."""
    s = nested().trace().slices
    columns = {f.name: f.type.removeprefix("Int") for f in fields(Slices)}
    assert {name: str(getattr(s, name).dtype.itemsize * 8) for name in columns} == columns
    assert len({len(getattr(s, name)) for name in columns}) == 1
