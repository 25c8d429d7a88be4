"""A trace counts where the host time of the steps' threads goes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from syncscan.api import analyze_trace
from syncscan.facts.paths import Paths
from syncscan.facts.period import step_intervals
from syncscan.host.counted import _outermost_of_group, _waited
from syncscan.model.arrays import Int64
from syncscan.model.host import CountedHost, DearOp
from syncscan.model.slice_names import is_autograd_thread, is_loader
from syncscan.model.trace import CALLS, HOST, NONE, Category, Trace
from tests.builder import TraceBuilder

PARTS = [name for name in CountedHost.__struct_fields__ if name.endswith("_us") and name != "step_us"]


def counted(t: TraceBuilder, step_ms: float | None = None) -> CountedHost:
    result = analyze_trace(t.trace(), step_ms=step_ms).host_time.counted
    assert result is not None
    return result


def parts(host: CountedHost) -> dict[str, float]:
    """The parts that take any time, without `_us`."""
    return {name[:-3]: round(getattr(host, name), 9) for name in PARTS if getattr(host, name) > 1e-9}


def dear(host: CountedHost, op: str) -> DearOp:
    return next(d for d in host.dearest if d.op == op)


def test_each_moment_is_in_an_op_in_a_kind_of_call_or_in_python() -> None:
    """A slice's own time is what no inner one covers, so that the parts add up to the step; scopes and marks are
    Python.
    """
    t = TraceBuilder()
    for start in t.steps(2, lasts=100):
        with t.scope("forward", start + 5, start + 80), t.op("aten::mm", start + 10, start + 50):
            t.call("cudaMalloc", start + 12, start + 20)
            t.call("cudaStreamIsCapturing", start + 20, start + 22)
            t.call("cudaSetDevice", start + 22, start + 25)
            t.launch(at=start + 40, lasts=3)
    host = counted(t)
    calls = {"launches": 1, "allocations": 8, "queries": 2, "other_calls": 3}
    assert parts(host) == {"dispatch": 40 - 14, **calls, "python": 60}
    assert host.step_us == pytest.approx(100)
    assert (host.ops_per_step, host.launches_per_step, host.kernels_per_launch) == (1, 1, 1)
    assert not host.scaled


def test_what_a_call_calls_is_part_of_it() -> None:
    """A driver call inside a runtime call is no call of its own, and no launch of its own."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=100):
        t.launch(at=start + 10, lasts=3)
        with t.call("cudaLaunchKernel", start + 20, start + 30):
            t.call("cuLaunchKernel", start + 22, start + 28)
    assert parts(counted(t)) == {"launches": 11, "python": 89}
    assert counted(t).launches_per_step == 2


