"""The name of a captured process's traces, which processes belong together, and the words that started one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from syncscan.capture import program_name
from syncscan.capture.program_name import clean_name, default_name, program_words, without_secrets


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ("--lr 0.1 --key-dim 64 data.zip", "--lr 0.1 --key-dim 64 data.zip"),
        ("--hf-token abc --wandb_key=abc -x", "--hf-token *** --wandb_key=*** -x"),
        ("model.api_key=abc +logger.password=abc", "model.api_key=*** +logger.password=***"),
        ("--data s3://me:pw@host/x --url=https://h/x?sig=1", "--data *** ***"),
        ("--pin 8f3a9c1d77e2b4 --run=8f3a9c1d77e2b4", "--pin *** --run=***"),
        (
            "--lr 1e-4 --n_layer=12 --compile=False --net resnet50",
            "--lr 1e-4 --n_layer=12 --compile=False --net resnet50",
        ),
        ("--data s3://bucket/x hf_abcdefghijklmnop", "--data s3://bucket/x ***"),
    ],
)
def test_secrets_are_hidden(arguments: str, shown: str) -> None:
    assert without_secrets(arguments.split()) == shown.split()


def test_a_script_is_named_with_its_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anything else can't be called again like that: what pytest is, a rank of many, or words that fill a screen."""
    script = tmp_path / "train.py"
    script.write_text("")
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None)
    monkeypatch.setattr(sys, "argv", [str(script), "--epochs", "2"])
    assert program_words() == (str(script), "--epochs", "2")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert program_words() == ()
    monkeypatch.delenv("WORLD_SIZE")
    monkeypatch.setattr(sys, "argv", [str(script), "x" * 2_000])
    assert program_words() == ()
    monkeypatch.setattr(sys, "argv", ["pytest"])
    assert program_words() == ()


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """No launcher has started this process."""
    for name in ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("path", "name"), [("/a/train.py", "train"), ("/a/pkg/__main__.py", "pkg"), ("/env/yolo", "yolo")]
)
def test_traces_have_the_name_of_the_script_or_the_package(
    monkeypatch: pytest.MonkeyPatch, path: str, name: str
) -> None:
    """A package that runs as a module has a `__main__.py`, as all have."""
    monkeypatch.setattr(sys, "argv", [path])
    assert program_name.program_name() == name


def test_ranks_with_one_rendezvous_are_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another port is another program; without any it is who started them."""
    started = program_name.group_of_ranks()
    monkeypatch.setenv("MASTER_PORT", "1")
    first = program_name.group_of_ranks()
    monkeypatch.setenv("MASTER_PORT", "2")
    assert len({started, first, program_name.group_of_ranks()}) == 3


@pytest.mark.parametrize(("here", "all_of_them", "expected"), [("", "", True), ("2", "2", True), ("2", "4", False)])
def test_ranks_of_several_machines_aren_t_ended(
    monkeypatch: pytest.MonkeyPatch, here: str, all_of_them: str, expected: bool
) -> None:
    """Ranks on another machine couldn't know at which step to end."""
    monkeypatch.setenv("LOCAL_WORLD_SIZE", here)
    monkeypatch.setenv("WORLD_SIZE", all_of_them)
    assert program_name.on_one_machine() is expected


def test_names_are_fit_for_tensorboard(monkeypatch: pytest.MonkeyPatch) -> None:
    """A script's name without its folder and suffix, with the rank where there are several."""
    monkeypatch.setattr(sys, "argv", [__file__])
    assert default_name() == "test_program_name"
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "8")
    assert default_name() == "test_program_name_rank3"
    monkeypatch.setattr(sys, "argv", ["-c"])
    assert default_name() == "trace_rank3"


@pytest.mark.parametrize(("name", "clean"), [("a b/../c", "a_b_c"), ("run.1234", "run_1234"), ("", "trace")])
def test_names_are_cleaned(name: str, clean: str) -> None:
    """A point or a slash could make a name mean something else."""
    assert clean_name(name) == clean
