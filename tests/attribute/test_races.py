"""Waits that protect memory are named, and races."""

from __future__ import annotations

import pytest

from syncscan.api import analyze_trace
from syncscan.attribute.races import races_met
from syncscan.model.capture import CaptureTable, RaceRecord
from syncscan.model.race import RaceKind, RaceLine
from tests.builder import TraceBuilder


@pytest.mark.parametrize(
    ("kind", "protects"), [("Memcpy DtoH (Device -> Pinned)", True), ("Memcpy HtoD (Pinned -> Device)", False)]
)
def test_a_wait_behind_a_copy_into_pinned_memory_is_kept(kind: str, protects: bool) -> None:
    """The second wait of each step has nothing new to protect."""
    t = TraceBuilder()
    for start in t.steps(3, lasts=1000):
        with t.op("aten::copy_", start + 10, start + 30):
            t.copy(kind, at=start + 12, lasts=100)
        with t.scope("read", start + 35, start + 400):
            t.synchronize(at=start + 40)
        with t.scope("again", start + 405, start + 800):
            t.launch("gemm", at=start + 410, lasts=50)
            t.synchronize(at=start + 430)
    fixes = {f.scope[-1]: f.fix for f in analyze_trace(t.trace()).findings}
    assert fixes["read"].startswith("Keep a wait here") is protects
    assert fixes["again"].startswith("Remove it")


READ = RaceKind.READ_BEFORE_COPY


def record(first: int, second: int, count: int = 1) -> RaceRecord:
    file = "/home/me/train.py"
    return RaceRecord(READ, (file, first, "log"), (file, second, "log"), count)


def test_lines_are_named_from_the_programs_folder_on() -> None:
    (race,) = races_met(CaptureTable(races=(record(3, 5),)))
    assert (race.first, race.second) == (RaceLine("train.py", 3, "log"), RaceLine("train.py", 5, "log"))


def test_an_id_outlives_lines_that_move() -> None:
    before, after = (races_met(CaptureTable(races=(record(n, n + 2),))) for n in (3, 30))
    assert before[0].id == after[0].id


def test_two_races_of_one_function_have_two_ids_and_the_most_frequent_comes_first() -> None:
    few, many = record(3, 5), record(3, 6, count=9)
    races = races_met(CaptureTable(races=(few, many)))
    assert [race.second.line for race in races] == [6, 5]
    assert len({race.id for race in races}) == 2
