"""Open the database that `nsys export --type sqlite` wrote, and read the columns of its tables.

Exports leave out tables that would be empty, and columns came and went from version to version, so a missing one reads
as `NONE` (Nsight Systems' User Guide, SQLite Schema Reference; exports of schemas 3.20 to 3.25).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from syncscan.errors import TraceUnreadable
from syncscan.load.redaction import redacted
from syncscan.load.unpack import reason
from syncscan.model.arrays import Int64
from syncscan.model.trace import NONE

ROWS = 1 << 16
"""Rows that are read at once: some MB."""
_AT_ONCE = 500
"""Texts to look up by one statement; SQLite takes 999 parameters or more."""
_OTHERS = {
    "rocpd_": "is a database of rocprofv3 (rocpd), which `rocpd convert` and TraceLens read",
    "CUPTI_ACTIVITY_KIND_": "is a database of nvprof, which the NVIDIA Visual Profiler reads",
}
"""Prefix of a table's name → what a database with such tables is, where Nsight Systems' own tables are missing."""


class Database:
    """A database that is only read, and as it is: another program's locks don't count, and nothing is written.

    Where it is damaged or cut, its tables end early and `damaged` says why.
    """

    def __init__(self, path: str, name: str) -> None:
        self.name, self.damaged = redacted(name), ""
        self.rows_read = 0
        try:
            self._connection = sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro&immutable=1", uri=True)
            self._connection.execute("PRAGMA trusted_schema = OFF")
            # so that a file that is shorter than it says is read up to there; nothing can be written
            self._connection.execute("PRAGMA writable_schema = ON")
            listed = self._connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            self.tables = frozenset(table for (table,) in listed if isinstance(table, str))
        except sqlite3.Error as e:
            raise self._unreadable(e) from None
        if "StringIds" not in self.tables:
            self.close()
            raise self._foreign()

    def _unreadable(self, error: Exception) -> TraceUnreadable:
        return TraceUnreadable(
            f"{self.name} is a damaged SQLite database: {reason(error)}.", "Copy or export it again."
        )

    def _foreign(self) -> TraceUnreadable:
        for prefix, what in _OTHERS.items():
            if any(table.startswith(prefix) for table in self.tables):
                return TraceUnreadable(f"{self.name} {what}.", "syncscan reads torch.profiler's and Nsight Systems'.")
        return TraceUnreadable(
            f"{self.name} is an SQLite database, but not an export of Nsight Systems: it has no table StringIds.",
            "Give a trace, or what nsys export --type sqlite writes.",
        )

    def close(self) -> None:
        self._connection.close()

    def columns_of(self, table: str) -> frozenset[str]:
        """Return the names of a table's columns; empty without the table."""
        if table not in self.tables:
            return frozenset()
        return frozenset(str(column[1]) for column in self._rows(f'PRAGMA table_info("{table}")'))

    def numbers(self, table: str, columns: Sequence[str], clause: str = "") -> Iterator[Int64]:
        """Yield the rows of a table some at a time, as one array of integers per column; `NONE` where there is none.

        An entry of `columns` lists the names that a column had over time, the first there counts: `demangledName
        shortName`.
        """
        there = self.columns_of(table)
        names = [next((name for name in column.split() if name in there), "") for column in columns]
        if not any(names):
            return
        chosen = ", ".join(f'IFNULL(CAST("{name}" AS INTEGER), {NONE})' if name else str(NONE) for name in names)
        values = chain.from_iterable(self._rows(f'SELECT {chosen} FROM "{table}" {clause}'))
        while len(block := np.fromiter(islice(values, ROWS * len(names)), np.int64)):
            self.rows_read += len(block) // len(names)
            yield block.reshape(-1, len(names)).T

    def rows(self, statement: str) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the rows of a statement, some at a time."""
        found = self._rows(statement)
        while block := list(islice(found, ROWS)):
            self.rows_read += len(block)
            yield block

    def texts(self, ids: Iterable[int]) -> Mapping[int, bytes]:
        """Return the strings of these ids; those that aren't there are left out."""
        wanted, texts = iter(ids), {}
        while some := list(islice(wanted, _AT_ONCE)):
            marks = ", ".join("?" * len(some))
            statement = f"SELECT id, CAST(value AS BLOB) FROM StringIds WHERE id IN ({marks})"
            texts.update({number: text for number, text in self._rows(statement, some) if text is not None})
        return texts

    def total(self, tables: Iterable[str]) -> int:
        """Return about how many rows these tables have, without counting."""
        return sum(self._first_number(f'SELECT MAX(rowid) FROM "{t}"') for t in tables if t in self.tables)

    def has(self, table: str, condition: str) -> bool:
        return bool(self._first_number(f'SELECT 1 FROM "{table}" WHERE {condition} LIMIT 1'))

    def _first_number(self, statement: str) -> int:
        row = next(self._rows(statement), (0,))
        return row[0] if isinstance(row[0], int) else 0

    def _rows(self, statement: str, parameters: Sequence[Any] = ()) -> Iterator[Any]:
        try:
            yield from self._connection.execute(statement, parameters)
        except sqlite3.Error as e:
            self.damaged = reason(e)


def text(value: Any) -> str:
    """Return text as it is stored, as bytes or not, with what isn't UTF-8 replaced."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else ""
