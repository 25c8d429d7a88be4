"""Facts about gradients that are filled with zeros: what shows it, and what None in their place gains."""

from __future__ import annotations

import pytest

from syncscan import api
from tests.builder import TraceBuilder

PARAMETERS = 40


def training(
    fills=PARAMETERS, adds=True, passes=1, kernel_us=2, scope="Optimizer.zero_grad#AdamW.zero_grad", step_us=3000.0
):
    """Steps of 3 ms: zero_grad with so many kernels 10 µs apart, then backward passes that add to 40 gradients."""
    t = TraceBuilder(syncscan={"unprofiled_step_us": step_us})
    for start in t.steps(3, lasts=3000):
        with t.scope(scope, start + 5, start + 15 + 10 * PARAMETERS):
            for k in range(fills):
                with t.op("aten::zero_", start + 10 + 10 * k, start + 18 + 10 * k):
                    t.launch("FillFunctor", at=start + 12 + 10 * k, lasts=kernel_us)
        for number in range(passes):
            begin = start + 600 + 700 * number
            with t.op("aten::mm", begin, begin + 20, sequence=1):
                t.launch("gemm", at=begin + 10, lasts=50)
            with t.thread("pt_autograd_0"):
                for k in range(PARAMETERS):
                    at = begin + 40 + 15 * k
                    with t.backward("torch::autograd::AccumulateGrad", at, at + 10):
                        if adds:
                            with t.op("aten::add_", at + 1, at + 9):
                                t.launch("add", at=at + 2, lasts=kernel_us)
    return t


def habit(builder):
    return {h.rule: h for h in api.analyze_trace(builder.trace()).habits}.get("gradients-zeroed")


def test_zeros_and_what_is_added_to_them_go_with_none():
    """410 µs of zero_grad; and of each of 40 `add_`s 8 µs, which the least that is saved leaves."""
    flagged = habit(training())
    assert flagged.recoverable_us == pytest.approx(410 + 320, rel=0.05)
    assert flagged.recoverable_range_us[0] < 410 < flagged.recoverable_range_us[1]
    assert flagged.evidence == (
        "zero_grad launches 40 kernels per step, the next backward pass 40 that add to zeros: 730 µs of host time, "
        "160 µs of device time",
    )


def test_without_additions_only_the_zeros_go():
    """Gradients that are views of buckets are copied into them all the same."""
    assert habit(training(adds=False)).recoverable_us == pytest.approx(410, rel=0.05)


def test_what_accumulates_gradients_stays():
    """The second of two backward passes adds to real gradients."""
    flagged = habit(training(passes=2))
    assert flagged.recoverable_us == pytest.approx(410 + 320, rel=0.05)
    assert "the next backward pass 40 that add to zeros" in flagged.evidence[0]


def test_a_device_that_bounds_the_step_gains_its_kernels():
    """40 kernels of 70 µs fill, 40 add, beside a product of 50: without, the host is the limit, at 2,270 µs or less."""
    flagged = habit(training(kernel_us=70, step_us=5650.0))
    assert 5650 - 2270 <= flagged.recoverable_us < 5600


@pytest.mark.parametrize(
    "builder",
    [training(fills=0), training(fills=0, adds=False), training(scope="zero them")],
    ids=["set to None, with gradients that are accumulated", "set to None", "another scope"],
)
def test_what_launches_nothing_there_is_let_alone(builder):
    """With None the scope holds no work; and no scope of the program's own is taken for it."""
    assert habit(builder) is None


def test_a_step_that_only_now_and_then_zeroes_is_let_alone():
    """Less than once per step."""
    t = training()
    t.events = [e for e in t.events if not (e["name"].startswith("Optimizer.zero") and e["ts"] > 3000)]
    assert habit(t) is None
