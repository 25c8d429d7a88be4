"""A view is built while others work in the same folders."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from syncscan.scratch import kernel
from syncscan.scratch.mounts import Mounts


def test_what_vanishes_meanwhile_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder for temporary files is full of what other processes remove at any moment."""
    folder = tmp_path / "folder"
    (folder / "vanishing").mkdir(parents=True)
    (folder / "file").write_text("stays")
    tree = kernel._Tree([tmp_path / "scratch"], Mounts(""), within=False)
    copy = Path(f"{tree.root}{folder}")
    copy.mkdir(parents=True)

    def place(path: str) -> None:
        shutil.rmtree(path)
        raise FileNotFoundError(path)

    monkeypatch.setattr(tree, "_place", place)
    tree._skeleton(str(folder))
    assert [path.name for path in copy.iterdir()] == ["file"]
