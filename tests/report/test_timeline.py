"""The timeline draws rows that don't overlap, bubbles where the device idles, and slices within a budget."""

from __future__ import annotations

import base64
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from syncscan import api
from syncscan.model.analysis import Analysis
from syncscan.model.trace import Category, Trace
from syncscan.report.timeline import COMMUNICATION, INPUT, SYNC_CALL, timeline
from syncscan.report.timeline_lanes import pack, pauses, stacked
from tests.builder import TraceBuilder
from tests.recordings import analyzed
from tests.report.example import scattered


def origin_of(trace: Trace) -> int:
    """Return the timeline's zero on the trace's clock, ns."""
    return min(int(trace.slices.ts.min()), *(step.ts for step in trace.steps))


def unpack(text: str, delta: bool = False) -> list[int]:
    """Unpack a packed column as the page's script does."""
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
        own = row == r
        assert (start[own][1:] >= end[own][:-1]).all()


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
    began = idle["start"][0] + origin_of(trace) - trace.steps[0].ts
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
    worst = max(analysis.findings[0].occurrences, key=lambda o: o.wait_ns + o.bubble_ns)
    at = worst.ts - origin_of(analysis.trace)
    assert any(a <= at < b for a, b in drawn["intervals"])
    busy = base64.b64decode(drawn["groups"][1]["lanes"][0]["busy"])
    assert 0.2 < np.frombuffer(busy, np.uint8).mean() / 255 < 0.5


def test_the_first_view_is_the_replayed_step():
    """The view opens on the step that is drawn twice, as recorded and as replayed."""
    drawn = timeline(steps())
    replay = drawn["without"][0]
    assert drawn["home"][0] <= replay["start"] < replay["end"] <= drawn["home"][1]
    recorded = next(end - start for _, start, end in drawn["steps"] if start == replay["start"])
    assert replay["end"] - replay["start"] < recorded
    assert [lane["lane"] for lane in replay["lanes"]] == [0, 0]


def test_a_trace_without_anything_draws_nothing():
    """No slices: no groups, and a length of nothing."""
    drawn = timeline(api.analyze_trace(TraceBuilder().trace()))
    assert (drawn["length"], drawn["groups"]) == (0, [])


def test_idle_threads_stand_below_the_devices_folded():
    """The threads that drive the device are open and on top."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=1000):
        t.launch("gemm", at=start + 10, lasts=50)
    for k in range(60):
        with t.thread(f"worker_{k}", tid=1000 + k):
            t.op("aten::add", 5, 50)
    groups = timeline(api.analyze_trace(t.trace()))["groups"]
    assert [(g["side"], g["open"]) for g in groups[:3]] == [("host", True), ("device", True), ("host", False)]
    assert len(groups) == 41


def test_what_is_taken_out_is_drawn_in_the_step_of_its_costliest_sync_point():
    """First without any sync, then without each alone; all say which step that is, and none outlasts it."""
    analysis = scattered()
    drawn = timeline(analysis)
    rules = [f.rule for f in analysis.findings]
    of = {tuple(r["findings"]): r["of"] for r in drawn["without"]}
    assert sorted(of) == [(0,), (0, 1), (1,)]
    numbers = [s.number for s in analysis.trace.steps]
    assert of[(rules.index("nonzero"),)] == f"step {numbers[3]}"
    assert of[(rules.index("item"),)] == f"step {numbers[1]}"
    assert drawn["without"][0]["findings"] == [0, 1]
    assert all(r["start"] < r["end"] <= r["recorded"] for r in drawn["without"])
    assert drawn["why_none"] == ""


def test_a_step_drawn_twice_says_what_it_is_without():
    """All of several, or the finding's title."""
    names = [r["name"] for r in timeline(scattered())["without"]]
    assert names[0] == "without both syncs"
    assert all(name.startswith("without “") and "waits" in name for name in names[1:])


def test_steps_that_launch_too_much_are_not_drawn_twice(monkeypatch: pytest.MonkeyPatch):
    """The page stays bounded, and says why."""
    monkeypatch.setattr("syncscan.report.timeline_extract.MAX_REPLAYED", 5)
    drawn = timeline(steps())
    assert drawn["without"] == []
    assert "too many launches to draw" in drawn["why_none"]


def test_without_a_sync_nothing_is_replayed_and_reported_so():
    """There is nothing to take out."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=1000):
        t.launch("gemm", at=start + 10, lasts=50)
    drawn = timeline(api.analyze_trace(t.trace()))
    assert drawn["without"] == []
    assert "No syncs to remove" in drawn["why_none"]


def test_input_and_communication_are_distinguished_from_scopes_and_kernels():
    """A loader's `__next__` and a collective's kernel, as the legend has them; a sync's call stays a sync's."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=2000):
        with t.scope("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", start + 10, start + 300):
            pass
        t.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL", at=start + 400, lasts=200)
        t.launch("gemm", at=start + 700, lasts=100)
        t.sync("aten::nonzero", at=start + 720)
    drawn = timeline(api.analyze_trace(t.trace()))
    kinds = {
        drawn["names"][name]: what
        for group in drawn["groups"]
        for lane in group["lanes"]
        for name, what in zip(unpack(lane["name"]), unpack(lane["what"]), strict=True)
    }
    assert [kinds[name] for name in drawn["names"] if name.startswith("enumerate")] == [INPUT]
    assert [kinds[name] for name in drawn["names"] if name.startswith("nccl")] == [COMMUNICATION]
    assert kinds["gemm"] == Category.KERNEL
    assert SYNC_CALL in kinds.values()


def test_where_no_gain_is_projected_no_step_is_drawn_without_its_syncs():
    """A picture would say what the numbers withhold."""
    analysis = steps()
    withheld = replace(analysis, step=replace(analysis.step, recoverable_us=None))
    drawn = timeline(withheld)
    assert drawn["without"] == []
    assert "No gain could be projected" in drawn["why_none"]


STALLS = Path(__file__).parent.parent.parent / "sample_traces" / "stalls"


def test_the_collector_s_pause_is_a_slice_of_its_thread() -> None:
    """By the habit's title, whose number leads to the habit; a search for it counts it."""
    analysis = analyzed(STALLS / "gc.json.gz")
    ((habit, intervals),) = pauses(analysis)
    data = timeline(analysis)
    (lane,) = [lane for group in data["groups"] for lane in group["lanes"] if lane["kind"] == "pauses"]
    assert lane["label"] == "pauses"
    number = data["names"].index(habit.title)
    assert data["habits"] == {number: habit.id}
    assert data["counts"][number] == len(intervals)


def test_what_only_samples_show_has_no_lane() -> None:
    """Where in the recorded steps it was isn't known."""
    data = timeline(analyzed(STALLS / "lock_busy.json.gz"))
    assert {lane["kind"] for group in data["groups"] for lane in group["lanes"]} <= {"scopes", "ops", "stream"}
    assert data["habits"] == {}
