"""Rows added some at a time end as whole columns, in order, NONE where a row has no value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncscan.load.table import Table, is_empty
from syncscan.model.trace import NONE

TYPES = {"a": np.int64, "b": np.int32, "never": np.int8}

Added = list[tuple[int, int]]
"""How many rows have no `b`, and how many behind them have one."""


def filled(table: Table, added: Added, begin: int = 0) -> list[int]:
    """Add rows whose `a` counts on from `begin`; their `b`, NONE without."""
    expected: list[int] = []
    for without, other_columns in added:
        count, first = without + other_columns, begin + len(expected)
        of_b = list(range(first + without, first + count))
        values: list[Any] = [("a", 0, np.arange(first, first + count)), ("b", without, np.array(of_b, np.int32))]
        table.add(count, values if other_columns else values[:1])
        expected += [NONE] * without + of_b
    return expected


@given(*[st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=20)] * 2)
def test_columns(first: Added, second: Added) -> None:
    """They are the columns of its own rows, followed by those of another table."""
    table, other = Table(TYPES), Table(TYPES)
    expected = filled(table, first)
    expected += filled(other, second, len(expected))
    table.take_over(other.blocks())
    columns = table.columns()
    assert {name: column.dtype.type for name, column in columns.items()} == TYPES
    assert {name: column.tolist() for name, column in columns.items()} == {
        "a": list(range(len(expected))), "b": expected, "never": [NONE] * len(expected),
    }  # fmt: skip


def test_a_column_that_no_row_has_takes_no_memory() -> None:
    """It is one number, shown as often as there are rows, and refuses to be written to."""
    table = Table(TYPES)
    table.add(1000, [("a", 0, np.arange(1000))])
    never = table.columns()["never"]
    assert is_empty(never)
    assert never.tolist() == [NONE] * 1000
    with pytest.raises(ValueError, match="read-only"):
        never[0] = 1
