"""A compile reaches parts of a step: its graph breaks, some ops stay eager, and the host still takes some time."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from syncscan.whatif.compile_changes import LIKELY, WHOLE, Launching, change_of
from syncscan.whatif.compile_reach import CompiledPiece, reach_of_graph
from tests.builder import TraceBuilder
from tests.networks import backward, intervals, op, ops, reached, read

LAYER = ("aten::addmm", "aten::gelu")


def names(pieces: Sequence[CompiledPiece]) -> list[list[str]]:
    """The ops of each piece, without their namespaces."""
    return [[op.name.rpartition("::")[2].rpartition(": ")[2] for op in piece.ops] for piece in pieces]


def test_without_a_sync_a_network_is_one_piece() -> None:
    """All ops of a forward pass, in one graph."""
    t = TraceBuilder()
    with t.step(0, 100):
        ops(t, [*LAYER, *LAYER], 10)
    _, extent = reached(t)
    assert names(extent.pieces) == [["addmm", "gelu", "addmm", "gelu"]]
    assert (extent.eager, extent.breaking, extent.ops) == ((), (), 4)
    assert extent.unit_ns == pytest.approx(38_000 / 4)


def read_once() -> TraceBuilder:
    """A step with a read between two layers of its network."""
    t = TraceBuilder()
    with t.step(0, 200):
        ops(t, LAYER, 10)
        read(t, 40)
        ops(t, LAYER, 100)
    return t


def test_a_sync_within_a_network_makes_two_graphs_of_it() -> None:
    """Dynamo ends one at it and begins another behind it; without the sync there is one."""
    _, extent = reached(read_once())
    assert names(extent.pieces) == [["addmm", "gelu", "item"], ["addmm", "gelu"]]
    assert len(extent.breaking) == 1
    _, extent = reached(read_once(), remove=True)
    assert (len(extent.pieces), extent.breaking) == (1, ())


def looped(module: str = "Net", function: str = "forward", before: bool = False) -> TraceBuilder:
    """A step whose network reads in each of three rounds of a loop, and perhaps once at another line before it."""
    t = TraceBuilder()
    with t.step(0, 500):
        at = ops(t, LAYER, 10)
        if before:
            at = ops(t, LAYER, read(t, at, line=3) + 1)
        for _ in range(3):
            at = ops(t, LAYER, read(t, at, line=9, function=function, module=module) + 1)
        ops(t, LAYER, at)
    return t


def test_a_sync_in_a_loop_keeps_its_whole_function_eager() -> None:
    """A graph can't end within a loop: dynamo runs the function as it is, from its begin."""
    _, extent = reached(looped())
    assert extent.pieces == ()
    assert sum(len(piece.ops) for piece in extent.eager) == 5 * len(LAYER) + 3
    assert extent.eager_ns == extent.host_ns


def test_behind_an_earlier_break_only_the_rest_stays_eager() -> None:
    """Dynamo makes of what follows a break a function of its own: the loop's is that one."""
    _, extent = reached(looped(before=True))
    assert names(extent.pieces) == [["addmm", "gelu"]]
    assert 0 < extent.eager_ns < extent.host_ns


def test_a_loop_in_a_function_that_the_network_calls_stays_eager_alone() -> None:
    """The rest of the network is compiled before and behind it: a module within, or a function beside `forward`."""
    for t in (looped(module="Net/router"), looped(function="route")):
        _, extent = reached(t)
        assert names(extent.pieces) == [["addmm", "gelu"], ["addmm", "gelu", "addmm", "gelu"]]
        assert 0 < extent.eager_ns < extent.host_ns


def calling(*looped: str) -> TraceBuilder:
    """A step whose network's `forward` calls a function that reads, in three rounds; the loop is in one of them."""
    call = ("site-packages/torch/nn/modules/module.py", 1790, "_call_impl")
    t = TraceBuilder()
    with t.step(0, 500):
        at = ops(t, LAYER, 10)
        for _ in range(3):
            t.exact(at + 4.5, ("net.py", 3, "read"), ("net.py", 12, "forward"), call, module="Net")
            at = ops(t, LAYER, t.sync("aten::item > aten::_local_scalar_dense", at=at) + 1)
        ops(t, LAYER, at)
    lines = t.metadata["syncscan"]["lines"]
    lines["looped"] = [number for number, frame in enumerate(lines["frames"]) if frame[2] in looped]
    return t


def test_a_loop_of_forward_that_calls_a_reading_function_keeps_forward_eager() -> None:
    """Dynamo meets the loop of `forward` first, wherever the read is (`LoopHelper` of `benchmarks/dynamo_reads.py`)."""
    _, extent = reached(calling("forward"))
    assert extent.pieces == ()
    assert extent.eager_ns == extent.host_ns
    _, extent = reached(calling("read"))
    assert names(extent.pieces) == [["addmm", "gelu"], ["addmm", "gelu", "addmm", "gelu"]]


