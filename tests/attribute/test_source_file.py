"""Which source files are read, and which lines of them are shown."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from syncscan.attribute.source_file import MAX_BYTES, OWN, SourceFiles, source_files
from syncscan.errors import UsageError
from syncscan.model.finding import Excerpt, Source
from syncscan.report import source

TEXT = """\
import torch

def step(x):
    y = x * 2
    return y.item()

def other(x):
    return x
"""
LINE = 5


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project's folder, and a working directory beside it."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    path = tmp_path / "project" / "train" / "loop.py"
    path.parent.mkdir(parents=True)
    path.write_text(TEXT)
    return tmp_path / "project"


def flagged(file: str, line: int = LINE, function: str = "step", exact: bool = True) -> Source:
    return Source(file, line, function, exact, () if exact else (line,))


def test_the_flagged_line_has_two_around_it(project: Path) -> None:
    """Their numbers are the file's; beyond the file there is nothing."""
    result = source_files([str(project)]).excerpt(flagged("/home/me/train/loop.py"))
    assert result is not None
    assert (result.first, result.marked, result.newer) == (3, (LINE,), False)
    assert result.lines == ("def step(x):", "    y = x * 2", "    return y.item()", "", "def other(x):")
    assert Path(result.path) == project / "train" / "loop.py"


@pytest.mark.parametrize(
    ("roots", "file"),
    [
        (["{}"], "/home/me/train/loop.py"),
        (["{}"], "train/loop.py"),
        (["{}/train"], "C:\\me\\train\\loop.py"),
        (["/home/me={}"], "/home/me/train/loop.py"),
        (["/home/me/={}"], "/home/me/train/loop.py"),
        (["/elsewhere=/", "/home/me={}"], "/home/me/train/loop.py"),
    ],
)
def test_a_root_stands_for_a_folder_of_the_trace(project: Path, roots: list[str], file: str) -> None:
    """DIR for any, OLD=NEW for one."""
    assert source_files([root.format(project) for root in roots]).path_of(file) == project / "train" / "loop.py"


@pytest.mark.parametrize("file", ["/home/you/train/loop.py", "/home/me/train/gone.py", "/home/mee/train/loop.py"])
def test_what_lies_elsewhere_is_not_found_below_a_mapped_folder(project: Path, file: str) -> None:
    """OLD is a folder, not the beginning of a name."""
    assert source_files([f"/home/me={project}"]).path_of(file) is None


def test_nothing_outside_of_the_roots_is_read(project: Path, tmp_path: Path) -> None:
    """By no name, no way up and no link; nothing of a network; nothing but Python."""
    secret = tmp_path / "secret.py"
    secret.write_text(TEXT)
    (project / "link.py").symlink_to(secret)
    (project / "notes.txt").write_text(TEXT)
    files = source_files([str(project), f"/map={project}"])
    names = [str(secret), "/map/../secret.py", "/map/link.py", "../secret.py", "/map/notes.txt"]
    network = [f"//host{project}/train/loop.py", f"file://{project}/train/loop.py", "\\\\host\\train\\loop.py"]
    assert [files.path_of(name) for name in (*names, *network, "a\0.py", "/map/" + "a/" * 9999 + "b.py")] == [None] * 10
    assert OWN.path_of(str(project / "train" / "loop.py")) is None


def test_only_regular_files_that_somebody_wrote_are_read(project: Path) -> None:
    """A pipe would wait for ever, and a huge file would take the memory."""
    os.mkfifo(project / "pipe.py")
    (project / "huge.py").write_bytes(b"#" * (MAX_BYTES + 1))
    files = source_files([str(project)])
    assert [files.path_of(name) for name in ("pipe.py", "huge.py", "train")] == [None] * 3


@pytest.mark.parametrize(
    "line",
    [flagged("train/loop.py", 8), flagged("train/loop.py", 99), flagged("train/loop.py", 5, "gone"),
     flagged("train/loop.py", 6, "<module>"), Source("train/loop.py", 3, "step", False)],
)  # fmt: skip
def test_a_file_that_was_changed_is_not_shown(project: Path, line: Source) -> None:
    """Its function lies elsewhere, or nothing stands in the line; nor is a line that nobody knows."""
    assert source_files([str(project)]).excerpt(line) is None


def test_a_file_that_was_written_later_is_called(project: Path) -> None:
    """And an edit is seen at once."""
    files, path = source_files([str(project)]), project / "train" / "loop.py"
    written = path.stat().st_mtime_ns
    before, after = (files.excerpt(flagged("train/loop.py"), written + ns) for ns in (-1, 1))
    assert before is not None
    assert after is not None
    assert (before.newer, after.newer) == (True, False)
    path.write_text(TEXT.replace("y.item()", "float(y)"))
    os.utime(path, ns=(written + 1, written + 1))
    changed = files.excerpt(flagged("train/loop.py"))
    assert changed is not None
    assert changed.lines[2] == "    return float(y)"


def test_candidates_are_all_marked(project: Path) -> None:
    """As far as they lie together."""
    result = source_files([str(project)]).excerpt(Source("train/loop.py", 3, "step", False, (4, 5, 400)))
    assert result is not None
    assert result.marked == (4, 5)
    assert [x.startswith(">") for x in source.numbered(result)] == [False, False, True, True, False, False]


def test_a_root_that_is_no_folder_is_a_usage_error(project: Path) -> None:
    """With how it is written."""
    for root in ("gone", "/old=gone", "/old=", str(project / "train" / "loop.py")):
        with pytest.raises(UsageError, match="is not a folder"):
            source_files([root])
    assert source_files([]) == SourceFiles()


def test_text_of_a_source_is_hostile() -> None:
    """Control and direction characters don't reach a terminal, and a long line is cut."""
    lines = ("    \x1b[31mred\x07", "\tx = '\u202e'", "    " + "y" * 9999)
    result = Excerpt(path="/a.py", first=9, lines=lines, marked=(10,), newer=False)
    shown = source.numbered(result)
    assert shown[0] == "   9 | \ufffd[31mred\ufffd"
    assert shown[1] == "> 10 | x = '\ufffd'"
    assert max(map(len, shown)) < 200
