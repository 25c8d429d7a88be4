"""Obstacles to a compile, or to CUDA graphs, that a recording shows, and the promises that are left."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from syncscan import api
from syncscan.errors import UsageError
from syncscan.model.analysis import Analysis
from syncscan.model.finding import Severity
from syncscan.model.habit import Basis
from syncscan.model.states import COMPILE, EAGER, REDUCE_OVERHEAD, Obstacle, ObstacleKind, prevented
from syncscan.report import render
from tests.builder import TraceBuilder
from tests.each import each
from tests.networks import LAYER, backward, launch_bound, ops, read

Step = Callable[[TraceBuilder, float, int], object]
"""Adds a step's work from a time on; its number tells what differs between steps."""
STEP = 1300


def of(step: Step) -> Analysis:
    """Four steps that launch much and compute little."""
    t = TraceBuilder()
    for number, start in enumerate(t.steps(4, lasts=STEP)):
        step(t, start + 10, number)
    return api.analyze_trace(t.trace(), step_ms=STEP / 1e3)


def kinds(analysis: Analysis) -> list[str]:
    return [obstacle.kind.value for obstacle in analysis.obstacles]


def plain(t: TraceBuilder, at: float, number: int) -> float:
    return ops(t, LAYER * 60, at, blocks=64)


def ragged(t: TraceBuilder, at: float, number: int) -> float:
    return ops(t, LAYER * 60, at, blocks=64 + number)


def asked(t: TraceBuilder, at: float, number: int) -> float:
    """Sizes that change only behind a sync of the network's own."""
    return ops(t, LAYER * 30, read(t, ops(t, LAYER * 30, at, blocks=64)) + 1, blocks=64 + number)


def twice(t: TraceBuilder, at: float, number: int) -> None:
    at = ops(t, LAYER * 30, at)
    for place in range(20):
        backward(t, "TanhBackward0", "aten::tanh_backward", at + 20 * place)
        with t.op("TanhBackwardBackward0", at + 20 * place + 10, at + 20 * place + 18):
            t.launch("elementwise_kernel", at=at + 20 * place + 12, lasts=5)


def halves(t: TraceBuilder, at: float, number: int, between: bool = False) -> None:
    """Two backward passes, and an optimizer behind the last one or behind both."""
    for half in range(2):
        at = ops(t, LAYER * 15, at)
        for _ in range(15):
            backward(t, "AddmmBackward0", "aten::mm", at)
            at += 10
        if half or between:
            with t.scope("Optimizer.step#AdamW.step", at, at + 20):
                ops(t, ("aten::_foreach_add_",), at + 1)
            at += 25


def cached(t: TraceBuilder, at: float, number: int) -> float:
    return ops(t, (*LAYER, "aten::index_copy_") * 40, at)


CALL = ("aten::embedding", *LAYER * 4, "aten::bmm")
"""A network with layers, and what is before and behind them."""


def sampled(t: TraceBuilder, at: float, number: int) -> float:
    """A network that is called in a loop."""
    return ops(t, CALL * 10, at, blocks=64)


def contrasted(t: TraceBuilder, at: float, number: int) -> None:
    """Three calls of a network before a backward pass."""
    at = ops(t, CALL * 3, at)
    for _ in range(30):
        backward(t, "AddmmBackward0", "aten::mm", at)
        at += 10


def scheduled(t: TraceBuilder, at: float, number: int) -> float:
    """A table that the network makes on the host."""
    return ops(t, LAYER * 50, table(t, at, "Denoiser/time") + 1, blocks=64)


def table(t: TraceBuilder, at: float, module: str, size: int = 512) -> float:
    """A table that is copied to the device, in a module or in none; returns when the copy is done."""
    t.exact(at + 4.5, ("net.py", 7, "table"), module=module)
    return t.sync("aten::to > aten::copy_", at=at, copy="Memcpy HtoD (Pageable -> Device)", size=size)


