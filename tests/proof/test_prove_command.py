"""The command runs two programs, and its exit code is the verdict."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace

from syncscan.cli import group
from syncscan.errors import ProgramFailed, UsageError
from syncscan.proof.outcome import Proof, ProofVerdict
from tests.proof.test_report import PROOF

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def proof_calls(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Return the arguments with which the command calls `prove`, which runs nothing here."""
    calls: list[dict[str, Any]] = []

    def prove(before: str, after: str | None, **rest: Any) -> Proof:
        calls.append({"before": before, "after": after, **rest})
        return replace(PROOF, projected=rest["projected"], verdict=ProofVerdict(rest["arguments"][-1]))

    monkeypatch.setattr("syncscan.proof.prove.prove", prove)
    return calls


def run(*words: str) -> Result:
    return CliRunner().invoke(group, ["prove", *words])


@pytest.mark.parametrize(("verdict", "code"), [(v, 0 if v is ProofVerdict.PROVEN else 1) for v in ProofVerdict])
def test_the_exit_code_is_the_verdict(proof_calls: list[dict[str, Any]], verdict: ProofVerdict, code: int) -> None:
    """0 for proven, 1 for everything else that was measured."""
    assert run("a.py", "b.py", verdict.value).exit_code == code


def test_options_come_before_the_script_and_its_own_after_it(proof_calls: list[dict[str, Any]]) -> None:
    """As with `syncscan profile`; percent and minutes become parts and seconds."""
    run("--limit", "2m", "--matters", "1", "a.py", "b.py", "--limit", "proven")
    run("--rev", "main", "--rev", "fix", "a.py", "--x", "proven")
    first, second = proof_calls
    assert (first["before"], first["after"], first["arguments"]) == ("a.py", "b.py", ("--limit", "proven"))
    assert (first["limit_s"], first["matters"]) == (120.0, 0.01)
    assert (second["after"], second["revisions"], second["arguments"]) == (None, ("main", "fix"), ("--x", "proven"))


def test_a_trace_says_what_was_projected(proof_calls: list[dict[str, Any]]) -> None:
    """As a part of the step, with its range."""
    trace = str(ROOT / "sample_traces" / "log_item.pt.trace.json.gz")
    document = json.loads(run("--format", "json", "--trace", trace, "a.py", "b.py", "proven").stdout)
    low, high = document["projected"]["range"]
    assert low < document["projected"]["share"] < high


