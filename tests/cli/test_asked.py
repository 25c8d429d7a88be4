"""What is asked of an analysis by options, the same for every command that reads a trace."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from syncscan.cli import group
from syncscan.errors import UsageError
from tests.builder import TraceBuilder


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
    found = json.loads(run("analyze", trace, "--step-scope", "par*", "--format", "json").stdout)
    assert found["step"]["count"] == 6
    assert found["trace"]["steps_found"]["by"] == "scope"
    assert "Steps are the ranges called par*: 6." in run("analyze", trace, "--step-scope", "par*").stdout


def test_the_whole_as_one_step(trace: str) -> None:
    """And no advice to mark steps: none were wanted."""
    found = json.loads(run("analyze", trace, "--steps", "none", "--format", "json").stdout)
    assert (found["step"]["count"], found["trace"]["has"]["steps"]) == (1, False)
    assert found["trace"]["steps_found"]["sentence"] == "The whole trace counts as one step, as asked for."
    assert not any("No steps" in warning for warning in found["trace"]["warnings"])


def test_commands_take_the_same_options(trace: str, tmp_path: Path) -> None:
    """Whatif replays the scopes; report and annotate write what they saw."""
    projected = json.loads(run("whatif", trace, "--step-scope", "part", "--format", "json").stdout)
    assert projected["observed_us"] == pytest.approx(300, rel=0.2)
    assert "Steps are the ranges called part: 6." in run("report", trace, "-o", "-", "--step-scope", "part").stdout
    assert run("annotate", trace, "-o", str(tmp_path / "a.pt.trace.json"), "--step-scope", "part").exit_code == 0


@pytest.mark.parametrize("options", [("--step-scope", "nothing"), ("--step-scope", "part", "--steps", "none")])
def test_what_cannot_be_is_a_usage_error(trace: str, options: tuple[str, ...]) -> None:
    """A scope that isn't there; steps and none at once."""
    assert isinstance(run("analyze", trace, *options).exception, UsageError)


@pytest.mark.parametrize(
    "command",
    [("analyze",), ("whatif",), ("report", "-o", "-"), ("annotate", "-o", "x.json"), ("open", "--no-browser")],
)
def test_a_process_that_is_not_there(trace: str, command: tuple[str, ...]) -> None:
    """Every command takes the option, and says which there are."""
    error = run(*command, trace, "--process", "4711").exception
    assert isinstance(error, UsageError)
    assert "holds no process 4711" in str(error)