def test_waits_are_what_the_findings_wait() -> None:
    """The wait of a sync point is no time of the call's; the rest of the call is the host's own."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=1000):
        t.sync("aten::nonzero", at=start + 20, wait=500)
    analysis = analyze_trace(t.trace())
    host = analysis.host_time.counted
    assert host is not None
    assert host.waits_us == pytest.approx(analysis.step.wait_us)
    assert host.step_us == pytest.approx(1000)
    assert dear(host, "aten::nonzero").us < 10


@pytest.mark.parametrize(("wait_us", "each_us"), [(30, [0, 30]), (70, [20, 50]), (500, [40, 50])])
def test_of_a_sync_point_s_calls_the_last_ones_waited(wait_us: int, each_us: list[int]) -> None:
    """As long as the last one took at most, then the one before it."""
    t = TraceBuilder()
    with t.step(0, 1000):
        t.launch(at=10, lasts=300)
        t.call("cudaMemcpyAsync", 100, 140)
        t.call("cudaStreamSynchronize", 150, 200)
    trace = t.trace()
    calls = tuple(r for r in range(len(trace.slices)) if trace.name(r) in ("cudaMemcpyAsync", "cudaStreamSynchronize"))
    finding = analyze_trace(trace).findings[0]
    one = finding.occurrences[0]
    waiting = replace(one, calls=calls, wait_ns=wait_us * 1000, bubble_ns=0)
    rows, lengths = _waited(trace, [replace(finding, occurrences=(waiting,))])
    assert rows.tolist() == list(calls)
    assert lengths.tolist() == [us * 1000 for us in each_us]


def test_on_the_scale_of_the_undisturbed_step_they_add_up_to_it() -> None:
    """With a known step time all but waits are scaled as the replay scales them; waits are what that leaves."""
    t = TraceBuilder()
    for start in t.steps(3, lasts=1000):
        for k in range(20):
            with t.op("aten::mm", start + 40 * k, start + 40 * k + 30):
                t.launch(at=start + 40 * k + 10, lasts=5)
    recorded, scaled = counted(t), counted(t, step_ms=0.6)
    assert scaled.scaled
    assert scaled.step_us == pytest.approx(600, rel=0.01)
    assert scaled.dispatch_us / recorded.dispatch_us == pytest.approx(0.6, rel=0.02)
    assert dear(scaled, "aten::mm").us / dear(recorded, "aten::mm").us == pytest.approx(0.6, rel=0.02)
    assert scaled.ops_per_step == recorded.ops_per_step == 20


def test_a_faster_host_waits_longer_for_the_same_device() -> None:
    """A step that its device fills leaves the host the rest of it to wait."""
    t = TraceBuilder()
    for start in t.steps(3, lasts=1000):
        t.launch(at=start + 100, lasts=880)
        t.synchronize(at=start + 300)
    host = counted(t, step_ms=0.99)
    assert host.step_us == pytest.approx(990)
    assert host.waits_us > counted(t).waits_us


def test_autograd_s_thread_counts_before_the_one_that_waits_for_it() -> None:
    """While an autograd thread is in an op, the thread that runs the step is in none and waits for it."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=1000):
        t.launch(at=start + 10, lasts=5)
        t.op("aten::mm", start + 100, start + 500)
        with t.thread("pt_autograd_0"), t.backward("MmBackward0", start + 300, start + 400):
            t.launch(at=start + 310, lasts=5)
    host = counted(t)
    assert parts(host) == {"dispatch": 400 - 1, "launches": 2, "python": 599}
    assert dear(host, "aten::mm").self_us == pytest.approx(400 - 102)
    assert dear(host, "MmBackward0").self_us == pytest.approx(99)


def test_autograd_s_threads_that_work_at_once_count_once() -> None:
    """When threads of two devices work at once, the one that came first counts."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=1000):
        t.launch(at=start + 10, lasts=5)
        with t.thread("pt_autograd_0"):
            t.op("a", start + 100, start + 300)
        with t.thread("pt_autograd_1", tid=102), t.op("b", start + 200, start + 500):
            t.op("c", start + 250, start + 350)
    host = counted(t)
    assert [dear(host, name).self_us for name in "abc"] == pytest.approx([200, 150, 50])
    assert host.step_us == pytest.approx(1000)


def test_other_threads_are_none_of_the_step_s() -> None:
    """A loader's or a server's thread works beside the step, not in it."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=1000):
        t.launch(at=start + 10, lasts=5)
        with t.thread("pt_data_pin"):
            t.op("aten::pin_memory", start + 100, start + 900)
    assert parts(counted(t)) == {"launches": 1, "python": 999}


def test_the_loader_is_input_with_all_that_it_does() -> None:
    """As the verdict's own `input_us` has it."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=1000):
        t.launch(at=start + 10, lasts=5)
        with t.scope("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", start + 100, start + 400):
            t.op("aten::stack", start + 200, start + 300)
    analysis = analyze_trace(t.trace())
    host = analysis.host_time.counted
    assert host is not None
    assert host.input_us == pytest.approx(analysis.step.input_us) == pytest.approx(300)
    assert parts(host) == {"launches": 1, "input": 300, "python": 699}


def test_a_launch_held_by_a_full_queue_waits() -> None:
    """A launch that returns late with a thousand others in flight waited for the device."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=20_000):
        for k in range(1100):
            t.launch(at=start + 2 * k, lasts=1000)
        t.call("cudaLaunchKernel", start + 3000, start + 13_000)
        t._work("kernel", "late", start + 13_000, 1000, 7, 0)
    assert counted(t).waits_us == pytest.approx(9999)
    assert counted(t).launches_us == pytest.approx(1101)