COMMANDS = re.findall(r"^syncscan prove ([^#\n]+)", (ROOT / "docs" / "howto" / "prove.md").read_text(), re.M)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """As the page's reader has it: scripts, functions, and a fix on a branch."""
    monkeypatch.chdir(tmp_path)
    for name in ("before.py", "after.py", "train.py"):
        Path(name).write_text("")
    Path("step.py").write_text(STEPS)
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-qb", "main"], ["add", "."], [*identity, "commit", "-qm", "one"], ["branch", "fix"]):
        subprocess.run(["git", *words], check=True)
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
def test_the_page_s_commands_are_right(command: str, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their programs, revisions and options are found; nothing is measured."""
    measured: list[object] = []
    monkeypatch.setattr("syncscan.proof.prove.measured", lambda trials, names, *rest: measured.append(names) or PROOF)
    monkeypatch.setattr("syncscan.proof.prove.prove_commands", lambda both, *of, **rest: measured.append(both) or PROOF)
    assert run(*shlex.split(command)).exit_code == 0
    assert len(measured) == 1
    assert len(COMMANDS) >= 4


STEPS = """
import random, time
def before():
    time.sleep(0.1)
    return random.random()
def after():
    time.sleep(0.001)
    return random.random()
"""


@pytest.mark.usefixtures("warm")
def test_from_two_functions_to_a_verdict(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In processes of their own, with turns a tenth as long; a busy machine has no time for the third pair."""
    monkeypatch.setattr("syncscan.proof.paired_timing.TURN_S", 0.02)
    result = run("--limit", "20s", "--format", "json", "step.py:before", "step.py:after")
    proof = json.loads(result.stdout)
    assert proof["result"]["same"] == "same"
    assert all(pair["gain"] > 0.1 for pair in proof["pairs"][:1])
    assert proof["verdict"] == ("proven" if len(proof["pairs"]) >= 3 else "unknown")
    assert result.exit_code == (0 if proof["proven"] else 1)


def test_a_time_that_is_none_is_a_wrong_command() -> None:
    """It is shown how to write one."""
    result = run("--limit", "soon", "a.py", "b.py")
    assert (result.exit_code, "90s, 5m or 1h" in result.stderr) == (2, True)


def test_several_ranks_are_refused_with_what_compares_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their steps can't be: the other ranks would wait for the one that is timed. A number that they print can."""
    monkeypatch.chdir(tmp_path)
    launcher = tmp_path / "bin" / "torchrun"
    launcher.parent.mkdir()
    launcher.write_text(f"#!{sys.executable}\n")
    launcher.chmod(0o755)
    monkeypatch.setenv("PATH", str(launcher.parent))
    (tmp_path / "train.py").write_text("")
    refused = run("--rev", "HEAD", "torchrun", "--nproc-per-node", "2", "train.py").exception
    assert isinstance(refused, UsageError)
    assert "would start 2 ranks" in str(refused)
    assert "syncscan prove --rev REV --metric WHERE -- torchrun" in refused.hint
    refused = run("torchrun", "train.py").exception
    assert isinstance(refused, UsageError)
    assert "torchrun is a command" in str(refused)
    assert "syncscan prove --rev REV torchrun" in refused.hint


def test_commands_are_compared_by_what_they_print(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two lines of the shell; JSON says which number it was."""
    monkeypatch.chdir(tmp_path)
    words = ("--in-place", "--before", "echo rate 100", "--after", "echo rate 150", "--metric", r"rate (\S+)")
    result = run(*words, "--better", "higher")
    assert (result.exit_code, result.stdout.splitlines()[0]) == (
        0, "Proven: the number is 150 instead of 100, 50.0% more (50.0% to 50.0%).",
    )  # fmt: skip
    document = json.loads(run(*words, "--format", "json").stdout)
    assert (document["verdict"], document["measured"], document["metric"]) == ("slower", "printed", r"rate (\S+)")


def test_a_command_is_compared_at_two_revisions(repository: Path) -> None:
    """In worktrees, where its imports come from too."""
    Path("lib.py").write_text("RATE = 5")
    (repository / "bench.py").write_text("import lib; print('took', lib.RATE)")
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["add", "."], [*identity, "commit", "-qm", "two"]):
        subprocess.run(["git", *words], check=True)
    Path("lib.py").write_text("RATE = 4")
    result = run("--in-place", "--rev", "main", "--metric", r"took (\d)", "--", sys.executable, "bench.py")
    assert result.stdout.splitlines()[0] == "Proven: the number is 4 instead of 5, 20.0% less (20.0% to 20.0%)."
    assert not Path(".git", "worktrees").exists() or not list(Path(".git", "worktrees").iterdir())


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (("--before", "true"), "--after COMMAND"),
        (("--before", "true", "--after", "true", "x.py"), "no BEFORE"),
        (("--before", "true", "--after", "true", "--metric", "rate"), "has no group"),
        (("--before", "true", "--after", "true", "--ready", "("), "without --client"),
        (("--before", "true", "--after", "true", "--ready", "(", "--client", "true"), "no regular expression"),
        ((), "Two programs are needed"),
    ],
)
def test_half_a_comparison_is_a_usage_error(words: tuple[str, ...], wrong: str) -> None:
    """With what is missing."""
    refused = run(*words).exception
    assert isinstance(refused, UsageError)
    assert wrong in refused.message


def test_a_failing_program_fails_the_command(tmp_path: Path) -> None:
    """With the exit code of what isn't proven, and nothing on stdout."""
    script = tmp_path / "bad.py"
    script.write_text("raise ValueError('mine')")
    result = run(str(script), str(script))
    assert isinstance(result.exception, ProgramFailed)
    assert (result.exception.exit_code, result.stdout) == (1, "")
