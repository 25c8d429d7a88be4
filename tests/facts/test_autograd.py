"""Which threads are autograd's, by what they do, and which forward op made a backward one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncscan.facts.autograd import autograd_tracks, forward_ops, program_track
from syncscan.model.trace import NONE, Category
from tests.builder import MAIN, TraceBuilder
from tests.each import each

BACKWARD, FETCHER = MAIN + 1, MAIN + 2


def told(name: str, *, engine: bool = True, optimizer: bool = True) -> TraceBuilder:
    """A program that launches twice in each of three passes, and its backward thread, which does six times."""
    t = TraceBuilder()
    for k in range(3):
        at = 1000.0 * k
        for j in range(2):
            with t.op("aten::linear", at + 50 * j, at + 50 * j + 30, sequence=j):
                t.launch("gemm", at=at + 50 * j + 5, lasts=5)
        if optimizer:
            t.scope("Optimizer.step#SGD.step", at + 900, at + 950)
        with t.thread(name, BACKWARD):
            for j in range(6):
                start = at + 200 + 100 * j
                t.backward("MmBackward0", start, start + 60, sequence=j)
                if not engine:
                    del t.events[-2]
                t.launch("gemm", at=start + 10, lasts=5)
    return t


def threads(t: TraceBuilder) -> tuple[list[str], str]:
    """The tids of autograd's threads, and that of the program's own."""
    trace = t.trace()
    calls = trace.device_calls
    own = program_track(trace, trace.slices.track[calls].astype(np.int64))
    return [trace.tracks[n].tid for n in np.flatnonzero(autograd_tracks(trace)).tolist()], trace.tracks[own].tid


@pytest.mark.parametrize("name", ["pt_autograd_0", "python", ""])
@pytest.mark.parametrize("engine", [True, False])
@each("optimizer", [True, False])
def test_autograds_thread_is_known_by_its_work(name: str, engine: bool, optimizer: bool) -> None:
    """By the engine's ranges, or by the forward thread that its ops name; it launches most and is not the program's."""
    assert threads(told(name, engine=engine, optimizer=optimizer)) == ([str(BACKWARD)], str(MAIN))


def test_a_program_that_runs_its_backward_pass_itself_is_not_autograds() -> None:
    """Forward ops, steps or an optimizer on the same thread make it the program's."""
    t = TraceBuilder()
    with t.op("aten::linear", 0, 30, sequence=1):
        t.launch("gemm", at=5, lasts=5)
    for j in range(9):
        t.backward("MmBackward0", 100 + 100 * j, 160 + 100 * j, sequence=1)
        t.launch("gemm", at=110 + 100 * j, lasts=5)
    assert threads(t) == ([], str(MAIN))


def test_what_hooks_and_frameworks_do_there_makes_no_program_of_it() -> None:
    """FSDP and DDP have ranges of their own on autograd's thread."""
    t = told("python")
    with t.thread("python", BACKWARD):
        t.scope("FSDP::post_backward", 5000, 5100)
    assert threads(t)[0] == [str(BACKWARD)]


def test_a_thread_that_fetches_batches_is_not_the_programs() -> None:
    """It copies more often than the program launches, and runs no optimizer."""
    t = told("python")
    with t.thread("python", FETCHER):
        for k in range(20):
            t.launch("copy", at=100 * k + 3, lasts=1, stream=9)
    assert threads(t)[1] == str(MAIN)


ops = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 12), st.sampled_from((NONE, 0, 1, 2, 500)), st.booleans()), max_size=25
)


@given(ops, st.integers(0, 1))
def test_the_last_forward_op_of_that_number_to_begin_before_made_it(
    drawn: list[tuple[int, int, int, bool]], threads: int
) -> None:
    """On one thread or two, where numbers come again, and where none or far more lies between them."""
    t = TraceBuilder()
    for thread, ts, number, forward in drawn:
        with t.thread("worker", MAIN + thread * threads):
            ids = {} if number == NONE else {"Sequence number": number, "Fwd thread id": 0 if forward else 1}
            t._slice("cpu_op", "aten::mm", MAIN, t.tid, ts, 0, ids)
    trace = t.trace()
    s, (rows, _) = trace.slices, trace.rows_of(Category.CPU_OP)
    each = list(zip(rows.tolist(), s.sequence.tolist(), s.ts.tolist(), (s.fwd_thread <= 0).tolist(), strict=True))
    backward = [row for row, _, _, forward in each if not forward]
    expected = []
    for query in backward:
        built = [(ts, row) for row, number, ts, forward in each if forward and number == s.sequence[query] != NONE]
        expected.append(max([(ts, row) for ts, row in built if ts < s.ts[query]], default=(0, NONE))[1])
    assert forward_ops(trace, np.array(backward, np.int64)).tolist() == expected


def test_of_none_none_is_found() -> None:
    """Also in a trace without ops."""
    t = TraceBuilder()
    t.call("cudaStreamSynchronize", 0, 1)
    assert forward_ops(t.trace(), np.zeros(0, np.int64)).tolist() == []
