"""The numbers that a program holds as it is written."""

from __future__ import annotations

from pathlib import Path

from syncscan.fixing.source_text import source_numbers


def test_numbers_of_code_strings_and_arguments(tmp_path: Path) -> None:
    """A number counts however it is written."""
    file = tmp_path / "train.py"
    file.write_text('rate = 1e-3\nprint("loss 0.5 after", 20)\n')
    assert source_numbers([str(file)], ["--epochs", "7"]) == {0.001, 0.5, 20.0, 7.0}


def test_a_file_that_cannot_be_read_has_none(tmp_path: Path) -> None:
    """Code that ran may be in no file."""
    assert source_numbers([str(tmp_path / "none.py")], []) == frozenset()
