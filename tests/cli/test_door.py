"""`syncscan X` does what X asks for: a program is profiled, a recording analyzed, a job joined, a process watched."""

from __future__ import annotations

import importlib
import os
import shutil
from operator import itemgetter
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from syncscan.cli import group, module_of
from tests.offered import offered

JOB = Path(__file__).parents[2] / "sample_traces" / "jobs" / "ddp.straggler"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a script, a program, a job, a watch, and traces that are newer or older than a watch."""
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("")
    Path("run.sh").write_text("#!/bin/sh\n")
    Path("run.sh").chmod(0o755)
    shutil.copytree(JOB, "job")
    for folder, first, then in (("watched", "a.json.gz", "a.watch.jsonl"), ("traced", "a.watch.jsonl", "a.json.gz")):
        Path(folder).mkdir()
        for age, name in enumerate((first, then)):
            shutil.copy(JOB / "rank0.json.gz", Path(folder, name))
            os.utime(Path(folder, name), (age, age))
    return tmp_path


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("words", "command", "seen"),
    offered(
        [
            (["train.py", "--epochs", "2"], "profile", {"script": "train.py", "args": ("--epochs", "2")}),
            (["./run.sh"], "profile", {"script": "./run.sh"}),
            (["python", "train.py"], "profile", {"script": "python", "args": ("train.py",)}),
            (["torchrun", "--nproc-per-node", "2", "train.py"], "profile", {"script": "torchrun"}),
            (["t.json"], "analyze", {"traces": ("t.json",)}),
            (["-"], "analyze", {"traces": ("-",)}),
            (["4321"], "attach", {"pid": 4321, "watch": True}),
            (["a.1.watch.jsonl"], "watch", {"location": "a.1.watch.jsonl"}),
            (["http://node:9400"], "watch", {"location": "http://node:9400"}),
            (["watched"], "watch", {"location": "watched"}),
            (["traced"], "analyze", {"traces": ("traced",)}),
            (["job"], "fleet", {"locations": ("job",)}),
        ],
        itemgetter(1),
    ),
)
def test_a_word_that_is_no_command(
    words: list[str], command: str, seen: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command that is meant gets it, with what follows."""
    given: dict[str, object] = {}
    meant = importlib.import_module(module_of(command)).command
    monkeypatch.setattr(meant, "callback", lambda **options: given.update(options))
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}" if name in ("python", "torchrun") else None)
    result = CliRunner().invoke(group, words)
    assert result.exit_code == 0, result.output
    assert seen.items() <= given.items()


def test_a_path_with_nothing_there_is_said_to_be_missing() -> None:
    """It is no misspelled command."""
    result = CliRunner().invoke(group, ["runs/last"])
    assert "runs/last doesn't exist" in str(result.exception)


def test_what_is_neither_a_command_nor_a_file_is_a_usage_error() -> None:
    """With the command that was probably meant."""
    result = CliRunner().invoke(group, ["analyz"])
    assert result.exit_code == 2
    assert "Did you mean 'analyze'?" in result.output
    assert isinstance(result.exception, (SystemExit, click.UsageError))
