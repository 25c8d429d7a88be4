"""`syncscan profile` from the command line: what it prints where, and what it leaves behind."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from syncscan.cli.profile import command

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("own_main_program")

SHORT = ["--calibrate", "1", "--wait", "0", "--warmup", "1", "--active", "2"]

LOOP = """
import sys, torch
net = torch.nn.Linear(2, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(int(sys.argv[1])):
    net(torch.ones(2)).sum().backward()
    opt.step()
"""


def run(tmp_path: Path, code: str, *arguments: str) -> Result:
    (tmp_path / "train.py").write_text(textwrap.dedent(code))
    options = [a for a in arguments if a.startswith("--")]
    return CliRunner().invoke(
        command,
        [*SHORT, "--out", str(tmp_path / "out"), *options, str(tmp_path / "train.py"), *arguments[len(options) :]],
    )


def test_the_report_is_on_stdout_and_the_rest_on_stderr(tmp_path: Path) -> None:
    """The report names the trace, which lies in the folder that was asked for."""
    result = run(tmp_path, LOOP, "100")
    (trace,) = (tmp_path / "out").iterdir()
    assert result.exit_code == 0
    assert trace.name in result.stdout
    assert f"syncscan: wrote {trace}" in result.stderr
    assert "ended the script after 8 steps: the capture is complete" in result.stderr


@pytest.mark.skipif(torch.cuda.is_available(), reason="has a GPU")
def test_a_cpu_gets_a_plain_sentence(tmp_path: Path) -> None:
    """No traceback, no empty table: there is nothing to measure here."""
    assert "a CPU has no host-device syncs to measure" in run(tmp_path, LOOP, "100").stderr


def test_the_script_s_exit_code_is_the_command_s(tmp_path: Path) -> None:
    """Also after a report."""
    assert run(tmp_path, LOOP + "sys.exit(9)", "--keep-running", "100").exit_code == 9


def test_a_script_without_steps_is_told_how_to_mark_them(tmp_path: Path) -> None:
    """And what to do where it trains in processes of its own."""
    result = run(tmp_path, "print('hello')")
    assert "with syncscan.profile() as prof:" in result.stderr
    assert "torchrun" in result.stderr
    assert (result.exit_code, result.stdout) == (0, "hello\n")


def test_a_script_that_fails_before_its_first_step_gets_no_such_advice(tmp_path: Path) -> None:
    """Its traceback says enough."""
    result = run(tmp_path, "raise ValueError('mine')")
    assert "optimizer" not in result.stderr
    assert result.exit_code == 1


def test_too_few_steps_are_counted(tmp_path: Path) -> None:
    """With how many it takes, and how to ask for less."""
    result = run(tmp_path, LOOP, "2")
    assert "ended after 2 steps (SGD.step()), before the first that is recorded: 8 are needed" in result.stderr
    assert "--calibrate 0" in result.stderr


def test_options_after_the_script_are_the_script_s(tmp_path: Path) -> None:
    """Even those that syncscan has too."""
    (tmp_path / "train.py").write_text("import sys; print(sys.argv[1:])")
    result = CliRunner().invoke(command, ["--out", str(tmp_path), str(tmp_path / "train.py"), "--wait", "-m", "--help"])
    assert result.stdout == "['--wait', '-m', '--help']\n"


def test_impossible_options_are_usage_errors(tmp_path: Path) -> None:
    """Before the script runs."""
    result = CliRunner().invoke(command, ["--active", "0", "no.py"])
    assert getattr(result.exception, "exit_code", None) == 2
    assert "active is 0" in str(result.exception)
