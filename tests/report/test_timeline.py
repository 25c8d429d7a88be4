"""What the timeline draws: rows that don't overlap, bubbles where the device idles, and slices within a budget."""

from __future__ import annotations

import base64

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncscan import api
from syncscan.model.analysis import Analysis
from syncscan.report.packed import pack
from syncscan.report.timeline import stacked, timeline
from tests.builder import TraceBuilder


def unpack(text: str, delta: bool = False) -> list[int]:
    """What the page's script does with a packed column."""
    out, value, shift = [], 0, 0
    for byte in base64.b64decode(text):
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            out.append(value)
            value = shift = 0
    return np.cumsum(out).tolist() if delta else out


def steps(count: int = 3, kernels: int = 10) -> Analysis:
    t = TraceBuilder()
    for start in t.steps(count, lasts=2000):
        with t.scope("forward", start + 10, start + 900):
            for k in range(kernels):
                t.launch("gemm", at=start + 20 + 4 * k, lasts=60)
            t.sync("aten::nonzero", at=start + 600)
        t.launch("head", at=start + 950, lasts=100)
    return api.analyze_trace(t.trace())


@given(st.lists(st.integers(0, 2**60)))
def test_packed_columns_come_back(values: list[int]):
    """Any column of non-negative integers survives packing; ascending ones as differences too."""
    assert unpack(pack(values)) == values
    assert unpack(pack(sorted(values), delta=True), delta=True) == sorted(values)


def test_negative_numbers_are_refused():
    """A column that can't be packed isn't packed wrong."""
    with pytest.raises(ValueError, match="positive"):
        pack([3, -1])


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(1, 300))))
def test_slices_of_a_row_never_overlap(intervals: list[tuple[int, int]]):
    """However slices overlap, those of one row stand one after the other."""
    intervals.sort(key=lambda s: (s[0], -s[1]))
    start = np.array([a for a, _ in intervals], np.int64)
    end = start + np.array([d for _, d in intervals], np.int64)
    row = stacked(start, end)
    for r in set(row.tolist()):
        mine = row == r
        assert (start[mine][1:] >= end[mine][:-1]).all()


def test_nested_slices_lie_at_their_depth():
    """For slices that nest, the row is the depth."""
    start, end = np.array([0, 10, 12, 50, 100]), np.array([90, 40, 20, 60, 120])
    assert stacked(start, end).tolist() == [0, 1, 2, 1, 0]


def test_a_bubble_lies_between_the_work_that_was_awaited_and_the_next():
    """A sync that awaited nothing has none; the idle time further on is drawn as nobody's."""
    t = TraceBuilder()
    with t.step(0, 1000):
        t.launch("k", at=0, lasts=200)
        t.synchronize(at=10)
        t.synchronize(at=220)
        for at in (300, 400):
            t.launch("k", at=at, lasts=50)
    trace = t.trace()
    drawn = timeline(api.analyze_trace(trace))
    idle = {name: unpack(column) for name, column in drawn["syncs"]["idle"].items()}
    began = idle["start"][0] + drawn["origin"] - trace.steps[0].ts
    assert (began, idle["dur"], idle["sync"]) == (201_000, [100_000], [0])


def test_a_small_trace_is_drawn_whole():
    """Every slice of a host thread or a stream is there."""
    drawn = timeline(steps())
    assert drawn["whole"]
    assert (
        drawn["slices"] == drawn["of"] == sum(len(unpack(lane["row"])) for g in drawn["groups"] for lane in g["lanes"])
    )
    assert [g["side"] for g in drawn["groups"]] == ["host", "device"]
    assert len(unpack(drawn["syncs"]["start"])) == 3


def test_a_big_trace_keeps_the_slices_around_findings():
    """Over budget, the costliest sync point is among the slices kept; of the rest it is told how busy each lane was."""
    analysis = steps(count=40)
    drawn = timeline(analysis, budget=300)
    assert not drawn["whole"]
    assert drawn["slices"] <= 350 < drawn["of"]
    worst = max(analysis.findings[0].occurrences, key=lambda o: o.cost.wait_ns + o.cost.bubble_ns).sync
    at = worst.ts - drawn["origin"]
    assert any(a <= at < b for a, b in drawn["intervals"])
    busy = base64.b64decode(drawn["groups"][1]["lanes"][0]["busy"])
    assert 0.2 < np.frombuffer(busy, np.uint8).mean() / 255 < 0.5


def test_the_first_view_is_the_replayed_step():
    """The view opens on the step that is drawn twice, as recorded and as replayed."""
    drawn = timeline(steps())
    replay = drawn["replay"]
    assert drawn["home"][0] <= replay["start"] < replay["end"] <= drawn["home"][1]
    recorded = next(end - start for _, start, end in drawn["steps"] if start == replay["start"])
    assert replay["end"] - replay["start"] < recorded
    assert [lane["lane"] for lane in replay["lanes"]] == [0, 0]


def test_a_trace_without_anything_draws_nothing():
    """No slices: no groups, and a length of nothing."""
    drawn = timeline(api.analyze_trace(TraceBuilder().trace()))
    assert (drawn["length"], drawn["groups"]) == (0, [])


def test_idle_threads_stand_below_the_devices_folded():
    """Of many threads those that drive the device are open and on top."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=1000):
        t.launch("gemm", at=start + 10, lasts=50)
    for k in range(60):
        with t.thread(f"worker_{k}", tid=1000 + k):
            t.op("aten::add", 5, 50)
    groups = timeline(api.analyze_trace(t.trace()))["groups"]
    assert [(g["side"], g["open"]) for g in groups[:3]] == [("host", True), ("device", True), ("host", False)]
    assert len(groups) == 41
