"""Races get lines below the program's folder, and ids that moved lines don't change."""

from __future__ import annotations

from syncscan.attribute.races import races_met, races_of
from syncscan.model.capture import CaptureTable, RaceRecord
from syncscan.model.finding import Confidence
from syncscan.model.race import RaceKind, RaceLine
from tests.refilling import refilling

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


def test_a_recording_shows_pinned_memory_that_is_filled_while_its_copy_runs() -> None:
    """With medium confidence, as it has no addresses; the line is the function's where its source isn't there."""
    (race,) = races_of(refilling(with_frames=True).trace())
    assert (race.kind, race.confidence, race.count) == (RaceKind.WRITE_BEFORE_COPY, Confidence.MEDIUM, 2)
    assert race.first == race.second == RaceLine("train.py", 7, "load")


def test_a_recording_without_stacks_names_scopes_and_ops() -> None:
    (race,) = races_of(refilling(with_frames=False).trace())
    assert (str(race.first), str(race.second)) == ("load > aten::to", "load > aten::fill_")
