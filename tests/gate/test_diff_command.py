"""`syncscan diff` as a user calls it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from syncscan.cli import group
from tests.fuzz.regressions import trace, waiting
from tests.gate.story import Sync, trace_of


@pytest.fixture
def states(tmp_path: Path) -> tuple[str, str]:
    """A folder with two recordings of a program, and one recording of it with a sync more."""
    before, item = tmp_path / "before", Sync(line=10)
    before.mkdir()
    for name in ("a.json", "b.json"):
        trace_of(item).write(before / name)
    after = trace_of(item, Sync("aten::nonzero", line=20)).write(tmp_path / "after.json")
    return str(before), str(after)


def run(*args: str) -> Result:
    return CliRunner().invoke(group, ["diff", *args])


def test_says_what_is_new_and_fails_where_asked(states: tuple[str, str]) -> None:
    """Exit 1 is for --fail-on alone, and only where something came in."""
    result = run(*states)
    assert result.exit_code == 0
    assert "1 sync added; no others changed." in result.stdout
    assert "a.json and 1 more" in result.stdout
    assert run(*states, "--fail-on", "new").exit_code == 1
    assert run(*reversed(states), "--fail-on", "new").exit_code == 0


def test_options_name_recordings_one_by_one(states: tuple[str, str]) -> None:
    """--before and --after take as many as there are."""
    before, after = states
    args = ("--before", f"{before}/a.json", "--before", f"{before}/b.json", "--after", after, "--format", "json")
    document = json.loads(run(*args).stdout)
    assert [len(document[state]["paths"]) for state in ("before", "after")] == [2, 1]


@pytest.mark.parametrize("form", ["text", "markdown", "json", "html"])
def test_each_format_is_written(states: tuple[str, str], tmp_path: Path, form: str) -> None:
    """To a file, too, and never over a recording."""
    out = tmp_path / "out"
    assert run(*states, "--format", form, "-o", str(out)).exit_code == 0
    assert "nonzero" in out.read_text(encoding="utf-8")
    refused = run(*states, "-o", states[1], "--force")
    assert "is the trace itself" in str(refused.exception)


@pytest.mark.parametrize("args", [[], ["x"], ["x", "y", "z"], ["x", "y", "--before", "z"], ["--before", "x"]])
def test_a_wrong_call_is_reported(args: list[str]) -> None:
    """Two states are needed, named one way."""
    assert "needs BEFORE and AFTER" in str(run(*args).exception)


def test_saved_analyses_are_states_too(states: tuple[str, str], tmp_path: Path) -> None:
    """They say what their traces said."""
    saved = tmp_path / "x.syncscan.json"
    CliRunner().invoke(group, ["analyze", states[1], "-o", str(saved)])
    assert run(states[0], str(saved)).stdout == run(*states).stdout


@pytest.mark.skipif(sys.platform != "linux", reason="file systems elsewhere take text alone")
def test_a_trace_of_any_name_does_not_differ_from_its_saved_analysis(tmp_path: Path) -> None:
    """Here in Latin-1, where file systems take bytes."""
    named = os.fsdecode(os.fsencode(tmp_path) + b"/\xfcbung.json")
    Path(named).write_bytes(trace(waiting()))
    saved = str(tmp_path / "x.syncscan.json")
    for words in (["analyze", named, "-o", saved], ["diff", named, saved]):
        done = CliRunner().invoke(group, words, catch_exceptions=False)
        assert done.exit_code == 0
    assert "No sync differs." in done.stdout
