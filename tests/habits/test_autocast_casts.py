"""Facts about casts under autocast: which it makes again, and which it must make."""

from __future__ import annotations

import pytest

from syncscan import api
from tests.builder import TraceBuilder

LAYERS, STEP_US = 20, 3000.0


def cast(t, at, sequence, lasts=20):
    with t.op("aten::to", at, at + lasts, sequence):
        t.launch("copy", at=at + 2, lasts=2)


def layer(t, at, *, weight, first=None, wrapped=True):
    """A linear layer of 60 µs: casts of its weight and, without a number of its own, its input; then itself again."""
    with t.op("aten::linear", at, at + 60, weight):
        if first is not None:
            cast(t, at + 1, first, 10)
        cast(t, at + 12, weight)
        with t.op("aten::linear" if wrapped else "aten::addmm", at + 40, at + 58, weight):
            t.launch("gemm", at=at + 45, lasts=2)


def frozen(wrapped=True, lasts=20, head=True):
    """Steps of 3 ms: frozen layers whose casts all bear the number of the head's, the first that has a node."""
    t = TraceBuilder(syncscan={"unprofiled_step_us": STEP_US})
    for start in t.steps(3, lasts=STEP_US):
        number = int(start) + 1
        for k in range(LAYERS):
            layer(t, start + 10 + 70 * k, weight=number, wrapped=wrapped)
        if head:
            layer(t, start + 1500, weight=number, wrapped=wrapped)
            with t.thread("pt_autograd_0"), t.backward("ToCopyBackward0", start + 1700, start + 1720, number):
                t.launch("copy", at=start + 1702, lasts=2)
    return t


def trained():
    """Steps of 3 ms with a pass over ten weights, each cast under a number of its own."""
    t = TraceBuilder(syncscan={"unprofiled_step_us": STEP_US})
    for start in t.steps(3, lasts=STEP_US):
        for k in range(10):
            layer(t, start + 10 + 62 * k, weight=int(start) + k + 1)
        with t.thread("pt_autograd_0"):
            for k in range(10):
                with t.backward("ToCopyBackward0", start + 670 + 60 * k, start + 680 + 60 * k, int(start) + k + 1):
                    t.launch("copy", at=start + 672 + 60 * k, lasts=2)
    return t


def habit(builder):
    return {h.rule: h for h in api.analyze_trace(builder.trace()).habits}.get("autocast-casts")


def test_weights_without_a_gradient_are_cast_at_each_use():
    """20 casts of 20 µs; the head's, with the same number but a node, must be."""
    flagged = habit(frozen())
    assert flagged.per_step == LAYERS
    assert flagged.recoverable_us == pytest.approx(LAYERS * 20, rel=0.1)
    assert flagged.evidence == (
        "20 casts per step in 20 ops cast tensors without gradients, which autocast doesn't cache",
        "they take 400 µs of host time and 40.0 µs of device time",
    )


def test_without_any_gradient_all_are():
    """As in inference."""
    assert habit(frozen(head=False)).per_step == LAYERS


def test_a_cast_in_an_op_that_does_not_hold_itself_again_is_the_programs_own():
    """No autocast is around it."""
    assert habit(frozen(wrapped=False)) is None


def test_trained_weights_are_cast_as_they_must():
    """They change between the steps."""
    assert habit(trained()) is None
