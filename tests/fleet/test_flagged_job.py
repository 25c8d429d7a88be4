"""A job's findings are flagged for CI servers once for all ranks, with the job's gain."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from csv import DictReader
from io import StringIO

from msgspec.structs import replace

from syncscan.fleet.document import flagged_job
from syncscan.report import csv, github, junit, sarif
from syncscan.report.frames import fleet_rows
from tests.each import each
from tests.fleet.example import damaged, hostile, job
from tests.report.example import HOSTILE


def test_csv_has_every_row_of_the_frame() -> None:
    """Rows stand by finding instead of by rank; those of ranks without findings come last."""
    fleet = damaged()
    rows = list(DictReader(StringIO(csv.drawn([flagged_job(fleet)]))))
    assert sorted((row["rank"], row["step"], row["id"]) for row in rows) == sorted(
        (str(row["rank"]), str(row["step"]), row.get("id") or "") for row in fleet_rows(fleet)
    )
    ids = [row["id"] for row in rows]
    assert ids == sorted(ids, key=[*(f.id for f in fleet.findings), ""].index)


def test_sarif_has_a_result_for_all_ranks_with_figures_and_fingerprint() -> None:
    """The id is that of the rank's own report, so code scanning knows it again."""
    fleet = job(4, 1)
    (run,) = json.loads(sarif.drawn([flagged_job(fleet)]))["runs"]
    result = run["results"][0]
    assert result["partialFingerprints"] == {"syncscanFindingId/v1": fleet.findings[0].id}
    assert result["properties"]["ranks"] == [*fleet.findings[0].ranks]
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 52}
    assert "Removed on all its ranks, the job's step is" in result["message"]["text"]


def test_ranks_without_a_trace_are_notifications() -> None:
    """A job with a missing rank says so in SARIF's invocation."""
    (run,) = json.loads(sarif.drawn([flagged_job(damaged())]))["runs"]
    texts = [note["message"]["text"] for note in run["invocations"][0]["toolExecutionNotifications"]]
    assert any("rank" in text for text in texts)


def test_a_job_without_findings_passes() -> None:
    """JUnit has one passed test, GitHub one notice."""
    flagged = flagged_job(replace(job(2, 1), findings=()))
    suites = ET.fromstring(junit.drawn([flagged]))
    assert [suites.get(name) for name in ("tests", "failures")] == ["1", "0"]
    assert [line.split(" ")[0] for line in github.drawn([flagged]).splitlines()] == ["::notice"]


@each("text", HOSTILE)
def test_hostile_names_break_no_format(text: str) -> None:
    """Names from a trace stay text in each format."""
    flagged = flagged_job(hostile(text))
    json.loads(sarif.drawn([flagged]))
    ET.fromstring(junit.drawn([flagged]))
    assert all(line.startswith("::") for line in github.drawn([flagged]).splitlines())
