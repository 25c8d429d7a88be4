"""Every command that reads a trace takes the same options of an analysis."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from syncscan.cli import group
from syncscan.errors import UsageError
from tests.builder import TraceBuilder
from tests.offered import offered


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two steps of the profiler's, each with three ranges `part` of 300 µs."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=1000):
        for k in range(3):
            with t.scope("part", start + 300 * k, start + 300 * k + 290):
                t.launch(at=start + 300 * k + 10, lasts=100)
                t.sync("aten::item", at=start + 300 * k + 20)
    return str(t.write(tmp_path_factory.mktemp("steps") / "t.json"))


def run(*args: str) -> Result:
    return CliRunner().invoke(group, list(args))


def test_a_scope_makes_the_steps(trace: str) -> None:
    """Six instead of two, and the report says so."""
    document = json.loads(run("analyze", trace, "--steps", "scope:par*", "--format", "json").stdout)
    assert document["step"]["count"] == 6
    assert document["trace"]["steps_found"]["by"] == "scope"
    assert "6 steps found (ranges named par*)." in run("analyze", trace, "-v", "--steps", "scope:par*").stdout


def test_the_whole_as_one_step(trace: str) -> None:
    """And no advice to mark steps: none were wanted."""
    document = json.loads(run("analyze", trace, "--steps", "none", "--format", "json").stdout)
    assert (document["step"]["count"], document["trace"]["has"]["steps"]) == (1, False)
    assert document["trace"]["steps_found"]["sentence"] == "The whole trace counts as one step, as requested."
    assert not any("No steps" in warning for warning in document["trace"]["warnings"])


def test_commands_take_the_same_options(trace: str) -> None:
    """Whatif replays the scopes; report writes what it saw."""
    projected = json.loads(run("whatif", trace, "--steps", "scope:part", "--format", "json").stdout)
    assert projected["observed_us"] == pytest.approx(300, rel=0.2)
    assert "6 steps found (ranges named part)." in run("report", trace, "-o", "-", "--steps", "scope:part").stdout


def test_a_scope_that_is_not_there_is_a_usage_error(trace: str) -> None:
    """Not a trace without steps."""
    assert isinstance(run("analyze", trace, "--steps", "scope:nothing").exception, UsageError)


@pytest.mark.parametrize(
    "command",
    offered([("analyze",), ("whatif",), ("report", "-o", "-"), ("annotate", "-o", "x.json"), ("open", "--no-browser")]),
)
def test_a_process_that_is_not_there(trace: str, command: tuple[str, ...]) -> None:
    """Every command takes the option, and says which there are."""
    error = run(*command, trace, "--process", "4711").exception
    assert isinstance(error, UsageError)
    assert "has no process 4711" in str(error)


def test_some_of_the_steps(trace: str) -> None:
    """Counted from 0, as slices are; the report says which of how many."""
    document = json.loads(run("analyze", trace, "--steps", "1:2", "--format", "json").stdout)
    assert (document["step"]["count"], document["findings"][0]["count"]) == (1, 3)
    text = "2 steps found (ProfilerStep markers); steps 1:2 (counted from 0) were analyzed, as requested."
    assert document["trace"]["steps_found"]["sentence"] == text
    assert json.loads(run("analyze", trace, "--steps", ":", "--format", "json").stdout)["step"]["count"] == 2


@pytest.mark.parametrize("steps", ["1:3", "2:2", "1:0", "5:"])
def test_steps_that_are_not_there_are_a_usage_error(trace: str, steps: str) -> None:
    """Which says how many there are."""
    error = run("analyze", trace, "--steps", steps).exception
    assert isinstance(error, UsageError)
    assert "has no steps" in error.message
    assert "It has 2" in error.hint


@pytest.mark.parametrize("steps", ["1", "a:b", "-1:1", "1:2:3", "all"])
def test_steps_are_two_numbers(trace: str, steps: str) -> None:
    """Or one of two words."""
    result = run("analyze", trace, "--steps", steps)
    assert result.exit_code == 2
    assert "A:B" in result.stderr


def test_a_source_root_shows_the_flagged_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The packaged recording's sources are in this repository."""
    monkeypatch.chdir(tmp_path)
    root = Path(__file__).parents[2]
    recorded = str(root / "sample_traces" / "log_item.pt.trace.json.gz")
    line = "> 52 |         history.append(loss.item())"
    assert line not in run("analyze", recorded).stdout
    for form in ("text", "markdown"):
        shown = run("analyze", recorded, "-v", "--source-root", str(root), "--format", form).stdout
        assert line in shown
    assert isinstance(run("analyze", recorded, "--source-root", "gone").exception, UsageError)


def test_a_saved_analysis_keeps_the_choice_of_steps_and_the_flagged_line(
    trace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it was asked for then; of the sources it has what was at hand, and nothing is read."""
    stored = str(tmp_path / "kept.syncscan.json")
    assert run("analyze", trace, "--steps", "1:2", "-o", stored).exit_code == 0
    assert json.loads(run("analyze", stored, "--format", "json").stdout)["step"]["count"] == 1
    root = Path(__file__).parents[2]
    monkeypatch.chdir(root)
    lines = str(tmp_path / "lines.syncscan.json")
    assert run("analyze", str(root / "sample_traces" / "log_item.pt.trace.json.gz"), "-o", lines).exit_code == 0
    monkeypatch.chdir(tmp_path)
    assert "> 52 | " in run("analyze", "-v", lines).stdout
