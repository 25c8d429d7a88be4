"""The chain of slices around one, its names told once for all steps."""

from __future__ import annotations

from syncscan.facts.paths import Paths
from syncscan.model.trace import DEEPEST, NONE
from tests.builder import TraceBuilder


def test_a_chain_is_outermost_first() -> None:
    """One object a row, however often it is asked for; that of NONE is empty."""
    t = TraceBuilder()
    with t.scope("loss", 0, 20), t.op("aten::index", 1, 19):
        t.op("aten::item", 2, 9)
    paths = Paths(t.trace())
    matches = [paths.to(row) for row in (2, NONE, 0, 2)]
    assert [(path.rows, path.ops) for path in matches] == [
        ((0, 1, 2), (1, 2)),
        ((), ()),
        ((0,), ()),
        ((0, 1, 2), (1, 2)),
    ]
    assert matches[3] is matches[0]


def test_the_worker_is_the_outermost_op_that_does_work_itself() -> None:
    """Another op only holds it; where no op does work there is none."""
    t = TraceBuilder()
    with t.scope("loss", 0, 20), t.op("CompiledFunction", 1, 19), t.op("aten::index", 2, 18):
        t.op("aten::item", 3, 9)
    paths = Paths(t.trace())
    assert [paths.to(row).worker for row in range(4)] == [NONE, NONE, 2, 2]


def test_of_a_chain_that_is_too_deep_the_innermost_count() -> None:
    """As many as of the slices around one, itself among them."""
    t = TraceBuilder()
    for i in range(DEEPEST + 2):
        t.op(f"op{i}", i, 2000 - i)
    path = Paths(t.trace()).to(DEEPEST + 1)
    assert path.rows == tuple(range(2, DEEPEST + 2))
    assert path.names.every == tuple(f"op{i}" for i in range(2, DEEPEST + 2))


def test_a_call_site_has_the_same_names_in_every_step() -> None:
    """The steps' numbers differ, and are no scope of the program's."""
    t = TraceBuilder()
    for k in (1, 2):
        with t.step(1000 * k, 1000 * k + 900), t.scope("loss", 1000 * k + 1, 1000 * k + 20):
            t.op("aten::item", 1000 * k + 2, 1000 * k + 9)
    trace = t.trace()
    paths = Paths(trace)
    first, second = (paths.to(row) for row in range(len(trace.slices)) if trace.name(row) == "aten::item")
    assert first.names is second.names
    assert first.names.scopes == ("loss",)
