"""Guards and allowed blocks around functions that `torch.compile` compiles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import syncscan
from tests.as_on_a_gpu import Machine

torch = pytest.importorskip("torch")
dynamo = pytest.importorskip("torch._dynamo")
testing = pytest.importorskip("torch._dynamo.testing")


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    dynamo.reset()
    yield
    dynamo.reset()


def test_an_allowed_block_breaks_no_graph() -> None:
    """Compiled whole, and compiled once whether or not another block is open around it."""

    def inside(x: Any) -> Any:
        with syncscan.allow("reads its choice"):
            y = x.sin()
        return y * 2

    counter = testing.CompileCounter()
    compiled = torch.compile(inside, backend=counter, fullgraph=True)
    x = torch.ones(3)
    for _ in range(3):
        assert torch.equal(compiled(x), x.sin() * 2)
    assert counter.frame_count == 1


def test_an_allowed_block_holds_where_the_graph_breaks(machine: Machine) -> None:
    """The read-back that breaks it is allowed; the one behind the block is not."""

    @dynamo.disable
    def read(x: Any) -> float:
        machine.sync()
        return float(x)

    def step(x: Any) -> Any:
        y = x.sin()
        with syncscan.allow("reads its choice"):
            value = read(y.sum())
        return y * value + read(y.sum())

    compiled = torch.compile(step, backend="eager")
    with syncscan.guard(on_violation=lambda sync: None) as guard:
        for _ in range(3):
            compiled(torch.ones(3))
    assert (dict(guard.by_reason), guard.count) == ({"reads its choice": 3}, 3)


def test_a_guard_compiles_nothing_anew(machine: Machine) -> None:
    """Neither what was compiled before it, nor, once it has ended, what was compiled under it."""

    def moves(x: Any) -> Any:
        buffer = torch.empty(3)
        buffer.copy_(x, non_blocking=True)
        return x.to(torch.float64, non_blocking=True) + buffer.to("cpu", torch.float32, True)

    x = torch.ones(3)
    before, under = testing.CompileCounter(), testing.CompileCounter()
    first = torch.compile(moves, backend=before, fullgraph=True)
    first(x)
    with syncscan.guard() as guard:
        first(x)
        dynamo.reset()
        second = torch.compile(moves, backend=under, fullgraph=True)
        assert torch.equal(second(x), moves(x))
    second(x)
    assert (before.frame_count, under.frame_count, guard.count) == (1, 1, 0)


@pytest.mark.parametrize("mode", [0, 2], ids=["guard", "error"])
def test_a_graph_s_capture_may_synchronize(machine: Machine, mode: int) -> None:
    """Torch waits as it begins a capture; to raise there would leave the stream capturing for good."""
    file = torch.cuda.graphs.__file__
    capture: dict[str, Any] = {}
    exec(compile("def capture_begin(sync):\n    return sync()", file, "exec"), capture)
    machine.mode = mode
    with syncscan.guard(on_violation="raise") as guard:
        capture["capture_begin"](machine.sync)
    assert (guard.count, dict(guard.by_reason)) == (0, {"a graph's capture began or ended": 1})


def test_what_a_graph_s_capture_calls_may_not(machine: Machine) -> None:
    """The program's own function, which `make_graphed_callables` runs, waits for itself."""
    capture: dict[str, Any] = {}
    exec(compile("def make_graphed(f):\n    return f()", torch.cuda.graphs.__file__, "exec"), capture)
    with syncscan.guard(on_violation="raise"), pytest.raises(syncscan.UnexpectedSync):
        capture["make_graphed"](lambda: machine.sync())
