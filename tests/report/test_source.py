"""The change of `syncscan fix` at a finding: in HTML, in the evidence, and in SARIF."""

from __future__ import annotations

import json

from msgspec.structs import replace

from syncscan.model.fix import Safety, SourceEdit, Suggested
from syncscan.report import evidence, html, source
from tests.report.example import analysis, finding, rendered

DIFF = "--- a/train.py\n+++ b/train.py\n@@ -3 +3 @@\n-total += loss.item()\n+total += loss.detach()\n"
CHANGE = Suggested(
    diff=DIFF,
    change="keep the value on the device and read it after the loop",
    safety=Safety.SAFE,
    why="",
    verified=True,
    how="both versions ran dry",
    changes=(SourceEdit(3, 14, 3, 21, "detach()"),),
)
UNVERIFIED = replace(CHANGE, verified=False, how="not verified: two runs differ")


def test_its_caption_says_whether_it_is_verified() -> None:
    start = "syncscan fix would keep the value on the device and read it after the loop (safe; "
    assert source.caption(CHANGE) == start + "verified by a dry run)."
    assert source.caption(UNVERIFIED) == start + "not verified: two runs differ)."


def test_a_block_of_code_ends_where_it_should() -> None:
    """Backticks in the program don't end it."""
    one = replace(finding(), suggested=replace(CHANGE, diff=DIFF + "+```\n"))
    lines = evidence.render(analysis(one), one).splitlines()
    assert lines.count("````diff") == lines.count("````") == 1


def test_the_report_shows_it_at_its_finding() -> None:
    page = html.render(analysis(replace(finding(), suggested=UNVERIFIED)))
    assert "not verified: two runs differ" in page
    assert "+total += loss.detach()" in page
    assert "syncscan fix would" not in html.render(analysis(finding()))


def test_the_evidence_shows_it() -> None:
    one = replace(finding(), suggested=CHANGE)
    assert "```diff\n@@ -3 +3 @@\n-total += loss.item()\n" in evidence.render(analysis(one), one)


def test_sarif_has_its_edits() -> None:
    (result,) = json.loads(rendered("sarif", analysis(replace(finding(), suggested=CHANGE))))["runs"][0]["results"]
    (change,) = result["fixes"][0]["artifactChanges"]
    assert change["replacements"][0]["insertedContent"] == {"text": "detach()"}
