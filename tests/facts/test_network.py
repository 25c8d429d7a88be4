"""Which ops of a step belong to its network: forward, backward, and neither."""

from __future__ import annotations

import pytest

from syncscan.facts.network import OutermostOp, Pass, is_compiled, is_library, ops_of, passes
from syncscan.model.interval import Interval
from tests.builder import TraceBuilder
from tests.networks import backward, intervals, op


def step_of(t: TraceBuilder) -> list[Pass]:
    trace = t.trace()
    (step,) = intervals(trace)
    return passes(trace, step)


def step_ops(t: TraceBuilder) -> list[OutermostOp]:
    trace = t.trace()
    (step,) = intervals(trace)
    return ops_of(trace, step)


def names(ops: tuple[OutermostOp, ...]) -> list[str]:
    return [each.name for each in ops]


def training() -> TraceBuilder:
    """A step: a linear layer, its activation, a projection, the loss of it, all of that backward, Adam."""
    t = TraceBuilder()
    with t.step(0, 200):
        for at, name in ((10, "aten::addmm"), (20, "aten::gelu"), (30, "aten::addmm"), (40, "aten::mse_loss")):
            op(t, name, at)
        backward(t, "MseLossBackward0", "aten::mse_loss_backward", 60)
        backward(t, "AddmmBackward0", "aten::mm", 70)
        with t.scope("Optimizer.step#Adam.step", 100, 120):
            op(t, "aten::addcdiv_", 105)
    return t


def test_the_loss_behind_the_last_library_call_is_not_the_network_s() -> None:
    """Forward ends with the last matrix product, and backward begins with the first one: the loss's ops are apart."""
    forward, back = step_of(training())
    assert names(forward.ops) == ["aten::addmm", "aten::gelu", "aten::addmm"]
    assert [each.name.split(": ")[1] for each in back.ops] == ["AddmmBackward0"]
    assert (forward.backward, back.backward) == (False, True)


def test_an_optimizer_s_ops_are_in_no_pass() -> None:
    """Compiling a network leaves the optimizer as it is: by its scope, or by ops that only optimizers call."""
    t = training()
    with t.step(200, 300):
        op(t, "aten::addmm", 210)
        op(t, "aten::_foreach_add_", 220)
    trace = t.trace()
    first, second = (ops_of(trace, step) for step in intervals(trace))
    assert [o.name for o in first if o.of_optimizer] == ["aten::addcdiv_"]
    assert [o.name for o in second if o.of_optimizer] == ["aten::_foreach_add_"]
    assert "aten::addcdiv_" not in [name for one in passes(trace, intervals(trace)[0]) for name in names(one.ops)]


def test_a_closure_with_a_backward_pass_is_no_optimizer() -> None:
    """A trainer hands its forward and backward pass to `Optimizer.step`: the scope around both says nothing."""
    t = TraceBuilder()
    with t.step(0, 200), t.scope("Optimizer.step#Adam.step", 5, 190):
        op(t, "aten::addmm", 10)
        backward(t, "AddmmBackward0", "aten::mm", 40)
    assert [each.backward for each in step_of(t)] == [False, True]


def test_without_a_backward_pass_all_of_a_step_is_the_network_s() -> None:
    """Inference: what follows the last library call too."""
    t = TraceBuilder()
    with t.step(0, 100):
        for at, name in ((10, "aten::addmm"), (20, "aten::softmax"), (30, "aten::argmax")):
            op(t, name, at)
    (only,) = step_of(t)
    assert names(only.ops) == ["aten::addmm", "aten::softmax", "aten::argmax"]
    assert only.interval == Interval(only.ops[0].begin, only.ops[-1].end)


def test_what_runs_before_the_network_s_last_backward_pass_is_forward_only_right_before_one() -> None:
    """In a step that trains, ops behind the optimizer belong to no network: an average of weights, a metric."""
    t = training()
    t.events = [e for e in t.events if not e["name"].startswith("ProfilerStep")]
    t.step(0, 400)
    op(t, "aten::lerp_", 300)
    assert "aten::lerp_" not in [name for each in step_of(t) for name in names(each.ops)]


def test_an_op_holds_what_is_launched_in_it() -> None:
    """The innermost op around each launch names it; two launches of one inner op count once for the host."""
    t = TraceBuilder()
    with t.step(0, 100), t.op("aten::linear", 10, 40):
        with t.op("aten::addmm", 12, 25):
            t.launch("gemm", at=14, lasts=5)
            t.launch("splitk", at=18, lasts=5)
        with t.op("aten::add", 28, 38):
            t.launch("add", at=30, lasts=5)
    (linear,) = step_ops(t)
    assert (linear.name, linear.inner, linear.leaves) == (
        "aten::linear",
        ("aten::addmm", "aten::addmm", "aten::add"),
        2,
    )
    assert linear.heavy


def test_a_launch_outside_of_any_op_is_one_of_its_own() -> None:
    """A kernel of a library that torch doesn't know of has no name to go by."""
    t = TraceBuilder()
    with t.step(0, 100):
        t.launch("triton_", at=20, lasts=5)
    (alone,) = step_ops(t)
    assert (alone.name, len(alone.work), alone.heavy) == ("", 1, False)


def test_an_op_counts_the_gradients_that_it_adds_up() -> None:
    """Each parameter's gradient is added up outside of a compiled graph."""
    t = TraceBuilder()
    node = "torch::autograd::AccumulateGrad"
    with t.step(0, 100), t.op(f"autograd::engine::evaluate_function: {node}", 10, 30), t.op(node, 12, 28):
        op(t, "aten::add_", 14)
    (one,) = step_ops(t)
    assert (one.gradients, one.backward) == (1, True)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("aten::addmm", True), ("aten::nonzero", True), ("aten::sort", True), ("aten::gelu", False), ("aten::sum", False)],
)
def test_ops_whose_kernels_a_compile_calls_as_they_are(name: str, expected: bool) -> None:
    """Matrix products, convolutions, sorts and data-dependent shapes; Inductor generates the rest."""
    assert is_library(name) is expected


@pytest.mark.parametrize("mark", ["Torch-Compiled Region: 0/0", "## Call CompiledFxGraph fx7 ##"])
def test_a_step_with_a_compiled_region_is_compiled(mark: str) -> None:
    """By dynamo's mark, or by Inductor's."""
    t = TraceBuilder()
    with t.step(0, 100), t.op(mark, 10, 40):
        t.launch("triton_poi_fused", at=20, lasts=5)
    assert is_compiled(t.trace())


def test_a_step_that_replays_a_cuda_graph_is_compiled_and_an_eager_one_is_not() -> None:
    """By the call that launches a graph."""
    t = TraceBuilder()
    t.step(0, 100)
    t.call("cudaGraphLaunch", 10, 20)
    assert is_compiled(t.trace())
    assert not is_compiled(training().trace())