def without_no_grad(t: TraceBuilder, at: float, number: int) -> None:
    """A network whose gradients nobody asks for."""
    for layer in range(60):
        with t.op("aten::addmm", at + 20 * layer, at + 20 * layer + 8, sequence=1000 * number + layer):
            t.launch("gemm", at=at + 20 * layer + 2, lasts=5, blocks=64)


@each(
    ("step", "expected"),
    [
        (plain, []),
        (ragged, ["shapes"]),
        (asked, ["data-sizes"]),
        (twice, ["double-backward"]),
        (halves, ["accumulation"]),
        (lambda t, at, number: halves(t, at, number, between=True), []),
        (cached, ["written-inputs"]),
        (sampled, ["calls"]),
        (contrasted, ["forwards"]),
        (scheduled, ["host-inputs"]),
        (without_no_grad, ["unused-gradients"]),
    ],
    ids=[
        *("none", "ragged", "asked", "twice", "halves", "optimizer_between", "cache"),
        *("sampled", "contrasted", "scheduled", "without_no_grad"),
    ],
)
def test_each_obstacle_is_seen_in_the_recording(step: Step, expected: list[str]) -> None:
    """Kernels of one name with other sizes, nodes of second gradients, passes without an optimizer, writes in place."""
    assert kinds(of(step)) == expected


def test_sizes_that_nothing_recorded_are_not_taken_to_change() -> None:
    """Other profilers write no grids."""
    assert kinds(of(lambda t, at, number: ops(t, LAYER * 60, at))) == []


def test_an_autograd_function_named_backward_is_no_double_backward() -> None:
    """FSDP registers hooks by a function of that name."""

    def step(t: TraceBuilder, at: float, number: int) -> None:
        with t.op("RegisterPostBackwardFunctionBackward", ops(t, LAYER * 60, at), at + 1250):
            pass

    assert kinds(of(step)) == []


@pytest.mark.parametrize(
    ("module", "size"), [("", 512), ("Denoiser/time", 8)], ids=["outside of the network", "one number"]
)
def test_a_copy_that_a_compile_can_do_without_is_no_input_of_its_network(module: str, size: int) -> None:
    """A batch is moved before the network's call, and a number becomes a constant."""
    assert kinds(of(lambda t, at, number: ops(t, LAYER * 50, table(t, at, module, size) + 1))) == []


def test_gradients_that_a_backward_pass_uses_are_used() -> None:
    """Its nodes have the numbers of the forward pass's ops."""

    def step(t: TraceBuilder, at: float, number: int) -> None:
        for layer in range(30):
            with t.op("aten::addmm", at + 20 * layer, at + 20 * layer + 8, sequence=1000 * number + layer):
                t.launch("gemm", at=at + 20 * layer + 2, lasts=5)
        for layer in range(30):
            start = at + 610 + 20 * layer
            with t.backward("AddmmBackward0", start, start + 8, sequence=1000 * number + 29 - layer):
                t.launch("gemm", at=start + 2, lasts=5)

    assert kinds(of(step)) == []


def test_frozen_networks_record_no_gradients() -> None:
    """Their ops all have the number of the next node, which nothing makes."""

    def step(t: TraceBuilder, at: float, number: int) -> None:
        for layer in range(60):
            with t.op("aten::addmm", at + 20 * layer, at + 20 * layer + 8, sequence=5):
                t.launch("gemm", at=at + 20 * layer + 2, lasts=5)

    assert kinds(of(step)) == []


def test_layers_are_no_calls() -> None:
    """Ops before and behind them come once."""
    assert kinds(of(lambda t, at, number: ops(t, ("aten::embedding", *LAYER * 50, "aten::bmm"), at))) == []