def test_a_network_that_reads_once_in_each_of_several_calls_is_compiled_in_parts() -> None:
    """No loop is within it: each read ends a graph and begins another."""
    _, extent = reached(calling())
    assert names(extent.pieces) == [["addmm", "gelu", "item"], *[["addmm", "gelu", "item"]] * 2, ["addmm", "gelu"] * 2]
    assert extent.eager == ()


def test_without_the_loop_s_sync_all_of_it_is_one_graph() -> None:
    """Dynamo unrolls the loop."""
    _, extent = reached(looped(), remove=True)
    assert (len(extent.pieces), extent.eager) == (1, ())


def test_a_sync_outside_of_the_network_parts_its_calls_and_breaks_nothing() -> None:
    """A loss that is read between two calls of a network: each call is a graph, removed or not."""
    t = TraceBuilder()
    with t.step(0, 200):
        ops(t, LAYER, 10)
        read(t, 35, function="train", module="")
        at = ops(t, LAYER, 100)
        read(t, at, function="forward", module="Net/head", line=90)
    _, extent = reached(t)
    assert [f.source.function for f in extent.breaking if f.source] == ["forward"]
    for remove in (False, True):
        assert len(reached(t, remove)[1].pieces) == 2


def test_what_follows_each_of_several_calls_is_the_loops_own() -> None:
    """A sampler that reads after each call: what lies behind the last product stays eager; with one call it doesn't."""
    for calls, left in ((3, ["addmm", "gelu", "addmm"]), (1, ["addmm", "gelu", "addmm", "mul", "add"])):
        t = TraceBuilder()
        with t.step(0, 400):
            at = 10.0
            for number in range(calls):
                at = ops(t, (*LAYER, "aten::addmm", "aten::mul", "aten::add"), at)
                if number < calls - 1:
                    at = read(t, at, function="train", module="") + 1
            read(t, at, function="forward", module="Net", line=90)
        _, extent = reached(t)
        assert [each[:5] for each in names(extent.pieces)][:1] == [left]
        assert len(extent.pieces) == calls


def test_what_has_no_product_before_a_training_step_s_network_is_no_call_of_it() -> None:
    """The last loss that is read and the batch that is copied are the program's own, as after each of several calls."""
    t = TraceBuilder()
    with t.step(0, 400):
        read(t, 10, function="train", module="")
        at = read(t, ops(t, ["aten::to"], 40), function="train", module="", line=9) + 1
        at = read(t, ops(t, LAYER, at), function="forward", module="Net", line=90) + 1
        at = ops(t, ["aten::addmm"], at)
        backward(t, "AddmmBackward0", "aten::mm", at)
    _, extent = reached(t, remove=True)
    assert names(extent.pieces) == [["addmm", "gelu", "item", "addmm"], ["AddmmBackward0"]]


@pytest.mark.parametrize("inner", ["aten::_cudnn_rnn", "aten::miopen_rnn"])
def test_a_recurrent_layer_ends_a_graph_and_stays_as_it_is(inner: str) -> None:
    """Dynamo doesn't trace `nn.LSTM` and its like: their ops aren't compiled, nor part of what an op takes."""
    t = TraceBuilder()
    with t.step(0, 500):
        ops(t, LAYER, 10)
        with t.op("aten::lstm", 40, 240), t.op(inner, 50, 230):
            for at in range(60, 220, 10):
                t.launch("rnn_kernel", at=at, lasts=5)
        at = ops(t, ["aten::addmm"], 250)
        for node, name in (("AddmmBackward0", "aten::mm"), ("Rnn0", f"{inner}_backward"), ("G0", "aten::mul")):
            backward(t, node, name, at)
            at += 10
    _, extent = reached(t)
    assert names(extent.pieces) == [["addmm", "gelu"], ["addmm"], ["AddmmBackward0"], ["G0"]]
    assert (extent.ops, extent.unit_ns) == (5, pytest.approx((18_000 + 3 * 8_000) / 5))


def test_each_call_that_a_pass_holds_costs() -> None:
    """Two networks of one kind, forward and backward: four calls instead of two."""
    tower = ("aten::norm", *LAYER * 4)
    for calls in (1, 2):
        t = TraceBuilder()
        with t.step(0, 600):
            at = ops(t, tower * calls, 10)
            for _ in range(8):
                backward(t, "AddmmBackward0", "aten::mm", at)
                at += 10
        _, extent = reached(t)
        assert [piece.calls for piece in extent.pieces] == [calls] * 2
        paced = change_of(extent, Launching.REDUCE_OVERHEAD, LIKELY).paced
        units = sum(each.factor * (each.end - each.begin) for each in paced) / extent.unit_ns
        assert units == pytest.approx(2 * calls * LIKELY.replay)


