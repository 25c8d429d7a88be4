"""The output of `--format json` follows the schemas in the package, and a schema changes with its version alone."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import jsonschema
import pytest

from syncscan import api
from syncscan.report import json as report_json
from syncscan.report import saved, whatif_report
from tests import schemas
from tests.each import each
from tests.recordings import analyzed
from tests.schemas import wrong

SAMPLES = Path(__file__).parents[2] / "sample_traces"
RECORDED = Path(__file__).parents[1] / "golden" / "schemas"


@cache
def analysis(name: str) -> api.Analysis:
    return analyzed(SAMPLES / f"{name}.json.gz")


@each("name", schemas.KINDS)
def test_the_file_is_what_the_types_say(name: str, request: pytest.FixtureRequest) -> None:
    """To the letter; it is written by `--update-golden`."""
    file = schemas.file(name)
    if request.config.getoption("--update-golden"):
        file.write_text(schemas.text(name), encoding="utf-8")
    assert file.read_text(encoding="utf-8") == schemas.text(name)
    jsonschema.Draft202012Validator.check_schema(json.loads(file.read_text(encoding="utf-8")))


@each("name", schemas.KINDS)
def test_a_schema_changes_with_its_version(name: str, request: pytest.FixtureRequest) -> None:
    """Nothing changes within a version; within a major version keys are only added."""
    version, facts = schemas.schema(name)["$id"], schemas.facts(name)
    file = RECORDED / f"{name}.txt"
    if request.config.getoption("--update-golden") and not file.exists():
        file.write_text("\n".join([version, *facts, ""]), encoding="utf-8")
    of, *recorded = file.read_text(encoding="utf-8").splitlines()
    why = changed(of, recorded, version, facts)
    assert not why, why
    if request.config.getoption("--update-golden"):
        file.write_text("\n".join([version, *facts, ""]), encoding="utf-8")
    assert of == version, f"run with --update-golden, so that {version} is on record"


def changed(of: str, recorded: list[str], version: str, facts: list[str]) -> str:
    """Why a schema may not be as it is, beside what is on record; empty where it may."""
    if version == of and facts != recorded:
        return f"{version} changed: {sorted(set(facts) ^ set(recorded))}; raise its version in tests/schemas.py"
    always = {fact.replace("?", "") for fact in facts}  # a key that is always there now is none less
    lost = sorted(fact for fact in set(recorded) - set(facts) if fact.replace("?", "") not in always)
    if version.partition(".")[2].partition(".")[0] == of.partition(".")[2].partition(".")[0] and lost:
        return f"{of} had {lost}, and so has each schema of this major version"
    return ""


@pytest.mark.parametrize(
    ("version", "facts", "held"),
    [
        ("syncscan.a/1.0", ['.x: {"type": "number"}'], True),
        ("syncscan.a/1.0", ['.x: {"type": "number"}', '.y: {"type": "number"}'], False),
        ("syncscan.a/1.1", ['.x: {"type": "number"}', '.y: {"type": "number"}'], True),
        ("syncscan.a/1.1", ['.x: {"type": "string"}'], False),
        ("syncscan.a/2.0", ['.x: {"type": "string"}'], True),
    ],
)
def test_which_changes_are_noticed(version: str, facts: list[str], held: bool) -> None:
    """A key more needs a minor version, a key of another type a major one."""
    assert (changed("syncscan.a/1.0", ['.x: {"type": "number"}'], version, facts) == "") == held


@pytest.mark.parametrize(
    "trace",
    ["stalls/lock_python", "stalls/gc", "launches/denoising", "rules/launch_blocking.pt.trace", "lines.pt.trace"],
)
def test_an_analysis_follows_its_schema(trace: str) -> None:
    """Sampled hosts, graphs' segments, guessed lines; `test_one_story` asks the same of the other recordings."""
    assert wrong("analysis", report_json.render(analysis(trace))) == []


def test_a_key_that_is_not_in_the_schema_is_wrong() -> None:
    """At every depth: the schemas are strict."""
    document = json.loads(report_json.render(analysis("logged.pt.trace")))
    document["findings"][0]["wiat_us"] = 1
    del document["step"]["bound"]
    assert len(wrong("analysis", json.dumps(document))) == 2


def test_what_follows_from_an_analysis_follows_its_schema() -> None:
    """A saved analysis, and a projection."""
    logged = analysis("logged.pt.trace")
    assert wrong("saved", saved.render(logged, report_json.render(logged), {})) == []
    assert wrong("whatif", whatif_report.render(logged, logged.whatif("all"))) == []