def test_each_obstacle_bounds_what_launches_take() -> None:
    """The clause is on the first screen, and the gain of the habit no promise."""
    analysis = of(sampled)
    first = " ".join(render(analysis, "text").split())
    assert "no gain is promised; a network is called 10 times per step: each compiled call costs" in first
    assert [h.basis for h in analysis.habits if h.basis and h.rule == "launch-bound"] == [Basis.UPPER_BOUND]


def test_where_shapes_change_no_graph_is_offered() -> None:
    """A compile is, and what launches take is an upper bound."""
    analysis = of(ragged)
    assert analysis.states is not None
    assert {state.launches for state in analysis.states.each} == {COMPILE}
    (habit,) = (h for h in analysis.habits if h.rule == "launch-bound")
    assert habit.recoverable_range_us is not None
    assert (habit.basis, habit.recoverable_range_us[0]) == (Basis.UPPER_BOUND, 0.0)
    assert habit.severity is not Severity.HIGH
    assert habit.fix.startswith("Shapes change between steps (120 of 120 kernels): no CUDA graph.")


def test_a_compile_that_raises_is_neither_offered_nor_projected() -> None:
    """The first screen says why, and `whatif` refuses it."""
    analysis = of(twice)
    assert analysis.states is not None
    assert {state.launches for state in analysis.states.each} <= {EAGER}
    first = " ".join(render(analysis, "text").split())
    assert "no gain is promised; double backward (20 ops): `torch.compile` raises" in first
    with pytest.raises(UsageError, match="Double backward"):
        analysis.whatif(launches="compile")
    assert analysis.whatif(launches="graph").provided.startswith("Only once this is mended: Double backward")


def test_a_compile_that_raises_is_no_change_to_make() -> None:
    """Torchdiffeq's `cnf.py`: what its launches take is a gain of no way to launch that can be had."""
    analysis = of(twice)
    assert [h.basis for h in analysis.habits if h.rule == "launch-bound"] in ([], [None])
    assert analysis.remedies == ()


@pytest.mark.parametrize("calls", [ObstacleKind.CALLS, ObstacleKind.FORWARDS])
def test_calls_that_no_graph_launches_gain_nothing_by_a_compile(calls: ObstacleKind) -> None:
    """Torchdiffeq's `latent_ode.py`: gradients without a backward pass keep graphs from it, and each call costs."""
    several, unused = Obstacle(calls, 72), Obstacle(ObstacleKind.UNUSED_GRADIENTS, 27, 442)
    assert prevented([several]) == frozenset()
    assert prevented([unused]) == {REDUCE_OVERHEAD}
    assert prevented([several, unused]) == {COMPILE, REDUCE_OVERHEAD}


def test_sizes_that_a_sync_reads_are_known_without_it() -> None:
    """Graphs are offered of the step without syncs, and not of the one with them."""
    states = of(asked).states
    assert states is not None
    assert states.state(REDUCE_OVERHEAD, False) is None
    assert states.state(REDUCE_OVERHEAD, True) is not None
    assert states.pair is not None
    assert states.pair.launches == REDUCE_OVERHEAD


def test_what_a_recording_can_not_tell_prevents_nothing() -> None:
    """Whether outputs are kept, or a cache is a buffer: the states stay, what launches take is an upper bound."""
    analysis = of(cached)
    assert analysis.states is not None
    assert analysis.states.state(REDUCE_OVERHEAD, False) is not None
    assert [h.basis for h in analysis.habits if h.basis and h.rule == "launch-bound"] == [Basis.UPPER_BOUND]


def test_json_has_the_obstacles() -> None:
    """With what they prevent, in words and by name."""
    document = json.loads(render(of(ragged), "json"))
    assert document["obstacles"] == [
        {
            "kind": ObstacleKind.SHAPES.value,
            "prevents": ["reduce-overhead"],
            "seen": 120,
            "of": 120,
            "clause": "shapes change between steps (120 of 120 kernels): no CUDA graph",
        }
    ]
    assert json.loads(render(launch_bound(), "json"))["obstacles"] == []
