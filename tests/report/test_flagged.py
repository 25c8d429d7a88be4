"""Races are flagged for CI servers like findings: at the later use, with an id that stays."""

from __future__ import annotations

import json
from csv import DictReader
from io import StringIO

import msgspec
import pytest

from syncscan.model.analysis import Analysis
from syncscan.model.finding import Confidence
from syncscan.model.race import TEXTS, Race, RaceKind, RaceLine
from syncscan.report import html, render
from tests.report.example import rendered, typical

RACE = Race(
    id="1a2b3c4d",
    kind=RaceKind.READ_BEFORE_COPY,
    first=RaceLine("train.py", 10, "train"),
    second=RaceLine("train.py", 12, "train"),
    count=3,
    confidence=Confidence.HIGH,
    **TEXTS[RaceKind.READ_BEFORE_COPY],
)


def racing() -> Analysis:
    return msgspec.structs.replace(typical(), races=(RACE,))


def test_sarif_has_a_race_as_a_result_with_its_rule_and_fingerprint() -> None:
    """An error at the later line; its rule is tagged as one of correctness."""
    (run,) = json.loads(rendered("sarif", racing()))["runs"]
    result = run["results"][0]
    rule = run["tool"]["driver"]["rules"][result["ruleIndex"]]
    assert (rule["id"], rule["properties"]["tags"]) == ("read-before-copy", ["correctness", "race"])
    assert (result["ruleId"], result["level"]) == ("read-before-copy", "error")
    assert result["partialFingerprints"] == {"syncscanRaceId/v1": "1a2b3c4d"}
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 12}
    assert "copied in train.py:10" in result["message"]["text"]


def test_github_shows_a_race_as_an_error_at_its_line() -> None:
    assert rendered("github", racing()).startswith("::error file=train.py,line=12,")


def test_junit_has_a_race_as_a_failed_test() -> None:
    text = rendered("junit", racing())
    assert "read-before-copy in train.py:12 [1a2b3c4d]" in text
    assert text.count("<failure") == rendered("junit", typical()).count("<failure") + 1


def test_csv_has_a_race_as_a_row_whose_waits_are_empty() -> None:
    """The later line, how often, and what to do; a race has no wait."""
    row = next(DictReader(StringIO(rendered("csv", racing()))))
    assert (row["rule"], row["file"], row["line"], row["count"]) == ("read-before-copy", "train.py", "12", "3")
    assert (row["wait_us"], row["fix"]) == ("", RACE.fix)


@pytest.mark.parametrize("form", ["html", "markdown", "text"])
def test_pages_have_a_race_with_both_lines_and_what_to_do(form: str) -> None:
    """Text and Markdown behind the first screen, which says that there is one."""
    options = {} if form == "html" else {"verbose": True}
    shown = " ".join(render(racing(), form, **options).split())
    assert "read in train.py:12, copied in train.py:10" in shown
    assert "event.synchronize() before the read" in shown
    assert "1 race: results may be wrong, by timing." in " ".join(render(racing(), form).split())


def test_a_race_without_a_file_has_no_place() -> None:
    """In SARIF that of the trace, or of the run that met it."""
    race = msgspec.structs.replace(RACE, first=None, second=RaceLine("", 0, "load > aten::fill_"))
    nowhere = msgspec.structs.replace(typical(), races=(race,))
    assert rendered("github", nowhere).startswith("::error title=")
    (location,) = json.loads(rendered("sarif", nowhere))["runs"][0]["results"][0]["locations"]
    assert location["physicalLocation"]["artifactLocation"]["uri"] == "built.pt.trace.json"
    assert "read in load &gt; aten::fill_" in html.render(nowhere)
    assert next(DictReader(StringIO(rendered("csv", nowhere))))["file"] == ""
