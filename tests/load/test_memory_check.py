"""A trace that doesn't fit into memory ends with a sentence, as soon as that is known."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from syncscan.errors import TraceTooLarge
from syncscan.load import load, memory_check, second_process
from tests.load.test_second_process import events, forked  # noqa: F401

EVENTS = events(3000)
NEEDED = 3000 * 5 * memory_check.EVENT_BYTES


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A trace whose kept rows need `NEEDED` bytes, and its few names hardly more."""
    path = tmp_path / "t.json.gz"
    path.write_bytes(gzip.compress(json.dumps(EVENTS).encode()))
    return path


def test_a_trace_that_fits(path: Path) -> None:
    """It is read as without a limit."""
    assert load(path, max_memory=int(NEEDED * 1.1)).info.events == len(EVENTS)


@pytest.mark.parametrize("piece", [2000, 1 << 20])
def test_a_trace_that_does_not_fit(path: Path, piece: int) -> None:
    """The error says how far it got, and what to do."""
    with pytest.raises(TraceTooLarge, match=r"its first [\d,]+ events need 0.0 GB. Record fewer steps"):
        load(path, piece=piece, max_memory=NEEDED // 2)


def test_it_is_refused_before_all_of_it_is_read(path: Path) -> None:
    """The unpacked size of a small file needn't be known."""
    with pytest.raises(TraceTooLarge) as caught:
        load(path, piece=2000, max_memory=NEEDED // 10)
    assert "3,000" not in str(caught.value)
    assert (
        len(EVENTS) // 12 < int(str(caught.value).split("first ")[1].split(" ")[0].replace(",", "")) < len(EVENTS) // 8
    )


@pytest.mark.parametrize("part", [0.3, 0.7])
def test_two_processes_share_the_limit(path: Path, forked: list[int], part: float) -> None:  # noqa: F811
    """Each reads half of it, and both together are held to the whole."""
    with pytest.raises(TraceTooLarge):
        load(path, piece=2000, max_memory=int(NEEDED * part))
    assert forked == [1]
    assert second_process.possible()


def test_different_names_count(tmp_path: Path) -> None:
    """Long names take more than their rows."""
    path = tmp_path / "t.json"
    path.write_text(json.dumps([{"ph": "X", "cat": "cpu_op", "name": f"{k:09}" * 100, "ts": k} for k in range(1000)]))
    with pytest.raises(TraceTooLarge):
        load(path, max_memory=1000 * (memory_check.EVENT_BYTES + 900))


def test_by_default_most_of_what_is_free() -> None:
    """Some is left to others."""
    most = memory_check.available()
    assert most is not None
    assert most > 0


def group(folder: Path, most: str, used: int, cached: int = 0) -> None:
    """A control group, as its files tell of it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.max").write_text(f"{most}\n")
    (folder / "memory.current").write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 1\nactive_file {cached}\ninactive_file {cached}\nfile 1\n")


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with a terabyte free, whose control groups lie in a folder; this process is in `job/step`."""
    own_group = tmp_path / "own"
    own_group.write_text("1:name=systemd:/elsewhere\n0::/job/step\n")
    monkeypatch.setattr(memory_check, "_CGROUPS", tmp_path)
    monkeypatch.setattr(memory_check, "_OWN_GROUP", own_group)
    monkeypatch.setattr(memory_check, "_free_in_machine", lambda: 10**12)
    return tmp_path


def test_a_group_leaves_what_it_does_not_use(groups: Path) -> None:
    """The tightest of this process' own group and those around it counts."""
    group(groups / "job/step", "max", 5)
    group(groups / "job", "1000000", 400_000)
    group(groups, "9000000", 500_000)
    assert memory_check.available() == 600_000 * memory_check.PART


def test_files_that_were_read_make_room(groups: Path) -> None:
    """The kernel keeps their pages for as long as nobody needs the memory, and counts them as used."""
    group(groups / "job/step", "1000000", 990_000, cached=400_000)
    assert memory_check.available() == 810_000 * memory_check.PART


def test_no_group_no_limit_of_one(groups: Path) -> None:
    """Then the machine's own memory counts."""
    assert memory_check.available() == 10**12 * memory_check.PART
