"""A capture keeps how its script was called, and none of the secrets in that."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from syncscan.capture.program_words import program_words, without_secrets


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
