"""Scratch folders of commands that were killed are removed by the next one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from syncscan.scratch import bases


def test_a_folder_that_nobody_holds_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One in use stays, and so does one that was made just now."""
    monkeypatch.setattr(bases, "_bases", lambda: [tmp_path])
    left, fresh = tmp_path / f"{bases.PREFIX}left", tmp_path / f"{bases.PREFIX}fresh"
    for folder in (left, fresh):
        folder.mkdir()
    (held,) = bases.made()
    for folder in (left, held):
        os.utime(folder, (0, 0))
    for folder in bases.made():
        bases.removed(folder)
    assert (left.exists(), fresh.exists(), held.exists()) == (False, True, True)
    bases.removed(held)
