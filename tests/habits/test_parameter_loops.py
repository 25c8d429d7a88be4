"""Facts about loops over parameters: which repetitions are told to be one, and what batching them would gain."""

from __future__ import annotations

import pytest

from syncscan import api
from tests.builder import TraceBuilder
from tests.each import each

ROUNDS = 60
EMA = ("aten::mul_", "aten::add_")


def training(
    ops=EMA, rounds=ROUNDS, parameters=ROUNDS, scope="ema", kernel_us=2, passes=1, steps=3, waits=False, own_time=True
):
    """Steps of 4 ms: a forward op, backward passes that add to so many gradients, and rounds of ops 10 µs apart."""
    t = TraceBuilder(**({"syncscan": {"unprofiled_step_us": 4000.0}} if own_time else {}))
    for start in t.steps(steps, lasts=4000):
        for number in range(passes):
            begin = start + 600 * number
            with t.op("aten::mm", begin + 5, begin + 20, sequence=1):
                t.launch("gemm", at=begin + 10, lasts=50)
            with t.thread("pt_autograd_0"):
                for k in range(parameters):
                    t.backward("torch::autograd::AccumulateGrad", begin + 30 + 5 * k, begin + 32 + 5 * k)
        at = start + 600 * passes
        with t.scope(scope, at, at + 10 * len(ops) * rounds + 40):
            for k in range(rounds * len(ops)):
                with t.op(ops[k % len(ops)], at + 10 * k + 1, at + 10 * k + 8):
                    t.launch("small", at=at + 10 * k + 2, lasts=kernel_us)
            if waits:
                t.sync("aten::item", at=at + 10 * len(ops) * rounds)
    return t


def habit(builder):
    analysis = api.analyze_trace(builder.trace())
    assert not [w for w in analysis.warnings if "failed" in w]
    return {h.rule: h for h in analysis.habits}.get("parameter-loop")


def test_an_average_of_weights_in_a_loop_is_one():
    """60 rounds of two ops take 1,200 of 4,000 µs; batched, a tenth of it stays."""
    flagged = habit(training())
    assert flagged.recoverable_us == pytest.approx(0.9 * 1200, rel=0.05)
    assert flagged.cost_us == pytest.approx(1200, rel=0.02)
    assert flagged.scope == ("ema",)
    assert flagged.per_step == 1.0
    assert flagged.evidence[0] == "mul_ add_: 60 rounds per step, 120 kernels of 2.00 µs on average"


@pytest.mark.parametrize(
    "ops", [("aten::lerp_",), ("aten::linalg_vector_norm",), ("aten::mul", "aten::mul", "aten::add", "aten::copy_")]
)
def test_what_has_a_batched_form_is_reported(ops):
    """In place, a norm, or computed apart and copied back."""
    assert habit(training(ops, rounds=80, parameters=80)) is not None


@pytest.mark.parametrize("rounds", [ROUNDS, 110, 170])
def test_buffers_and_frozen_parameters_may_be_among_them(rounds):
    """Three rounds for each parameter that is trained at most."""
    assert habit(training(("aten::lerp_",), rounds=rounds, parameters=ROUNDS)) is not None


@each(
    "builder",
    [
        training(("aten::mm", "aten::add", "aten::tanh")),
        training(("aten::mul", "aten::add")),
        training(rounds=49, parameters=49),
        training(parameters=0),
        training(rounds=60, parameters=15),
        training(rounds=60, parameters=100),
        training(scope="Optimizer.step#Mine.step"),
        training(kernel_us=30),
        training(own_time=False),
    ],
    ids=[
        "a recurrence in time",
        "a recurrence of numbers",
        "few rounds",
        "no parameters are trained",
        "far more rounds than parameters",
        "far fewer",
        "an optimizer's, which is said of that",
        "kernels that hide their launches",
        "no time without a profiler",
    ],
)
def test_what_merely_repeats_is_let_alone(builder):
    """Only ops on single tensors, as often as there are parameters, that hold the step for sure."""
    assert habit(builder) is None


def test_passes_that_accumulate_gradients_do_not_make_more_parameters():
    """Two backward passes of 60 gradients each: 60 parameters."""
    assert habit(training(passes=2, rounds=60, parameters=60)) is not None
    assert habit(training(passes=2, rounds=60, parameters=90)) is None


def test_a_loop_that_reads_each_value_back_is_its_syncs_matter():
    """A norm and a read-back a parameter: the finding says what that costs."""
    t = TraceBuilder(syncscan={"unprofiled_step_us": 4000.0})
    for start in t.steps(3, lasts=4000):
        with t.thread("pt_autograd_0"):
            for k in range(60):
                t.backward("torch::autograd::AccumulateGrad", start + 3 + 9 * k, start + 8 + 9 * k)
        for k in range(60):
            at = start + 600 + 40 * k
            with t.op("aten::linalg_vector_norm", at, at + 8):
                t.launch("norm", at=at + 2, lasts=2)
            t.sync("aten::item", at=at + 10)
    assert habit(t) is None


def test_a_loop_of_one_step_of_several_is_none():
    """Logging now and then."""
    t = training(steps=3)
    t.events = [e for e in t.events if not (e["name"] in EMA and e["ts"] > 4000)]
    assert habit(t) is None


def test_what_a_loop_costs_is_not_charged_to_launches_too():
    """180 other launches right behind it: those alone are for a graph."""
    t = TraceBuilder(syncscan={"unprofiled_step_us": 4000.0})
    for start in t.steps(3, lasts=4000):
        with t.thread("pt_autograd_0"):
            for k in range(60):
                t.backward("torch::autograd::AccumulateGrad", start + 3 + 9 * k, start + 8 + 9 * k)
        for k in range(120):
            with t.op(EMA[k % 2], start + 600 + 10 * k, start + 607 + 10 * k):
                t.launch("small", at=start + 601 + 10 * k, lasts=2)
        for k in range(180):
            with t.op("aten::mm", start + 1800 + 10 * k, start + 1807 + 10 * k):
                t.launch("other", at=start + 1801 + 10 * k, lasts=2)
    habits = {h.rule: h for h in api.analyze_trace(t.trace()).habits}
    assert habits["parameter-loop"].cost_us == pytest.approx(1200, rel=0.02)
    assert habits["launch-bound"].cost_us == pytest.approx(1800, rel=0.02)
