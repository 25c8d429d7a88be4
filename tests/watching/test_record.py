"""A watch's file rotates, holds whole lines, and costs the program nothing where it can't be written."""

from __future__ import annotations

from pathlib import Path

import pytest

from syncscan.errors import TraceNotFound, TraceUnreadable
from syncscan.watching.watch_file import Journal, files_of, read
from tests.watching.example import END, begin, window


def test_what_was_written_is_read(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "a.watch.jsonl")
    for record in (begin(), window(1), END):
        journal.write(record)
    journal.close()
    watched = read(tmp_path / "a.watch.jsonl")
    assert (watched.begin, watched.windows, watched.end) == (begin(), (window(1),), END)


def test_the_file_rotates_and_its_parts_are_read_in_order(tmp_path: Path) -> None:
    """Only so many parts stay."""
    journal = Journal(tmp_path / "a.watch.jsonl", most_bytes=3000, files=2)
    for number in range(60):
        journal.write(window(number))
    journal.close()
    assert sorted(file.name for file in tmp_path.iterdir()) == [f"a.watch.jsonl{end}" for end in ("", ".1", ".2")]
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 9000
    steps = [row.total_steps for row in read(tmp_path / "a.watch.jsonl").windows]
    assert steps == list(range(steps[0], 12_000, 200))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device here")
def test_a_full_disk_loses_lines_and_nothing_else(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """They are counted, and the program's stderr stays silent."""
    (tmp_path / "a.watch.jsonl").symlink_to("/dev/full")
    journal = Journal(tmp_path / "a.watch.jsonl", most_bytes=0)
    journal.write(window(1))
    journal.write(window(2))
    journal.close()
    assert journal.lost == 2
    assert capfd.readouterr().err == ""


def test_a_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    """As a process that is killed while it writes leaves it."""
    journal = Journal(tmp_path / "a.watch.jsonl")
    journal.write(window(1))
    journal.write(window(2))
    journal.close()
    whole = (tmp_path / "a.watch.jsonl").read_bytes()
    (tmp_path / "a.watch.jsonl").write_bytes(whole[:-40])
    assert read(tmp_path / "a.watch.jsonl").windows == (window(1),)


def test_a_folder_means_its_newest_file(tmp_path: Path) -> None:
    with pytest.raises(TraceNotFound, match="contains no"):
        files_of(str(tmp_path))
    (tmp_path / "a.watch.jsonl").write_text("{}\n")
    assert [file.name for file in files_of(str(tmp_path))] == ["a.watch.jsonl"]
    with pytest.raises(TraceUnreadable, match=r"no syncscan\.watch/1 records"):
        read(tmp_path / "a.watch.jsonl")