def test_a_graph_s_launch_has_all_its_kernels() -> None:
    """Kernels, copies and memsets a launch: a replayed graph is one launch of many; without ops it counts as well."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=100):
        t.call("cudaGraphLaunch", start + 10, start + 20)
        for k in range(5):
            t._work("kernel", f"k{k}", start + 12, 2, 7, 0)
    host = counted(t)
    assert (host.launches_per_step, host.kernels_per_launch, host.ops_per_step) == (1, 5, 0)
    assert host.dearest == ()


def test_ops_are_recognized_by_scope_the_costliest_first() -> None:
    """Ops of one name in one scope are one; a scope in a scope is another; marks of steps are no scopes."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=1000):
        t.launch(at=start + 10, lasts=5)
        with t.scope("net", start + 100, start + 900):
            t.op("aten::mm", start + 110, start + 120)
            with t.scope("head", start + 200, start + 400):
                t.op("aten::mm", start + 210, start + 260)
                t.op("aten::mm", start + 300, start + 310)
        t.op("aten::mm", start + 950, start + 951)
    matches = [(d.scope, d.per_step, round(d.self_us, 3)) for d in counted(t).dearest]
    assert matches == [(("net", "head"), 2, 60), (("net",), 1, 10), ((), 1, 1)]


def test_an_op_in_itself_takes_its_time_once() -> None:
    """For nested ops of one name, the total time is the outer one's."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=1000):
        t.launch(at=start + 10, lasts=5)
        with t.op("aten::to", start + 100, start + 200), t.op("aten::_to_copy", start + 110, start + 190):
            t.op("aten::to", start + 120, start + 130)
    to = dear(counted(t), "aten::to")
    assert (to.per_step, to.us, to.self_us) == (2, pytest.approx(100), pytest.approx(30))


def test_the_twenty_dearest_ops_are_reported() -> None:
    """However many there are."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=10_000):
        t.launch(at=start + 10, lasts=5)
        for k in range(30):
            t.op(f"aten::op{k}", start + 100 + 100 * k, start + 100 + 100 * k + k + 1)
    assert [d.op for d in counted(t).dearest] == [f"aten::op{k}" for k in range(29, 9, -1)]


def test_backward_lies_in_its_forward_op_s_scope() -> None:
    """By the sequence number that the two share."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=1000):
        t.launch(at=start + 10, lasts=5)
        with t.scope("head", start + 100, start + 200):
            t.op("aten::mm", start + 110, start + 120, sequence=7)
        with t.thread("pt_autograd_0"), t.backward("MmBackward0", start + 300, start + 400, sequence=7):
            t.op("aten::t", start + 310, start + 320)
    assert {d.scope for d in counted(t).dearest} == {("head",)}


def test_backward_lies_in_the_scope_around_it() -> None:
    """The steps' thread has it open meanwhile: a scope around `loss.backward()`, the innermost that isn't over."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=1000):
        t.launch(at=start + 10, lasts=5)
        with t.scope("head", start + 100, start + 200):
            t.op("aten::mm", start + 110, start + 120, sequence=7)
        with t.scope("train", start + 250, start + 500), t.scope("zero", start + 255, start + 260):
            pass
        with t.thread("pt_autograd_0"), t.backward("MmBackward0", start + 300, start + 400, sequence=7):
            t.op("aten::t", start + 310, start + 320)
    assert {d.op: d.scope for d in counted(t).dearest if d.op != "aten::mm"}["aten::t"] == ("train",)
    assert dear(counted(t), "aten::mm").scope == ("head",)


@pytest.mark.parametrize("lacks", ["steps", "device work"])
def test_without_steps_or_device_work_nothing_is_counted(lacks: str) -> None:
    """On a CPU ops do the work themselves, and without steps there is nothing to count it by."""
    t = TraceBuilder()
    t.op("aten::mm", 10, 50)
    if lacks == "steps":
        t.launch(at=60, lasts=5)
    else:
        t.step(0, 100)
    assert analyze_trace(t.trace()).host_time.counted is None


# an oracle: one microsecond after the other

KINDS = {"cudaEventQuery": "queries", "cudaLaunchKernel": "launches", "cudaEventRecord": "other_calls"}
"""Calls that never wait."""


@st.composite
def stories(draw: st.DrawFn) -> TraceBuilder:
    """Steps with ops, calls, scopes and loaders that nest at random, on the steps' thread and on autograd's."""
    t = TraceBuilder()
    t.launch(at=-5, lasts=1)
    for start in t.steps(draw(st.integers(1, 3)), lasts=60):
        nested(draw, t, start, start + 60, depth=3)
        for number in range(draw(st.integers(0, 2))):
            with t.thread(f"pt_autograd_{number}", tid=200 + number):
                nested(draw, t, start, start + 60, depth=2)
    return t


