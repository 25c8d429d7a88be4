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
