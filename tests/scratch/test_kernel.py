"""A view is built while others work in the same folders."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from syncscan.scratch import kernel
from syncscan.scratch.kernel import Mounts

NOBODY = 65534


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


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder of this user's, in one of another user's."""
    if os.geteuid():
        pytest.skip("only root can give files away")
    folder = tmp_path / "users" / "shared"
    (folder / "results").mkdir(parents=True)
    os.chown(folder.parent, NOBODY, NOBODY)
    return folder


@pytest.mark.parametrize("work", ["", "results"])
def test_a_users_folder_below_those_of_others_is_covered_apart(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, work: str
) -> None:
    """In a user namespace an overlay over all of them couldn't copy the folder above it, as writing needs."""
    tree = kernel._Tree([tmp_path / "scratch"], Mounts(""), within=True)
    Path(f"{tree.root}{shared}").mkdir(parents=True)
    covered: list[str] = []
    monkeypatch.setattr(tree, "_overlaid", lambda path: covered.append(path) or True)
    tree.cover_apart([str(shared / work)])
    assert covered == [str(shared)]
    monkeypatch.setattr(tree, "_layers", {"upper": str(shared)})
    tree.cover_apart([str(shared / work)])
    assert covered == [str(shared)]


def test_a_folder_that_a_group_shares_has_no_such_view(shared: Path) -> None:
    """A file of another group couldn't be written there."""
    kernel.refuse_foreign(str(shared))
    (shared / "results" / "last.pt").touch()
    os.chown(shared / "results" / "last.pt", 0, NOBODY)
    with pytest.raises(OSError, match="another user or group"):
        kernel.refuse_foreign(str(shared))
