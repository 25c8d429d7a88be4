"""A damaged or hostile export of Nsight Systems is analyzed as far as it goes, or refused in a sentence."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from syncscan import analyze
from syncscan.errors import TraceError
from tests.load.nsys.export import steps

HOSTILE = (
    None, -1, 0, 2**31, 2**63 - 1, -(2**63), 1.5, float("inf"), "", "x" * 5000, "aten::item, seq = " + "9" * 20,
    b"\xff\xfe", "\x1b[31m\n\ud800".encode("utf-8", "surrogatepass"), "<script>", ", op_id = ", "step " * 500,
)  # fmt: skip


def cells(path: Path, r: Random) -> None:
    """Any value in any column, a few at a time."""
    with sqlite3.connect(path) as base:
        for table in [name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]:
            columns = [row[1] for row in base.execute(f"PRAGMA table_info({table})")]
            for _ in range(r.randrange(4)):
                rows = f"SELECT rowid FROM {table} ORDER BY random() LIMIT {r.choice((1, 5, 1000))}"
                base.execute(
                    f"UPDATE {table} SET '{r.choice(columns)}' = ? WHERE rowid IN ({rows})", (r.choice(HOSTILE),)
                )
    base.close()


def columns(path: Path, r: Random) -> None:
    """Tables and columns that aren't there."""
    with sqlite3.connect(path) as base:
        tables = [name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            names = [row[1] for row in base.execute(f"PRAGMA table_info({table})")]
            if table != "StringIds" and r.random() < 0.2:
                base.execute(f"DROP TABLE {table}")
            elif len(names) > 1 and r.random() < 0.6:
                base.execute(f"ALTER TABLE {table} DROP COLUMN '{r.choice(names)}'")
    base.close()


def flipped(path: Path, r: Random) -> None:
    text = bytearray(path.read_bytes())
    for _ in range(r.choice((1, 20, 400))):
        text[r.randrange(len(text))] = r.randrange(256)
    path.write_bytes(text)


def cut(path: Path, r: Random) -> None:
    text = path.read_bytes()
    path.write_bytes(text[: r.randrange(1, len(text))])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("damage", [cells, columns, flipped, cut], ids=lambda damage: damage.__name__)
def test_an_export_is_read_or_refused(tmp_path: Path, damage: Callable[[Path, Random], None], seed: int) -> None:
    path = Path(steps(6).save(tmp_path / "report.sqlite"))
    damage(path, Random(seed))
    with suppress(TraceError):
        analyze(path)
