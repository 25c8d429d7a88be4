"""From rows that come in some at a time, with the columns that they have, to whole columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import numpy as np

from syncscan.load.side_by_side import each
from syncscan.model.trace import NONE

_BLOCK_ROWS = 1 << 16
"""Rows of a block, of which the last one may be empty: at most some MB."""

Arrays = dict[str, Any]
"""Columns by name, all of one length."""
Values = tuple[str, int, Any]
"""Name of a column; the first of the added rows that has a value of it; the values of that row and those behind it."""


class Block(msgspec.Struct):
    """Some rows of a table, with those columns that any of them has."""

    rows: int
    columns: Arrays


class Table:
    """Rows that are added some at a time; `NONE` stands where one has no value of a column.

    Values are copied into blocks at once, while the processor's cache has them: joining thousands of small arrays at
    the end took twice as long. The first blocks are as small as what is added.

    Args:
        types: name → numpy dtype of each column.
    """

    def __init__(self, types: Mapping[str, Any]) -> None:
        self._types = types
        self._blocks: list[Block] = []
        self._open, self._room = Block(0, {}), 0

    def add(self, count: int, values: Iterable[Values]) -> None:
        """Add rows.

        Args:
            count: how many.
            values: what they have; of several for one place the last counts.
        """
        if self._open.rows + count > self._room:
            self._close()
            self._room = max(count, min(sum(block.rows for block in self._blocks), _BLOCK_ROWS))
        columns, begin = self._open.columns, self._open.rows
        for name, first, some in values:
            if name not in columns:
                columns[name] = np.full(self._room, NONE, self._types[name])
            start = begin + first
            columns[name][start : start + len(some)] = some
        self._open.rows += count

    def _close(self) -> None:
        """Add what was collected to the blocks, and begin anew."""
        rows, columns = self._open.rows, self._open.columns
        if rows:
            self._blocks.append(Block(rows, {name: column[:rows] for name, column in columns.items()}))
        self._open, self._room = Block(0, {}), 0

    def blocks(self) -> list[Block]:
        """All rows, for another table."""
        self._close()
        return self._blocks

    def take_over(self, blocks: Iterable[Block]) -> None:
        """Add the rows of another table."""
        self._close()
        self._blocks += blocks

    def columns(self) -> Arrays:
        """All rows' columns; takes the blocks apart meanwhile, so that nothing is held twice for long.

        One that no row has is a single `NONE`, shown as often as there are rows: it can't be written to.
        """
        self._close()
        rows, columns = sum(block.rows for block in self._blocks), dict.fromkeys(self._types)

        def join(name: str) -> None:
            columns[name] = self._joined(name, rows)

        each(columns, join, rows)
        return columns

    def _joined(self, name: str, rows: int) -> Any:
        if rows and not any(name in block.columns for block in self._blocks):
            return empty(rows, self._types[name])
        column = np.empty(rows, self._types[name])
        at = 0
        for block in self._blocks:
            column[at : at + block.rows] = block.columns.pop(name, NONE)
            at += block.rows
        return column


def empty(rows: int, kind: Any) -> Any:
    """A column of `NONE` that takes the memory of one."""
    return np.broadcast_to(np.array(NONE, kind), rows)


def is_empty(column: Any) -> bool:
    """Whether it is such a column."""
    return bool(column.strides == (0,))
