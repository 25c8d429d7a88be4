"""`syncscan check` as CI calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from syncscan.cli import group
from tests.gate.story import Sync, trace_of


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A recording of a program with a sync, in the folder of its project."""
    monkeypatch.chdir(tmp_path)
    return str(trace_of(Sync(line=3, file="train.py")).write(tmp_path / "t.json"))


def run(*args: str) -> Result:
    return CliRunner().invoke(group, ["check", *args])


def test_fails_with_the_line_and_passes_when_it_is_allowed(trace: str) -> None:
    """By a comment with a reason, by the project's file, by a higher limit."""
    result = run(trace)
    assert result.exit_code == 1
    assert "train.py:3: aten::item in loss" in result.stdout
    assert run(trace, "--syncs", "1").exit_code == 0
    Path("pyproject.toml").write_text("[[tool.syncscan.allow]]\nscope = 'loss'\nreason = 'logged'\n")
    assert run(trace).exit_code == 0
    Path("pyproject.toml").unlink()
    Path("train.py").write_text("def step(x):\n\n    return x.item()  # syncscan: allow[item] logged\n")
    allowed = run(trace)
    assert allowed.exit_code == 0
    assert "comment: logged" in " ".join(allowed.stdout.split())


def test_options_take_the_place_of_the_file_s_limits(trace: str) -> None:
    """Its allow-list stays."""
    Path("pyproject.toml").write_text("[tool.syncscan]\nsyncs = 5\n")
    assert run(trace).exit_code == 0
    assert run(trace, "--limit", "rule:item,syncs=0").exit_code == 1
    assert run(trace, "--limit", "wait-ms=0").exit_code == 1


def test_a_baseline_is_written_and_kept_to(trace: str, tmp_path: Path) -> None:
    """Syncs that exist when it is written pass from then on; new ones don't."""
    assert run(trace, "--baseline", "known.json", "--update-baseline").exit_code == 0
    assert run(trace, "--baseline", "known.json").exit_code == 0
    more = trace_of(Sync(line=3, file="train.py"), Sync("aten::nonzero", line=5)).write(tmp_path / "more.json")
    assert run(str(more), "--baseline", "known.json").exit_code == 1
    assert run(str(more), "--baseline", "known.json", "--update-baseline").exit_code == 0
    assert run(str(more), "--baseline", "known.json").exit_code == 0


def test_nothing_of_the_user_s_is_taken_for_a_baseline(trace: str) -> None:
    """A file that is none isn't replaced; without a name there is nothing to write."""
    Path("mine.json").write_text("{}")
    assert "not a baseline" in str(run(trace, "--baseline", "mine.json", "--update-baseline").exception)
    assert Path("mine.json").read_text() == "{}"
    assert "needs --baseline FILE" in str(run(trace, "--update-baseline").exception)
    assert "can't be read" in str(run(trace, "--baseline", "absent.json").exception)


@pytest.mark.parametrize("form", ["text", "github", "sarif", "junit", "json"])
def test_each_format_names_the_line(trace: str, form: str) -> None:
    """And the exit code is the same."""
    result = run(trace, "--format", form)
    assert result.exit_code == 1
    assert "train.py" in result.stdout
    if form == "sarif":
        (outcome,) = json.loads(result.stdout)["runs"][0]["results"]
        assert (outcome["level"], outcome["locations"][0]["physicalLocation"]["region"]["startLine"]) == ("error", 3)


def test_an_entry_that_one_recording_uses_is_not_unused(trace: str, tmp_path: Path) -> None:
    """With several recordings, its sync may be in another one."""
    other = str(trace_of(Sync("aten::nonzero", scope="mask", line=5)).write(tmp_path / "other.json"))
    entry = "[[tool.syncscan.allow]]\nscope = '{}'\nreason = 'so'\n"
    Path("pyproject.toml").write_text("".join(entry.format(scope) for scope in ("loss", "mask", "nowhere")))
    result = run(trace, other, "--format", "json")
    assert result.exit_code == 0
    notes = [traced["notes"] for traced in json.loads(result.stdout)["traces"]]
    assert [[note.split("entry for ")[1].split(" matches")[0] for note in one] for one in notes] == [
        ["scope nowhere"]
    ] * 2


def test_a_comment_that_one_recording_needs_is_not_stale(trace: str, tmp_path: Path) -> None:
    """One that none of them needs is told, though only one of them names its file."""
    other = str(trace_of(Sync("aten::nonzero", line=5, file="train.py")).write(tmp_path / "other.json"))
    elsewhere = str(trace_of(Sync(line=3, file="eval.py")).write(tmp_path / "eval.json"))
    lines = ["", "", *("x = 1  # syncscan: allow[*] so" for _ in range(3))]
    Path("train.py").write_text("\n".join(lines))
    Path("eval.py").write_text(lines[2] + "\n" * 2 + lines[2])
    result = run(trace, other, elsewhere, "--format", "json")
    assert result.exit_code == 0
    notes = {note.split(": stale")[0] for traced in json.loads(result.stdout)["traces"] for note in traced["notes"]}
    assert notes == {"train.py:4", "eval.py:1"}
