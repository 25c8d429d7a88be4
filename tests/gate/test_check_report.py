"""A verdict is told to people, GitHub, JUnit and programs, and no name in it does anything else than being shown."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from syncscan import gate
from syncscan.gate import check_report
from syncscan.gate.check_report import flagged_limits
from syncscan.gate.config import read_config
from syncscan.gate.verdict import Allowance, CheckVerdict, Limit, Rules
from syncscan.model.finding import Severity
from syncscan.report import github, junit, terminal
from syncscan.report.units import duration
from tests.each import each
from tests.gate.story import Sync, program
from tests.networks import launch_bound
from tests.report.example import HOSTILE, hostile

RULES = Rules(limits=(Limit(syncs=0), Limit(by="scope", glob="loss", wait_ms=0)))


def failed() -> CheckVerdict:
    """One line breaks two limits."""
    return gate.check(program(Sync(line=10, file="train.py", waits=100)), RULES)


def render_text(verdict: CheckVerdict) -> str:
    return terminal.drawn(check_report.blocks([verdict], "pyproject.toml"), 200)


def test_people_get_limit_line_chain_fix_and_the_way_to_allow_it() -> None:
    """And the line once, though two limits name it."""
    text = render_text(failed())
    assert text.startswith("failed: built.pt.trace.json, 1 sync checked against pyproject.toml")
    assert text.count("train.py:10: aten::item in loss") == 1
    assert "✗ the step: 1 sync per step; the limit is 0" in text
    assert "chain: aten::item > aten::_local_scalar_dense > cudaStreamSynchronize" in text
    assert "# syncscan: allow[item] REASON, in train.py:10" in text


def test_what_is_to_be_written_allows_a_sync_whose_line_is_not_known(tmp_path: Path) -> None:
    """A comment would have to stand on each line that it may be; the entry is TOML as it is printed."""
    message = program(Sync(scope="log [loss]", waits=100))
    text = render_text(gate.check(message, RULES))
    entry = text.partition("or allow it: in pyproject.toml:\n")[2].splitlines()[:4]
    written = tmp_path / "pyproject.toml"
    written.write_text("\n".join(["[tool.syncscan]", "syncs = 0", *entry]))
    rules = read_config(written, ["item"])
    assert rules.allowed == (Allowance(rule="item", scope="log [[]loss]", reason="why it may stay"),)
    assert not gate.check(message, rules).violations


def test_a_sync_that_keeps_its_network_from_being_compiled_says_so() -> None:
    """Its gain once compiled stands behind its wait, and in JSON; a step that isn't held by launches has none."""
    verdict = gate.check(launch_bound(reads=10), RULES)
    (finding,) = verdict.counted
    assert finding.recoverable_us is not None
    later = finding.once_compiled_us
    assert later is not None
    text = " ".join(render_text(verdict).split())
    assert f"saves {duration(later)} once the network is compiled" in text
    assert "once the network" not in render_text(failed())
    (row,) = json.loads(check_report.render([verdict], "pyproject.toml"))["traces"][0]["counted"]
    assert row["once_compiled_us"] == pytest.approx(later)


def test_github_gets_an_error_at_the_line() -> None:
    """Beside one a limit."""
    lines = github.drawn([flagged_limits(failed(), "pyproject.toml")]).splitlines()
    assert [line.partition(" ")[0] for line in lines] == ["::error"] * 3
    assert "file=train.py,line=10," in lines[2]
    assert github.drawn([flagged_limits(gate.check(program(), RULES), "x")]).startswith("::notice")


def test_github_answers_whether_a_line_may_stay() -> None:
    """How long it waits, and what removing it gains, also of a line that keeps the limits; a bot needs no more."""
    costly, idle = Sync(line=10, file="train.py", waits=100), Sync(line=20, file="train.py", waits=0)
    for rules in (RULES, Rules(limits=(Limit(syncs=9),))):
        verdict = gate.check(program(costly, idle), rules)
        commands = github.drawn([flagged_limits(verdict, "x", within_as=Severity.LOW)]).splitlines()
        first, second = (next(c for c in commands if f"line={line}," in c) for line in (10, 20))
        kind = "::error " if verdict.violations else "::notice "
        assert [first.startswith(kind), second.startswith(kind)] == [True, True]
        assert re.search(r"title=.*; the fix gains \d+ µs \(\d+%25\)::.*waits \d+ µs", first)
        assert "; the fix gains nothing::" in second


def test_junit_has_a_failed_test_a_limit() -> None:
    """With the line's file; one that passed where all are kept."""
    verdicts = failed(), gate.check(program(), RULES)
    suites = ET.fromstring(junit.drawn([flagged_limits(verdict, "pyproject.toml") for verdict in verdicts]))
    assert (suites.get("tests"), suites.get("failures")) == ("3", "2")
    first = suites[0][0]
    assert (first.get("name"), first.get("file"), first.get("line")) == ("the step", "train.py", "10")
    assert len(suites[1].findall("testcase")) == 1


def test_json_follows_its_schema() -> None:
    """Violations name findings by id, and exempt ones have their reason."""
    document = json.loads(check_report.render([failed()], "pyproject.toml"))
    assert (document["schema"], document["passed"]) == ("syncscan.check/2", False)
    (trace,) = document["traces"]
    assert [v["limit"]["by"] for v in trace["violations"]] == ["", "scope"]
    assert trace["violations"][0]["findings"] == [trace["counted"][0]["id"]]


@each("text", HOSTILE, ids=lambda text: repr(text[:12]))
def test_a_hostile_name_is_only_shown(text: str) -> None:
    """One command a line for GitHub, valid XML and JSON, no control characters for a terminal."""
    verdict = gate.check(hostile(text), RULES)
    assert not set(render_text(verdict)) & set("\x1b\x07\x00\u202e\u2066")
    commands = github.drawn([flagged_limits(verdict, "x")]).splitlines()
    assert all(line.startswith(("::error ", "::warning ", "::notice ")) for line in commands)
    ET.fromstring(junit.drawn([flagged_limits(verdict, "x")]))
    json.loads(check_report.render([verdict], "x"))
