"""`syncscan X` does what X asks for: a script is profiled, a trace analyzed, a process watched."""

from __future__ import annotations

import importlib
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from syncscan.cli import group, module_of


@pytest.mark.parametrize(
    ("words", "command", "seen"),
    [
        (["train.py", "--epochs", "2"], "profile", {"script": "train.py", "args": ("--epochs", "2")}),
        (["t.json"], "analyze", {"traces": ("t.json",)}),
        (["4321"], "attach", {"pid": 4321, "watch": True}),
    ],
)
def test_a_word_that_is_no_command(
    words: list[str],
    command: str,
    seen: dict[str, object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The command that is meant gets it, with what follows."""
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("")
    given: dict[str, object] = {}
    meant = importlib.import_module(module_of(command)).command
    monkeypatch.setattr(meant, "callback", lambda **options: given.update(options))
    result = CliRunner().invoke(group, words)
    assert result.exit_code == 0, result.output
    assert seen.items() <= given.items()


def test_what_is_neither_a_command_nor_a_file_is_a_usage_error() -> None:
    """With the command that was probably meant."""
    result = CliRunner().invoke(group, ["analyz"])
    assert result.exit_code == 2
    assert "Did you mean 'analyze'?" in result.output
    assert isinstance(result.exception, (SystemExit, click.UsageError))
