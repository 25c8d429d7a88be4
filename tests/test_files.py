"""A file of the user's is written whole or not at all, and nothing is replaced or widened unasked."""

from __future__ import annotations

import gzip
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from syncscan import files
from syncscan.errors import UsageError


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def private() -> Iterator[None]:
    """A user who lets nobody else read new files."""
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.mark.parametrize("name", ["out.json", "out.json.gz"])
def test_the_suffix_says_whether_it_is_packed(tmp_path: Path, name: str) -> None:
    """`.gz` packs, anything else doesn't."""
    files.write(tmp_path / name, [b"ab", b"c"])
    raw = (tmp_path / name).read_bytes()
    assert (gzip.decompress(raw) if name.endswith(".gz") else raw) == b"abc"


@pytest.mark.parametrize("name", ["out.json", "out.json.gz"])
def test_what_fails_half_way_leaves_nothing(tmp_path: Path, name: str) -> None:
    """Neither the file nor a temporary one beside it; the sentence names the file and the reason."""

    def breaks() -> Iterator[bytes]:
        yield b"half"
        raise OSError(28, "No space left on device")

    with pytest.raises(UsageError, match=f"{name} can't be written: No space left"):
        files.write(tmp_path / name, breaks())
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_there_is_only_replaced_by_force(tmp_path: Path) -> None:
    """Nothing of the user's is lost unasked."""
    path = tmp_path / "out.json"
    path.write_text("mine")
    with pytest.raises(UsageError, match="exists"):
        files.write(path, [b"new"])
    assert path.read_text() == "mine"
    files.write(path, [b"new"], force=True)
    assert path.read_text() == "new"


def test_a_new_file_has_what_the_umask_leaves(tmp_path: Path, private: None) -> None:
    """0600 under umask 077."""
    files.write(tmp_path / "out.json", [b"x"])
    assert mode(tmp_path / "out.json") == 0o600


def test_a_replaced_file_keeps_its_permissions(tmp_path: Path) -> None:
    """A private report stays private."""
    path = tmp_path / "out.json"
    path.write_text("mine")
    path.chmod(0o600)
    files.write(path, [b"new"], force=True)
    assert mode(path) == 0o600


@pytest.mark.parametrize(
    "source",
    [
        "FOLDER/t.json",
        "file://FOLDER/t.json",
        "local:///FOLDER/t.json",
        "file://t.json",
        "file://~/t.json",
        "file://FOLDER/t.json/",
        "simplecache::file:///FOLDER/t.json",
        "simplecache::file:FOLDER/t.json",
        "simplecache::FOLDER/t.json",
        "zip://in::it.json::file://FOLDER/t.json",
    ],
)
def test_a_source_is_known_under_all_its_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    """Its names are those under which fsspec opens a file of this machine."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    path = tmp_path / "t.json"
    path.write_text("mine")
    with pytest.raises(UsageError, match="is the trace itself"):
        files.refuse(path, True, [source.replace("FOLDER", str(tmp_path))])


@pytest.mark.parametrize(
    "source", ["s3://bucket/t.json", "s3://file:t.json", "file://none.json", "~/t.json", "n" * 300, "a\0b", "none"]
)
def test_a_source_that_is_no_file_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    """Nothing is written over it, whatever it is called."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    path = tmp_path / "t.json"
    path.write_text("another")
    files.refuse(path, True, [source])


@pytest.mark.parametrize("force", [False, True])
def test_a_folder_is_never_replaced(tmp_path: Path, force: bool) -> None:
    """One sentence, no traceback."""
    with pytest.raises(UsageError, match="is a folder"):
        files.write(tmp_path, [b"x"], force)


def test_a_folder_that_is_not_there_is_reported(tmp_path: Path) -> None:
    """So is a name that is too long for the disk."""
    with pytest.raises(UsageError, match="can't be written"):
        files.write(tmp_path / "missing" / "out.json", [b"x"])
    with pytest.raises(UsageError, match="can't be written"):
        files.write(tmp_path / ("n" * 300), [b"x"])
    assert list(tmp_path.iterdir()) == []


def test_a_link_stays_and_what_it_points_to_is_written(tmp_path: Path) -> None:
    """`latest.html` goes on pointing to where the reports lie."""
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    with pytest.raises(UsageError, match="exists"):
        files.write(link, [b"new"])
    files.write(link, [b"new"], force=True)
    assert link.is_symlink()
    assert target.read_text() == "new"


@pytest.mark.parametrize("force", [False, True])
def test_a_pipe_is_written_into(tmp_path: Path, force: bool) -> None:
    """As a shell's `>` would; it isn't replaced by a file."""
    pipe, read = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    files.write(pipe, [b"a", b"b"], force)
    reader.join(timeout=120)
    assert read == [b"ab"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_devices_are_written_into() -> None:
    """`-o /dev/null` throws the report away and leaves the device."""
    files.write(Path("/dev/null"), [b"x"], force=True)
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
