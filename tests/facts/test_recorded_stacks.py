"""Which of capture's records belongs to a sync point: the last before its call, as far back as a host is held up."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncscan.facts.paths import Paths
from syncscan.facts.recorded_stacks import RecordedStacks, _TimedCalls
from syncscan.model.capture import TimedCall
from syncscan.model.trace import NONE
from tests.builder import TraceBuilder


def line_of(t: TraceBuilder, op: str = "") -> int | None:
    """The line found for the only synchronize."""
    trace = t.trace()
    (call,) = [row for row in range(len(trace.slices)) if trace.name(row) == "cudaStreamSynchronize"]
    ops = [row for row in range(len(trace.slices)) if op and trace.name(row) == op] or [NONE]
    (result,) = RecordedStacks(trace).of_each(np.array([call]), np.array([call]), np.array(ops))
    return result.frames[-1].line if result else None


@pytest.mark.parametrize(("before_us", "line"), [(900, 7), (1200, None)])
def test_a_host_is_held_up_for_a_millisecond_at_most(before_us: float, line: int | None) -> None:
    """Outside of ops: between the record and its call the thread may have been preempted."""
    t = TraceBuilder()
    t.launch("gemm", at=4990, lasts=50)
    t.call("cudaStreamSynchronize", 5000, 5060)
    t.exact(5000 - before_us, ("train.py", 7, "step"))
    assert line_of(t) == line


@pytest.mark.parametrize(("behind_us", "line"), [(17, 8), (23, 7)])
def test_the_clocks_lie_twenty_microseconds_apart_at_most(behind_us: float, line: int) -> None:
    """A record that much behind the call's begin is still of this call; a later one is of a wait within it."""
    t = TraceBuilder()
    t.launch("gemm", at=4990, lasts=50)
    t.call("cudaStreamSynchronize", 5000, 5060)
    t.exact(4900, ("train.py", 7, "step"))
    t.exact(5000 + behind_us, ("train.py", 8, "step"))
    assert line_of(t) == line


@pytest.mark.parametrize(("before_us", "line"), [(17, 7), (23, None)])
def test_a_record_lies_in_its_op_but_for_the_clocks(before_us: float, line: int | None) -> None:
    """One further ahead is of what ran before the op."""
    t = TraceBuilder()
    with t.op("aten::item", 4980, 5070):
        t.launch("gemm", at=4990, lasts=50)
        t.call("cudaStreamSynchronize", 5000, 5060)
    t.exact(4980 - before_us, ("train.py", 7, "step"))
    assert line_of(t, "aten::item") == line


def test_timed_calls_are_looked_up_not_through() -> None:
    """With a thousand timed calls, a wait compares one of them, whichever it lies in."""
    looked = []

    class Call(TimedCall, frozen=True):
        def __getattribute__(self, name: str) -> object:
            looked.append(name)
            return super().__getattribute__(name)

    calls = [Call(ms * 1_000_000, ms * 1_000_000 + 500_000, 7, ms) for ms in range(1000)]
    timed = _TimedCalls(calls)
    assert len(looked) >= len(calls)  # it is heard when one is looked at
    looked.clear()
    assert [timed.around(ms * 1_000_000 + 250_000) for ms in (0, 400, 999)] == [calls[0], calls[400], calls[999]]
    assert timed.around(700_600_000) is None
    assert len(looked) <= 3 + 6


@given(st.lists(st.tuples(st.integers(0, 90), st.integers(0, 40)), max_size=12), st.integers(0, 130))
def test_the_first_timed_call_around_a_time_is_found(drawn: list[tuple[int, int]], at: int) -> None:
    """Whatever calls lie in others, or follow each other within what the two clocks differ by: as looking at all."""
    calls = [TimedCall(10_000 * begin, 10_000 * (begin + lasts), 7, n) for n, (begin, lasts) in enumerate(drawn)]
    around = (call for call in calls if call.begin_ns - 20_000 <= 10_000 * at <= call.end_ns)
    assert _TimedCalls(calls).around(10_000 * at) == next(around, None)


@given(st.lists(st.sampled_from(("recorded", "silent", "other", "timed", "bare")), min_size=1, max_size=6))
def test_stacks_of_many_waits_are_those_of_each(kinds: list[str]) -> None:
    """In an op of torch's or not, recorded, timed or neither; of a call before which torch doesn't call back, none."""
    t = TraceBuilder()
    for k, kind in enumerate(kinds):
        at = 5000 * (k + 1)
        with t.op("aten::item" if kind != "bare" else "op", at - 50, at + 100):
            t.call("cudaMalloc" if kind in ("other", "timed") else "cudaStreamSynchronize", at, at + 60)
        if kind != "silent":
            t.exact(at - 20, ("train.py", k, "step"))
        if kind == "timed":
            lines = t.metadata["syncscan"]["lines"]
            begin, end = (t.base_ns + 1000 * (at + near) for near in (-10, 70))
            lines.setdefault("calls", []).append([begin, end, t.tid, len(lines["stacks"]) - 1])
    trace = t.trace()
    rows = [row for row in range(len(trace.slices)) if trace.name(row).startswith("cuda")]
    calls, ops = np.array(rows), np.array([trace.cached(Paths).outermost_op(row) for row in rows])
    stacks = RecordedStacks(trace)
    together = stacks.of_each(calls, calls, ops)
    each = [slice(at, at + 1) for at in range(len(calls))]
    assert together == [stacks.of_each(calls[one], calls[one], ops[one])[0] for one in each]
    messages = [stack.frames[-1].line if stack else None for stack in together]
    assert messages == [None if kind in ("silent", "other") else k for k, kind in enumerate(kinds)]
