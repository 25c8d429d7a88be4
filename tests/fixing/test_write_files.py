"""Writing a patch: whole files, their bytes as they were elsewhere, and nothing with uncommitted changes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from syncscan.errors import UsageError
from syncscan.fixing.fix_command import write_files
from syncscan.fixing.source_text import read
from syncscan.model.fix import Fixed, Patched


def patch(path: Path, old: str, new: str) -> Fixed:
    """A patch of one file that replaces a text."""
    text = read(str(path))
    file = Patched(path.name, text.path, text.text, text.text.replace(old, new), text.encoding, "")
    return Fixed(program=path.name, fixes=(), files=(file,), waits_before=1, waits_after=0, tolerance=1e-5, seconds=0.0)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a = 1\r\nb = 2\r\n", b"a = 9\r\nb = 2\r\n"),
        (b"\xef\xbb\xbfa = 1\n", b"\xef\xbb\xbfa = 9\n"),
        (b"# -*- coding: latin-1 -*-\na = 1  # \xe9\n", b"# -*- coding: latin-1 -*-\na = 9  # \xe9\n"),
        (b"a = 1", b"a = 9"),
        (b"a = 1\n\x0cb = 2\n", b"a = 9\n\x0cb = 2\n"),
    ],
    ids=["CRLF", "byte order mark", "latin-1", "no line end", "form feed"],
)
def test_bytes_beside_the_change_stay(tmp_path: Path, before: bytes, after: bytes) -> None:
    """Encoding, line ends and comments."""
    file = tmp_path / "train.py"
    file.write_bytes(before)
    assert write_files(patch(file, "a = 1", "a = 9"), force=False) == ["train.py"]
    assert file.read_bytes() == after


def test_permissions_stay(tmp_path: Path) -> None:
    """A script stays executable."""
    file = tmp_path / "train.py"
    file.write_text("a = 1\n")
    file.chmod(0o755)
    write_files(patch(file, "1", "9"), force=False)
    assert file.stat().st_mode & 0o777 == 0o755


def test_a_file_that_changed_meanwhile_is_left(tmp_path: Path) -> None:
    """The patch was verified for another text."""
    file = tmp_path / "train.py"
    file.write_text("a = 1\n")
    fixed = patch(file, "1", "9")
    file.write_text("a = 1  # mine\n")
    with pytest.raises(UsageError, match="was changed while its fixes were verified"):
        write_files(fixed, force=True)
    assert file.read_text() == "a = 1  # mine\n"


def test_uncommitted_changes_are_refused_without_force(tmp_path: Path) -> None:
    """The file is tracked by git."""
    file = tmp_path / "train.py"
    file.write_text("a = 1\n")
    identity = ("-c", "user.name=n", "-c", "user.email=e")
    for command in (("init", "-q"), ("add", "train.py"), (*identity, "commit", "-qm", "Add")):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    write_files(patch(file, "1", "2"), force=False)
    with pytest.raises(UsageError, match="has uncommitted changes"):
        write_files(patch(file, "2", "3"), force=False)
    write_files(patch(file, "2", "3"), force=True)
    assert file.read_text() == "a = 3\n"
