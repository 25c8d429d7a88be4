"""Collect rows in portions, as columns with a value only where a row has one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import numpy as np

from syncscan.model.trace import NONE

_BLOCK_ROWS = 1 << 16
"""Rows per block, of which the last may be partly empty: at most some MB."""

Arrays = dict[str, Any]
"""Columns by name, all of the same length."""
Values = tuple[str, int, Any]
"""Name of a column; index of the first added row with a value for it; the values from that row on."""


class Block(msgspec.Struct):
    rows: int
    columns: Arrays


class Table:
    """Rows added in portions; `NONE` where a row has no value.

    Values are copied into blocks at once, while they are in the processor's cache: joining thousands of small arrays at
    the end took twice as long. The first blocks are as small as their portions.
    """

    def __init__(self, types: Mapping[str, Any]) -> None:
        self._types = types
        self._blocks: list[Block] = []
        self._open, self._room = Block(0, {}), 0

    def add(self, count: int, values: Iterable[Values]) -> None:
        """Add rows; of several values for one place, the last counts."""
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
        rows, columns = self._open.rows, self._open.columns
        if rows:
            self._blocks.append(Block(rows, {name: column[:rows] for name, column in columns.items()}))
        self._open, self._room = Block(0, {}), 0

    def blocks(self) -> list[Block]:
        self._close()
        return self._blocks

    def take_over(self, blocks: Iterable[Block]) -> None:
        self._close()
        self._blocks += blocks

    def columns(self) -> Arrays:
        """Return the columns of all rows, freeing blocks meanwhile, so that nothing is in memory twice for long.

        A column without values is a single `NONE` shown for every row, which can't be written to.
        """
        self._close()
        rows = sum(block.rows for block in self._blocks)
        return {name: self._join(name, rows) for name in self._types}

    def _join(self, name: str, rows: int) -> Any:
        if rows and not any(name in block.columns for block in self._blocks):
            return empty(rows, self._types[name])
        column = np.empty(rows, self._types[name])
        at = 0
        for block in self._blocks:
            column[at : at + block.rows] = block.columns.pop(name, NONE)
            at += block.rows
        return column


def empty(rows: int, kind: Any) -> Any:
    """Return a column of `NONE` that takes the memory of one value."""
    return np.broadcast_to(np.array(NONE, kind), rows)


def is_empty(column: Any) -> bool:
    """Return whether a column is a read-only column of `NONE`."""
    return bool(column.strides == (0,))
