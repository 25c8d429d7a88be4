"""SARIF: valid against the 2.1.0 schema, with what code scanning needs to show a result."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from syncscan.model.finding import Source
from tests.each import each
from tests.report.example import HOSTILE, analysis, finding, hostile, rendered, typical

ROOT = Path(__file__).parents[2]
SCHEMA = ROOT / ".ci" / "cache" / "sarif-2.1.0.json"


@cache
def validator() -> Any:
    """Validate against the schema in npm's SARIF multitool: CI fetches it and fails without, elsewhere the test
    skips.
    """
    if not SCHEMA.exists() and os.environ.get("CI"):
        subprocess.run([ROOT / ".ci" / "sarif-schema"], check=True)
    if not SCHEMA.exists():
        pytest.skip("no SARIF schema here: .ci/sarif-schema fetches it")
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(SCHEMA.read_text())
    return jsonschema.validators.validator_for(schema)(schema, format_checker=jsonschema.FormatChecker())


def run(text: str) -> dict[str, Any]:
    (only,) = json.loads(text)["runs"]
    return dict(only)


def test_golden(golden: Callable[[str, str], None]):
    """The typical analysis looks as kept."""
    golden("report.sarif", rendered("sarif", typical()))


def test_the_schema_can_refuse():
    """The validator that the next tests trust does find fault."""
    log = json.loads(rendered("sarif", typical()))
    log["runs"][0]["results"][0]["level"] = "catastrophe"
    assert not validator().is_valid(log)


def test_valid():
    """The typical analysis is valid SARIF 2.1.0."""
    assert [e.message for e in validator().iter_errors(json.loads(rendered("sarif", typical())))] == []


def test_valid_without_findings():
    """So is one that found nothing."""
    assert [e.message for e in validator().iter_errors(json.loads(rendered("sarif", analysis())))] == []


@each("text", HOSTILE)
def test_valid_with_hostile_text(text: str):
    """So is one whose every name is hostile; file names are URIs still."""
    log = json.loads(rendered("sarif", hostile(text)))
    assert [e.message for e in validator().iter_errors(log)] == []
    (result,) = log["runs"][0]["results"]
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert re.fullmatch(r"[\w.~!$&'()*+,;=:@/%-]+", uri, re.ASCII)


def test_every_result_has_a_place_and_a_fingerprint():
    """Code scanning refuses results without a location, and knows them again by their fingerprints."""
    results = run(rendered("sarif", typical()))["results"]
    assert all(r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for r in results)
    assert [r["partialFingerprints"]["syncscanFindingId/v1"] for r in results] == [f.id for f in typical().findings]


def test_rules_are_listed_once_and_referred_to():
    """Each result points at its rule."""
    only = run(rendered("sarif", typical()))
    rules = [r["id"] for r in only["tool"]["driver"]["rules"]]
    assert rules == ["nonzero", "explicit-sync"]
    assert all(rules[r["ruleIndex"]] == r["ruleId"] for r in only["results"])


def test_levels_follow_severity():
    """High is an error, medium a warning, low a note, info none."""
    results = run(rendered("sarif", typical()))["results"]
    assert [r["level"] for r in results] == ["error", "warning", "note", "none"]


@pytest.mark.parametrize(
    ("file", "artifact"),
    [
        ("train.py", {"uri": "train.py", "uriBaseId": "%SRCROOT%"}),
        ("./a b/train.py", {"uri": "a%20b/train.py", "uriBaseId": "%SRCROOT%"}),
        ("/home/me/train.py", {"uri": "file:///home/me/train.py"}),
        ("C:\\me\\train.py", {"uri": "file:///C:/me/train.py"}),
    ],
)
def test_files_are_uris(file: str, artifact: dict[str, str]):
    """Relative to the repository or absolute, on any system."""
    a = analysis(finding(source=Source(file, 1, "f", exact=True)))
    (result,) = run(rendered("sarif", a))["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"] == artifact


def test_the_only_candidate_is_the_line():
    """Where a guess leaves one line, the result is there; where it leaves two, at the function."""
    places = [Source("a.py", 10, "f", False, (14,)), Source("a.py", 10, "f", False, (14, 17))]
    a = analysis(*[finding(source=s) for s in places])
    lines = [r["locations"][0]["physicalLocation"]["region"]["startLine"] for r in run(rendered("sarif", a))["results"]]
    assert lines == [14, 10]
