"""Open the database that `nsys export --type sqlite` wrote, and read the columns of its tables.

Exports leave out tables that would be empty, and columns came and went from version to version, so a missing one reads
as `NONE` (Nsight Systems' User Guide, SQLite Schema Reference; exports of schemas 3.20 to 3.25).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from syncscan.errors import TraceUnreadable
from syncscan.load.nsys.table_pages import Chosen, RowIds, Rows, TablePages, Texts
from syncscan.load.unpack import reason, redacted
from syncscan.model.arrays import Int64
from syncscan.model.trace import NONE

ROWS = 1 << 16
"""Rows that are read at once: some MB."""
Part = tuple[float, float]
"""Where a part of a table begins and ends, from 0 to 1."""
WHOLE = (0.0, 1.0)
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
        self.name, self._damaged = redacted(name), ""
        try:
            self._connection = sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro&immutable=1", uri=True)
            self._connection.execute("PRAGMA trusted_schema = OFF")
            # so that a file that is shorter than it says is read up to there; nothing can be written
            self._connection.execute("PRAGMA writable_schema = ON")
            listed = self._connection.execute("SELECT name, rootpage FROM sqlite_master WHERE type = 'table'")
            self.tables = {table: root for table, root in listed if isinstance(table, str)}
            """Each table's name, and its first page."""
        except sqlite3.Error as e:
            raise self._unreadable(e) from None
        if "StringIds" not in self.tables:
            self._connection.close()
            raise self._foreign()
        self._pages = TablePages(path)
        self._listed = cache(self._list_columns)

    @property
    def rows_read(self) -> int:
        return self._pages.rows_read

    @property
    def damaged(self) -> str:
        """Why tables end early or lack rows; empty if they don't."""
        return self._damaged or self._pages.damaged

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
        self._pages.close()

    def columns_of(self, table: str) -> frozenset[str]:
        """Return the names of a table's columns; empty without the table."""
        return frozenset(self._listed(table)[0])

    def _list_columns(self, table: str) -> tuple[Sequence[str], frozenset[str]]:
        """Return a table's columns in order, and those of its key, which may be stored elsewhere than in its rows."""
        rows = list(self._rows(f'PRAGMA table_info("{table}")')) if table in self.tables else []
        return [str(row[1]) for row in rows], frozenset(str(row[1]) for row in rows if row[5])

    def numbers(
        self, table: str, columns: Sequence[str], pages: int | None = None, chosen: Chosen | None = None
    ) -> Iterator[Int64]:
        """Yield the numbers of `blocks`, or of about so many pages of the table, here and there."""
        return (rows.numbers for rows in self.blocks(table, columns, pages=pages, chosen=chosen))

    def blocks(
        self,
        table: str,
        columns: Sequence[str],
        text: str = "",
        part: Part = WHOLE,
        pages: int | None = None,
        chosen: Chosen | None = None,
    ) -> Iterator[Rows]:
        """Yield the rows of a table some at a time, as one array of integers per column; `NONE` where there is none.

        An entry of `columns` lists the names that a column had over time, the first there counts: `demangledName
        shortName`. With the rows come the texts of the column `text`, if the table has it. Another process may read
        another `part` of a table. With `chosen` only rows are read that it marks by the first of `columns`, if the
        table has that.
        """
        listed, _ = self._listed(table)
        names = [next((name for name in column.split() if name in listed), "") for column in columns]
        present = [name for name in dict.fromkeys(names) if name]
        chosen = chosen if names[0] else None
        text = text if text in listed else ""
        for rows in self._stored(table, present, text, part, pages, chosen) if present else ():
            if present == names:
                yield rows
            else:
                missing = np.full(rows.numbers.shape[1], NONE, np.int64)
                every = [rows.numbers[present.index(name)] if name else missing for name in names]
                yield Rows(np.stack(every), rows.texts)

    def _stored(
        self, table: str, columns: Sequence[str], text: str, part: Part, pages: int | None, chosen: Chosen | None
    ) -> Iterator[Rows]:
        listed, keys = self._listed(table)
        leaves = None if keys.intersection(columns) else self._pages.leaves(self.tables[table])
        if leaves is None:
            yield from self._by_sql(table, columns, text, "" if part[0] == 0 else "WHERE 0", chosen)
            return
        leaves = leaves[round(part[0] * len(leaves)) : round(part[1] * len(leaves))]
        leaves = leaves[:: max(len(leaves) // pages, 1)] if pages else leaves
        at, of_text = list(map(listed.index, columns)), listed.index(text) if text else None
        for rows in self._pages.rows(leaves, at, of_text, chosen):
            if isinstance(rows, RowIds):
                clause = f"WHERE rowid BETWEEN {rows.first} AND {rows.last}"
                yield from self._by_sql(table, columns, text, clause, chosen)
            else:
                yield rows

    def _by_sql(
        self, table: str, columns: Sequence[str], text: str, clause: str, chosen: Chosen | None
    ) -> Iterator[Rows]:
        values = [f'IFNULL(CAST("{name}" AS INTEGER), {NONE})' for name in columns]
        values += [f'CAST("{text}" AS BLOB)'] if text else []
        rows = self._rows(f'SELECT {", ".join(values)} FROM "{table}" {clause}')
        while block := list(islice(rows, ROWS)):
            columns_ = list(zip(*block, strict=True))
            texts = Texts.of(columns_.pop()) if text else None
            every = Rows(np.array(columns_, np.int64), texts)
            yield every if chosen is None else every.select(np.flatnonzero(chosen(every.numbers[0])))

    def rows(self, statement: str) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the rows of a statement, some at a time."""
        rows = self._rows(statement)
        while block := list(islice(rows, ROWS)):
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

    def begins_with(self, table: str, condition: str) -> bool:
        """Return whether this holds for one of a table's first rows."""
        rows = f'SELECT * FROM "{table}" LIMIT {ROWS}'
        return bool(self._first_number(f"SELECT 1 FROM ({rows}) WHERE {condition} LIMIT 1"))

    def _first_number(self, statement: str) -> int:
        row = next(self._rows(statement), (0,))
        return row[0] if isinstance(row[0], int) else 0

    def _rows(self, statement: str, parameters: Sequence[Any] = ()) -> Iterator[Any]:
        try:
            yield from self._connection.execute(statement, parameters)
        except sqlite3.Error as e:
            self._damaged = reason(e)


def text(value: Any) -> str:
    """Return text as it is stored, as bytes or not, with what isn't UTF-8 replaced."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else ""
