"""The command runs two programs, and its exit code is the verdict."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from syncscan.cli import group
from syncscan.errors import ProgramFailed
from syncscan.model.proof import Proof, Verdict
from tests.report.test_proof import PROOF

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the command asks of `prove`, which answers without running anything."""
    calls: list[dict[str, Any]] = []

    def prove(before: str, after: str | None, **rest: Any) -> Proof:
        calls.append({"before": before, "after": after, **rest})
        return replace(PROOF, projected=rest["projected"], verdict=Verdict(rest["arguments"][-1]))

    monkeypatch.setattr("syncscan.proof.prove.prove", prove)
    return calls


def run(*words: str) -> Result:
    return CliRunner().invoke(group, ["prove", *words])


@pytest.mark.parametrize(("verdict", "code"), [(v, 0 if v is Verdict.PROVEN else 1) for v in Verdict])
def test_the_exit_code_is_the_verdict(asked: list[dict[str, Any]], verdict: Verdict, code: int) -> None:
    """0 for proven, 1 for everything else that was measured."""
    assert run("a.py", "b.py", verdict.value).exit_code == code


def test_options_come_before_the_script_and_its_own_after_it(asked: list[dict[str, Any]]) -> None:
    """As with `syncscan profile`; percent and minutes become parts and seconds."""
    run("--limit", "2m", "--matters", "1", "a.py", "b.py", "--limit", "proven")
    run("--rev", "main", "--rev", "fix", "a.py", "--x", "proven")
    first, second = asked
    assert (first["before"], first["after"], first["arguments"]) == ("a.py", "b.py", ("--limit", "proven"))
    assert (first["limit_s"], first["matters"]) == (120.0, 0.01)
    assert (second["after"], second["revisions"], second["arguments"]) == (None, ("main", "fix"), ("--x", "proven"))


def test_a_trace_says_what_was_projected(asked: list[dict[str, Any]]) -> None:
    """As a part of the step, with its range."""
    trace = str(ROOT / "sample_traces" / "log_item.pt.trace.json.gz")
    document = json.loads(run("--format", "json", "--trace", trace, "a.py", "b.py", "proven").stdout)
    low, high = document["projected"]["range"]
    assert low < document["projected"]["share"] < high


def test_a_time_that_is_none_is_a_wrong_command() -> None:
    """It is shown how to write one."""
    result = run("--limit", "soon", "a.py", "b.py")
    assert (result.exit_code, "90s, 5m or 1h" in result.stderr) == (2, True)


def test_a_failing_program_fails_the_command(tmp_path: Path) -> None:
    """With the exit code of what isn't proven, and nothing on stdout."""
    script = tmp_path / "bad.py"
    script.write_text("raise ValueError('mine')")
    result = run(str(script), str(script))
    assert isinstance(result.exception, ProgramFailed)
    assert (result.exception.exit_code, result.stdout) == (1, "")
