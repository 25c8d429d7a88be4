"""The chain of slices around one: climbed alone or together with others, its names told once for all steps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncscan.model import paths
from syncscan.model.paths import ANNOTATION, CPU_OP, Path, Paths
from syncscan.model.trace import NONE
from tests.builder import TraceBuilder

STRINGS = ("aten::index", "aten::item", "scope", "ProfilerStep#1", "ProfilerStep#2")


@given(st.lists(st.tuples(st.integers(NONE, 40), st.integers(0, 4), st.booleans()), max_size=40), st.integers(1, 6))
def test_chains_are_the_same_climbed_together_or_one_by_one(slices: list[tuple[int, int, bool]], deepest: int) -> None:
    """In any tree, also where chains are longer than what counts."""
    parent = np.array([min(around, row - 1) for row, (around, _, _) in enumerate(slices)], np.int32)
    name = np.array([number for _, number, _ in slices], np.int32)
    category = np.array([CPU_OP if op else ANNOTATION for _, _, op in slices], np.int8)
    together, alone = (Paths(STRINGS, name, category, parent, (3, 4), deepest) for _ in range(2))
    rows = np.arange(NONE, len(slices))
    together.prepare(rows)
    assert [_told(together.to(row)) for row in rows.tolist()] == [_told(alone.to(row)) for row in rows.tolist()]


def _told(path: Path) -> tuple[object, ...]:
    names = path.names
    return path.rows, path.ops, names.every, names.ops, names.scopes, names.is_op, names.worker


def test_many_chains_are_climbed_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that those of the deepest nesting don't take all memory at once."""
    monkeypatch.setattr(paths, "_TOGETHER", 2)
    t = TraceBuilder()
    for k in range(5):
        with t.op("aten::index", 10 * k, 10 * k + 5):
            t.op("aten::item", 10 * k + 1, 10 * k + 2)
    trace = t.trace()
    rows = np.flatnonzero(trace.slices.parent != NONE)
    trace.paths.prepare(rows)
    assert [trace.paths.to(row).names.ops for row in rows.tolist()] == [("aten::index", "aten::item")] * 5


def test_chains_of_many_rows_are_those_of_each() -> None:
    """One object a row, however often it is asked for; that of NONE is empty."""
    t = TraceBuilder()
    with t.scope("loss", 0, 20), t.op("aten::index", 1, 19):
        t.op("aten::item", 2, 9)
    trace = t.trace()
    rows = np.array([2, NONE, 0, 2])
    found = trace.paths.to_each(rows)
    assert [(path.rows, path.ops) for path in found] == [((0, 1, 2), (1, 2)), ((), ()), ((0,), ()), ((0, 1, 2), (1, 2))]
    assert found == [trace.paths.to(row) for row in rows.tolist()]


def test_a_call_site_has_the_same_names_in_every_step() -> None:
    """The steps' numbers differ, and are no scope of the program's."""
    t = TraceBuilder()
    for k in (1, 2):
        with t.step(1000 * k, 1000 * k + 900), t.scope("loss", 1000 * k + 1, 1000 * k + 20):
            t.op("aten::item", 1000 * k + 2, 1000 * k + 9)
    trace = t.trace()
    first, second = (trace.paths.to(row) for row in range(len(trace.slices)) if trace.name(row) == "aten::item")
    assert first.names is second.names
    assert first.names.scopes == ("loss",)
