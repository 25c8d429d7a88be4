"""Rows that are read from an SQLite file's pages are those that SQL returns."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from syncscan.load.nsys.database import Database
from syncscan.model.trace import NONE

INTEGERS = [0, 1, 2, -1, 127, -128, 1 << 14, -(1 << 22), 1 << 30, 1 << 46, -(1 << 62), (1 << 63) - 1]
Row = tuple[Any, ...]


def database(tmp_path: Path, rows: list[Row], *settings: str, key: str = "") -> Database:
    """Write the rows as columns a, b, c, t, e with the text in t, as an export of Nsight Systems, and open it."""
    path = tmp_path / "export.sqlite"
    with sqlite3.connect(path) as base:
        for setting in settings:
            base.execute(f"PRAGMA {setting}")
        base.execute("CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)")
        base.execute(f"CREATE TABLE events (a INTEGER{key}, b, c, t TEXT, e)")
        base.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?)", rows)
    base.close()
    return Database(str(path), "export.sqlite")


def read(opened: Database, *parts: tuple[float, float]) -> list[Row]:
    """Return the columns c, a, e, one that isn't there, and the text, in any order."""
    rows: list[Row] = []
    for part in parts or ((0.0, 1.0),):
        for block in opened.blocks("events", ["c", "a", "e", "gone"], "t", part):
            assert block.texts is not None
            texts = zip(block.texts.begins.tolist(), block.texts.strings(), strict=True)
            stored = [None if begin == NONE else text for begin, text in texts]
            rows += zip(*block.numbers.tolist(), stored, strict=True)
    opened.close()
    return sorted(rows, key=repr)


def expected(rows: list[Row]) -> list[Row]:
    numbers = [tuple(NONE if value is None else int(float(value)) if isinstance(value, str) else int(value)
                     for value in (c, a, e)) for a, _, c, _, e in rows]  # fmt: skip
    return sorted(((*number, NONE, row[3]) for number, row in zip(numbers, rows, strict=True)), key=repr)


def random_rows(random: Random, count: int, odd: bool) -> list[Row]:
    def number() -> Any:
        return random.choice([None, *INTEGERS, random.getrandbits(random.randrange(1, 63))])

    def text() -> str | None:
        length = random.choice([0, 5, 30, 57, 58, 63, 64, 90, *([300, 5000, 20_000] if odd else [])])
        return random.choice([None, "ä" * (length // 2), "x" * length, "x" * length])

    rows = [(number(), b"y" * random.randrange(3), number(), text(), number()) for _ in range(count)]
    if odd:
        rows[count // 2] = (7, None, 2.5, "a float", "12")
    return rows


@pytest.mark.parametrize("odd", [False, True])
@pytest.mark.parametrize("size", [512, 4096, 65536])
def test_pages_hold_what_sql_says(tmp_path: Path, size: int, odd: bool) -> None:
    rows = random_rows(Random(size), 3000, odd)
    opened = database(tmp_path, rows, f"page_size = {size}")
    assert read(opened) == expected(rows)
    assert not opened.damaged


def test_only_odd_pages_are_left_to_sql(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = database(tmp_path, [*random_rows(Random(1), 2000, False), (1, 2, 3, "x" * 9000, 4)])
    clauses: list[str] = []
    by_sql = Database._by_sql
    monkeypatch.setattr(Database, "_by_sql", lambda *args: [clauses.append(args[4]), by_sql(*args)][1])
    assert len(read(opened)) == 2001
    assert len(clauses) == 2  # the last one, and the one in which row ids get a byte longer
    assert all(clause.startswith("WHERE rowid BETWEEN") for clause in clauses)


@pytest.mark.parametrize("key", [" PRIMARY KEY", " NOT NULL PRIMARY KEY DESC"])
def test_keys_are_left_to_sql(tmp_path: Path, key: str) -> None:
    rows = [(number, None, number, "ü", 2) for number in range(100)]
    assert read(database(tmp_path, rows, key=key)) == expected(rows)


def test_another_encoding_is_left_to_sql(tmp_path: Path) -> None:
    rows = [(number, None, number, "ü", 2) for number in range(100)]
    opened = database(tmp_path, rows, "encoding = 'UTF-16'")
    assert [row[:3] for row in read(opened)] == [row[:3] for row in expected(rows)]


def test_a_key_that_is_not_asked_for_leaves_pages_to_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(number, None, number, "ü", 2) for number in range(100)]
    opened = database(tmp_path, rows, key=" PRIMARY KEY")
    monkeypatch.setattr(Database, "_by_sql", lambda *_: pytest.fail("by SQL"))
    assert sum(numbers.shape[1] for numbers in opened.numbers("events", ["c", "e"])) == 100


def test_a_table_without_row_ids_is_left_to_sql(tmp_path: Path) -> None:
    database(tmp_path, []).close()
    with sqlite3.connect(tmp_path / "export.sqlite") as base:
        base.execute("CREATE TABLE other (a INTEGER PRIMARY KEY, b) WITHOUT ROWID")
        base.execute("INSERT INTO other VALUES (1, 2)")
    base.close()
    opened = Database(str(tmp_path / "export.sqlite"), "x")
    assert [numbers.tolist() for numbers in opened.numbers("other", ["b"])] == [[[2]]]
    assert not opened.damaged


def test_parts_of_a_table_make_the_whole(tmp_path: Path) -> None:
    rows = random_rows(Random(2), 3000, True)
    opened = database(tmp_path, rows)
    assert read(opened, (0.0, 0.3), (0.3, 1.0)) == expected(rows)


def test_added_columns_are_none_in_older_rows(tmp_path: Path) -> None:
    opened = database(tmp_path, [(1, 2, 3, "t", 4)])
    opened.close()
    with sqlite3.connect(tmp_path / "export.sqlite") as base:
        base.execute("ALTER TABLE events ADD COLUMN later INTEGER DEFAULT 9")
        base.execute("INSERT INTO events VALUES (5, 6, 7, 't', 8, 10)")
    base.close()
    opened = Database(str(tmp_path / "export.sqlite"), "x")
    numbers = np.concatenate(list(opened.numbers("events", ["a", "later"])), axis=1)
    assert sorted(numbers.T.tolist()) == [[1, 9], [5, 10]]


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=[pytest.mark.slow] * (seed >= 8)) for seed in range(40)])
def test_damaged_pages_lose_rows_and_no_more(tmp_path: Path, seed: int) -> None:
    random, path = Random(seed), tmp_path / "export.sqlite"
    database(tmp_path, random_rows(random, 1500, True)).close()
    stored = bytearray(path.read_bytes())
    for _ in range(random.choice([1, 30, 3000])):
        stored[random.randrange(8192, len(stored))] = random.randrange(256)
    path.write_bytes(stored[: random.choice([len(stored), len(stored) // 2 + 77])])
    assert len(read(Database(str(path), "x"))) <= 3000