def nested(draw: st.DrawFn, t: TraceBuilder, begin: float, end: float, depth: int) -> None:
    """Up to three slices one after the other between these times, with others in them."""
    cuts = sorted(draw(st.lists(st.integers(int(begin), int(end)), min_size=0, max_size=6, unique=True)))
    for a, b in zip(cuts[::2], cuts[1::2], strict=False):
        kind = draw(st.sampled_from(["op", "op", "scope", "loader", *KINDS]))
        if kind == "op":
            built = t.op(draw(st.sampled_from(["aten::a", "aten::b"])), a, b)
        elif kind == "scope":
            built = t.scope(draw(st.sampled_from(["s", "t"])), a, b)
        elif kind == "loader":
            built = t.scope("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", a, b)
        else:
            built = t.call(kind, a, b)
        if depth and kind in ("op", "scope", "loader"):
            with built:
                nested(draw, t, a, b, depth - 1)


def oracle(trace: Trace) -> tuple[dict[str, float], dict[tuple[str, tuple[str, ...]], float]]:
    """The parts, and the ops' own time by name and scope, µs a step: where the host is at each µs of the steps."""
    s, main = trace.slices, trace.main_steps[0].track
    result: Counter[str] = Counter()
    ops: Counter[tuple[str, tuple[str, ...]]] = Counter()
    host = [row for row in range(len(s)) if s.category[row] in HOST]
    for begin, end in step_intervals(trace):
        for ns in range(begin, end, 1000):
            at = [row for row in host if s.ts[row] <= ns < s.end[row]]
            if any(is_loader(trace.name(row)) for row in at if s.track[row] == main):
                result["input"] += 1
                continue
            engines = [row for row in at if is_autograd_thread(trace.tracks[s.track[row]].thread)]
            outer = min(
                (row for row in engines if s.parent[row] == NONE), key=lambda row: (s.ts[row], row), default=None
            )
            track = main if outer is None else s.track[outer]
            inner = max((row for row in at if s.track[row] == track), default=None)
            result[_kind(trace, inner)] += 1
            if inner is not None and s.category[inner] == Category.CPU_OP:
                ops[trace.name(inner), trace.cached(Paths).to(trace.slices.parent.item(inner)).names.scopes] += 1
    count = len(trace.main_steps)
    return {k: v / count for k, v in result.items()}, {k: v / count for k, v in ops.items()}


def _kind(trace: Trace, row: int | None) -> str:
    if row is None or trace.slices.category[row] == Category.ANNOTATION:
        return "python"
    return KINDS[trace.name(row)] if trace.slices.category[row] in CALLS else "dispatch"


@given(stories())
def test_the_columns_say_what_looking_at_each_moment_says(t: TraceBuilder) -> None:
    """Parts and ops are equal, however slices nest and whichever threads work at once."""
    trace = t.trace()
    host = counted(t)
    expected, ops = oracle(trace)
    assert parts(host) == pytest.approx(expected)
    assert host.step_us == pytest.approx(60)
    assert {(d.op, d.scope): d.self_us for d in host.dearest if d.self_us} == pytest.approx(ops)


@dataclass
class Columns:
    """Slice and host columns that a count reads."""

    ts: Int64
    end: Int64
    threads: tuple[slice, ...] = ()

    @property
    def slices(self) -> Columns:
        return self


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 20), st.integers(1, 20), st.integers(0, 2)), max_size=15))
def test_what_lies_in_another_of_its_group_is_found_whatever_stands_between(
    drawn: list[tuple[int, int, int, int]],
) -> None:
    """Each thread counts by itself, where slices nest and where they overlap."""
    ordered = sorted((thread, begin, -lasts, group) for thread, begin, lasts, group in drawn)
    begins, ends = [begin for _, begin, _, _ in ordered], [begin - length for _, begin, length, _ in ordered]
    cut = sum(thread == 0 for thread, _, _, _ in ordered)
    expected = [
        not any(other[::3] == own[::3] and ends[k] > own[1] for k, other in enumerate(ordered[:at]))
        for at, own in enumerate(ordered)
    ]
    host = Columns(np.array(begins, np.int64), np.array(ends, np.int64), (slice(0, cut), slice(cut, len(ordered))))
    groups = np.array([group for _, _, _, group in ordered], np.int16)
    assert _outermost_of_group(host, np.arange(len(ordered)), groups).tolist() == expected  # type: ignore[arg-type]