def test_a_backward_pass_is_parted_as_its_forward_pass_is() -> None:
    """Autograd has a graph for each graph of the forward pass, in reverse order."""
    t = TraceBuilder()
    with t.step(0, 300):
        ops(t, LAYER, 10)
        read(t, 35)
        ops(t, ["aten::addmm"], 100)
        for at, node in ((150, "C"), (160, "B"), (170, "A")):
            backward(t, f"{node}Backward0", "aten::mm", at)
    _, extent = reached(t)
    assert [piece.trains for piece in extent.pieces] == [True] * 4
    assert [len(piece.ops) for piece in extent.pieces[2:]] in ([1, 2], [2, 1])
    assert len(reached(t, remove=True)[1].pieces) == 2


def test_a_cuda_graph_of_the_program_s_own_holds_everything_between_two_waits() -> None:
    """Optimizer and all: only syncs part it."""
    t = read_once()
    analysis, _ = reached(t)
    steps = intervals(analysis.trace)
    whole = reach_of_graph(analysis.trace, steps, analysis.findings, frozenset(f.id for f in analysis.findings))
    parted = reach_of_graph(analysis.trace, steps, analysis.findings, frozenset())
    assert (len(whole.pieces), len(parted.pieces), len(parted.breaking)) == (1, 2, 1)


def test_a_compiled_piece_takes_the_host_the_time_of_its_costs() -> None:
    """Two ops that launch, one generated kernel, a library's op, and a call: `Costs` in ops that launch."""
    t = TraceBuilder()
    with t.step(0, 100):
        ops(t, LAYER, 10)
    _, extent = reached(t)
    (paced,) = change_of(extent, Launching.COMPILE, LIKELY).paced
    of_ops = LIKELY.op * 2 + LIKELY.kernel + LIKELY.library * 8_000 / extent.unit_ns
    taken = LIKELY.ops_only * of_ops + LIKELY.call_only
    assert paced.factor * (paced.end - paced.begin) == pytest.approx(taken * extent.unit_ns)


@pytest.mark.parametrize(
    ("how", "units"),
    [(Launching.REDUCE_OVERHEAD, LIKELY.replay_only), (Launching.GRAPH, LIKELY.replay * WHOLE)],
)
def test_a_replayed_graph_takes_the_host_as_long_however_many_launches_it_holds(how: Launching, units: float) -> None:
    """One call for all: of four layers as of one."""
    for layers in (1, 4):
        t = TraceBuilder()
        with t.step(0, 200):
            ops(t, LAYER * layers, 10)
        _, extent = reached(t)
        (paced,) = change_of(extent, how, LIKELY).paced
        assert paced.factor * (paced.end - paced.begin) == pytest.approx(units * extent.unit_ns)


def test_eager_changes_nothing() -> None:
    """Launches as they are."""
    _, extent = reached(read_once())
    change = change_of(extent, Launching.EAGER, LIKELY)
    assert (change.work, change.paced) == ((), ())


def test_a_long_pause_between_ops_is_other_work_and_stays() -> None:
    """No compile spares what the program does there."""
    t = TraceBuilder()
    with t.step(0, 1000):
        ops(t, LAYER * 10, 10)
        ops(t, LAYER * 10, 800)
    _, extent = reached(t)
    paced = change_of(extent, Launching.REDUCE_OVERHEAD, LIKELY).paced
    assert [p.end - p.begin for p in paced] == [198_000, 198_000]


def test_gradients_that_are_added_up_take_time_beside_the_graph() -> None:
    """A part of an op for each parameter."""
    node = "torch::autograd::AccumulateGrad"

    def taken(parameters: int) -> float:
        t = TraceBuilder()
        with t.step(0, 200):
            ops(t, LAYER, 10)
            backward(t, "AddmmBackward0", "aten::mm", 60)
            for number in range(parameters):
                at = 80 + 10 * number
                with t.op(f"autograd::engine::evaluate_function: {node}", at, at + 9), t.op(node, at, at + 9):
                    op(t, "aten::add_", at + 0.5)
        _, extent = reached(t)
        change = change_of(extent, Launching.REDUCE_OVERHEAD, LIKELY)
        return sum(p.factor * (p.end - p.begin) for p in change.paced) / extent.unit_ns

    assert taken(3) - taken(0) == pytest.approx(3 * LIKELY.gradient)
