"""Two hours or two runs of a watch are compared by the lines that wait."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner

from syncscan.cli import group
from syncscan.errors import UsageError
from syncscan.live.compare import compared, side_of
from syncscan.live.journal import Journal
from syncscan.live.reading import SUFFIX, of_records
from syncscan.live.record import Window
from tests import schemas
from tests.live.example import begin, window


def side(shares: Sequence[float], ms: float = 100.0, line: int = 41, first: int = 1) -> list[Window]:
    """Return windows of 20 s in which a line waits for these shares."""
    return [window(first + k, share, ms * (1 + 0.01 * (k % 2)), line=line) for k, share in enumerate(shares)]


def stored(folder: Path, name: str, windows: list[Window]) -> str:
    journal = Journal(folder / f"{name}{SUFFIX}")
    for record in (begin(), *windows):
        journal.write(record)
    journal.close()
    return str(journal.path)


def between(before: list[Window], after: list[Window]) -> list[tuple[int | None, float, float, bool]]:
    sides = [side_of(of_records("w", [begin(), *windows]), "w", None) for windows in (before, after)]
    return [(c.line, c.waiting_before, c.waiting_after, c.changed) for c in compared(*sides).lines]


def test_a_line_that_waits_more_is_reported_and_noise_is_not() -> None:
    """A rise from 10 % to 30 % is one; 10 % that vary by two points are none."""
    quiet = [0.1, 0.12, 0.08, 0.1, 0.11, 0.09] * 2
    assert between(side(quiet), side([0.3] * 12)) == [(41, 0.1, 0.3, True)]
    assert between(side(quiet), side(quiet[::-1])) == [(41, 0.1, 0.1, False)]


def test_a_line_that_moved_is_matched_by_its_function_and_rule() -> None:
    """Another number after a change of the file above it."""
    assert between(side([0.2] * 4), side([0.2] * 4, line=57)) == [(57, 0.2, 0.2, False)]


def test_a_new_line_was_at_nothing_before() -> None:
    assert between(side([0.0] * 4), side([0.2] * 4)) == [(41, 0.0, 0.2, True)]


def test_one_window_alone_changes_nothing() -> None:
    """Its noise is unknown."""
    assert between(side([0.1]), side([0.4])) == [(41, 0.1, 0.4, False)]


def test_hours_of_one_file_are_compared(tmp_path: Path) -> None:
    """The second hour takes 10 ms longer per step; text, JSON by its schema, and the exit code say so."""
    path = stored(tmp_path, "train", side([0.1] * 180) + side([0.3] * 90, 110.0, first=181))
    shown = CliRunner().invoke(group, ["diff", f"{path}#1", f"{path}#-1"], catch_exceptions=False)
    assert (shown.exit_code, "hour 2: step 110.5" in shown.output) == (0, True), shown.output
    assert "The step takes 10.05 ms more." in shown.output
    assert "waits more" in shown.output
    words = ["diff", f"{path}#1", f"{path}#2", "--format", "json", "--fail-on", "new"]
    result = CliRunner().invoke(group, words, catch_exceptions=False)
    document = json.loads(result.stdout)
    jsonschema.validate(document, schemas.schema("watch-diff"))
    assert (result.exit_code, document["before"]["steps"], document["lines"][0]["us_after"]) == (1, 36_000, 30_000.0)


def test_what_can_not_be_compared_is_refused(tmp_path: Path) -> None:
    """An hour that isn't there, no number, another format, and a watch with a trace."""
    path = stored(tmp_path, "train", side([0.1] * 4))
    for words, sentence in (
        ([f"{path}#7", path], "has hours 1 to 1, and no hour 7"),
        ([f"{path}#x", path], "names no hour"),
        ([path, path, "--format", "html"], "doesn't support watches"),
        (["--before", path, "--before", path, "--after", path], "one with one"),
    ):
        with pytest.raises(UsageError, match=sentence):
            CliRunner().invoke(group, ["diff", *words], catch_exceptions=False)
