"""The host's time that may go along with a removed wait: a range's end, not the number."""

from __future__ import annotations

import pytest

from syncscan import api
from syncscan.whatif.spared_work import MOST_OPS
from tests.builder import TraceBuilder
from tests.networks import OP, op, ops

STEP, EVERY = 1000, 10
READ = "aten::item > aten::_local_scalar_dense"


def least_us(*before: str, pause: float = EVERY - OP) -> float:
    """The least that a host-bound step takes without a read that these ops lead up to, with a pause before it."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=STEP):
        at = ops(t, ["aten::addmm"] * 30, start + 10, EVERY)
        t.sync(READ, at=ops(t, before, at, EVERY) - EVERY + OP + pause)
    return api.analyze_trace(t.trace(), step_ms=STEP / 1e3).whatif("all").range_us[0]


def test_ops_that_only_make_what_is_read_may_go_with_it() -> None:
    """A difference, its largest: each with the pause before it, 10 µs."""
    spared = least_us("aten::gelu", "aten::gelu") - least_us("aten::sub", "aten::max")
    assert spared == pytest.approx(2 * EVERY, rel=0.05)


def test_an_op_that_computes_more_stays_with_all_before_it() -> None:
    """A maximum behind which something else was computed is needed there."""
    assert least_us("aten::max", "aten::gelu") == pytest.approx(least_us("aten::gelu", "aten::gelu"), abs=0.1)


def test_no_more_ops_go_than_a_check_has() -> None:
    """A long chain computes more than what is read."""
    many, more = (least_us("aten::gelu", *["aten::sum"] * count) for count in (MOST_OPS + 1, MOST_OPS + 3))
    assert many == pytest.approx(more, abs=1.5)


def test_a_pause_longer_than_the_op_is_the_program_s_other_work() -> None:
    """It stays, with all before it."""
    assert least_us("aten::max", pause=200) - least_us("aten::max") == pytest.approx(OP + 2 * (EVERY - OP), rel=0.05)


def copied(*, by_own_stream: bool) -> float:
    """The least that a step takes whose copies of pageable memory go: of a list of Python's, or of another tensor."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=STEP):
        at = ops(t, ["aten::addmm"] * 20, start + 10, EVERY)
        for _ in range(5):
            with t.op("aten::empty" if by_own_stream else "aten::add", at + 2, at + 4):
                pass
            with t.op("aten::to", at + 12, at + 40):
                t.copy("Memcpy HtoD (Pageable -> Device)", at=at + 14)
                t.call("cudaStreamSynchronize", at + 20, at + 30)
            t.op("aten::lift_fresh", at + 42, at + 43)
            op(t, "aten::index", at + 64)
            at += 80
    return api.analyze_trace(t.trace(), step_ms=STEP / 1e3).whatif("all").range_us[0]


def test_what_torch_calls_to_make_a_tensor_of_a_list_goes_with_its_copy() -> None:
    """An empty tensor on the host before it, 2 µs, with the Python before that: 4 µs the first time, then 10 µs."""
    assert copied(by_own_stream=False) - copied(by_own_stream=True) == pytest.approx(2 + 4 + 4 * (2 + 10), rel=0.05)


def test_the_projection_itself_counts_only_what_surely_goes() -> None:
    """The op of the read, with ops that feed it or without."""
    t, u = TraceBuilder(), TraceBuilder()
    for builder, name in ((t, "aten::max"), (u, "aten::gelu")):
        for start in builder.steps(4, lasts=STEP):
            at = ops(builder, [*["aten::addmm"] * 30, name], start + 10, EVERY)
            builder.sync(READ, at=at)
    saved = [api.analyze_trace(b.trace(), step_ms=STEP / 1e3).whatif("all").saving_us for b in (t, u)]
    assert saved[0] == pytest.approx(saved[1], abs=0.1)
