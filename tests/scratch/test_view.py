"""A program in a view reads back what it writes, and leaves its user's files as they were."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from syncscan.scratch import Scratch, landlock, scratch_view, sentence
from tests.scratch.in_view import run, run_apart


def contents(folder: Path) -> dict[str, bytes | None]:
    """Return all that is in a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def overwrites() -> None:
    Path("last.pt").write_text("shorter run")
    assert Path("last.pt").read_text() == "shorter run"


def appends() -> None:
    with open("train.log", "a") as log:
        log.write("epoch 2\n")
    assert Path("train.log").read_text() == "epoch 1\nepoch 2\n"


def empties_its_results() -> None:
    shutil.rmtree("results")
    assert not os.path.exists("results")
    os.makedirs("results/second")
    assert os.listdir("results") == ["second"]


def renames() -> None:
    os.replace("last.pt", "old.pt")
    os.rename("results", "earlier")
    assert sorted(os.listdir()) == ["earlier", "old.pt", "train.log"]
    assert Path("earlier/first/loss.txt").read_text() == "0.5"


def truncates() -> None:
    os.truncate("last.pt", 3)
    assert os.stat("last.pt").st_size == 3


def writes_in_place() -> None:
    with open("last.pt", "r+") as file:
        file.write("C")
    assert Path("last.pt").read_text() == "Checkpoint"


def works_elsewhere() -> None:
    os.chdir("results")
    Path("first/loss.txt").write_text("0.1")
    assert Path("../results/first/loss.txt").read_text() == "0.1"


def follows_links() -> None:
    os.symlink("last.pt", "best.pt")
    Path("best.pt").write_text("best")
    assert Path("last.pt").read_text() == "best"
    os.unlink("best.pt")


def uses_absolute_paths() -> None:
    Path("last.pt").absolute().unlink()
    assert not Path("last.pt").exists()
    (Path.cwd() / "new").mkdir()
    (Path.cwd() / "new" / "file").touch()


PROGRAMS = [
    overwrites,
    appends,
    empties_its_results,
    renames,
    truncates,
    writes_in_place,
    works_elsewhere,
    follows_links,
    uses_absolute_paths,
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_reads_back_what_it_writes_and_the_users_files_stay(
    scratch: Scratch, folder: Path, program: Callable[[], None]
) -> None:
    """Whatever a program does to a file by Python's functions, it sees the effect, and nobody else does."""
    before = contents(folder)
    run(scratch, program)
    assert contents(folder) == before


def test_what_a_run_left_is_known_by_the_users_paths(scratch: Scratch, folder: Path) -> None:
    """Written files lead to what the run left there, removed ones to nothing."""

    def program() -> None:
        Path("last.pt").write_text("new")
        shutil.rmtree("results")
        Path("results").mkdir()
        Path("results/second.txt").write_text("2")

    run(scratch, program)
    written = {path: left and left.read_text() for path, left in scratch.written().items()}
    here = {str(Path(p).relative_to(folder)): left for p, left in written.items() if Path(p).is_relative_to(folder)}
    assert here == {"last.pt": "new", "results/first/loss.txt": None, "results/second.txt": "2"}


def test_each_run_begins_from_the_same_state(scratch: Scratch, folder: Path) -> None:
    """A run doesn't see the files of the one before."""
    run(scratch, overwrites)
    with Scratch.made() as second:

        def program() -> None:
            assert Path("last.pt").read_text() == "checkpoint"

        run(second, program)


def test_nothing_remains(folder: Path) -> None:
    """The scratch folders are gone at the end, also where a program has taken all permissions away."""

    def program() -> None:
        Path("results/first").chmod(0)
        Path("locked").mkdir()
        Path("locked/file").touch()
        Path("locked").chmod(0o500)

    with Scratch.made() as scratch:
        run_apart(scratch, program)
    assert not any(made.exists() for made in scratch.folders)


def test_other_programs_write_into_the_view_too(scratch: Scratch, folder: Path) -> None:
    """A subprocess writes where its parent reads, and not into the user's files."""
    before = contents(folder)

    def program() -> None:
        subprocess.run([sys.executable, "-c", "open('last.pt', 'w').write('by a child')"], check=True)
        assert Path("last.pt").read_text() == "by a child"

    run_apart(scratch, program)
    assert contents(folder) == before


def test_files_in_other_places_stay(scratch: Scratch, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A home folder, folders for temporary files and shared memory are part of the view."""
    home = tmp_path_factory.mktemp("home")
    names = [str(home / "file"), f"/var/tmp/syncscan-test-{os.getpid()}", f"/dev/shm/syncscan-test-{os.getpid()}"]

    def program() -> None:
        for name in names:
            Path(name).write_text("here")
            assert Path(name).read_text() == "here"

    run(scratch, program)
    assert not any(Path(name).exists() for name in names)


def test_devices_and_pipes_work_as_before(scratch: Scratch, folder: Path) -> None:
    """/dev/null, a pipe and shared memory between processes aren't part of what is copied."""

    def program() -> None:
        from multiprocessing import Lock
        from multiprocessing.shared_memory import SharedMemory

        Path("/dev/null").write_text("x")
        memory = SharedMemory(create=True, size=8)
        memory.close()
        memory.unlink()
        with Lock():
            assert subprocess.run("echo piped | cat", shell=True, capture_output=True).stdout == b"piped\n"

    run_apart(scratch, program)


def test_a_program_can_tell(scratch: Scratch, folder: Path) -> None:
    """A dry run has a variable in its environment, and trackers are off in it."""

    def program() -> None:
        assert os.environ["SYNCSCAN_DRY_RUN"] == "1"
        assert os.environ["WANDB_MODE"] == "disabled"

    run_apart(scratch, program)


def test_a_database_is_copied(scratch: Scratch, folder: Path) -> None:
    """sqlite3 opens files in C; what it writes is read back, and the user's database stays."""
    with sqlite3.connect("runs.db") as base:
        base.execute("create table runs (loss real)")
    base.close()
    before = contents(folder)

    def program() -> None:
        for _ in range(2):
            with sqlite3.connect("runs.db") as base_copy:
                base_copy.execute("insert into runs values (0.5)")
            base_copy.close()
        with sqlite3.connect("runs.db") as base_copy:
            assert base_copy.execute("select count(*) from runs").fetchone() == (2,)

    run(scratch, program)
    assert contents(folder) == before


def test_arrays_are_mapped_from_copies(scratch: Scratch, folder: Path) -> None:
    """NumPy writes through a mapped file, by `tofile` and by `save`."""
    np.zeros(4, "int32").tofile("mapped.bin")
    before = contents(folder)

    def program() -> None:
        mapped = np.memmap("mapped.bin", "int32", "r+")
        mapped[:] = 7
        mapped.flush()
        assert np.fromfile("mapped.bin", "int32").tolist() == [7] * 4
        np.save("new.npy", mapped)
        assert np.load("new.npy").sum() == 28

    run(scratch, program)
    assert contents(folder) == before


def test_checkpoints_are_copied(scratch: Scratch, folder: Path) -> None:
    """Torch writes a checkpoint in C++, by its path; one that is mapped is read in C++."""
    torch = pytest.importorskip("torch")
    torch.save({"step": 70}, "last.pt")
    before = contents(folder)

    def program() -> None:
        assert torch.load("last.pt")["step"] == 70
        torch.save({"step": torch.ones(2)}, "last.pt")
        torch.save({"step": 1}, Path("results") / "new.pt")
        assert torch.load("last.pt", mmap=True)["step"].sum() == 2
        assert torch.load(Path("results") / "new.pt")["step"] == 1

    run(scratch, program)
    assert contents(folder) == before


def test_what_cannot_be_redirected_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that isn't Python can't write into the user's files either, but into its folder for temporary files."""
    monkeypatch.setenv("SYNCSCAN_SCRATCH", "python")
    if not landlock.holds():
        pytest.skip("no Landlock here")
    before = contents(folder)

    def program() -> None:
        for command in ("echo x > last.pt", "rm last.pt", "mkdir new", "mv results old", ": > train.log"):
            assert subprocess.run(command, shell=True, stderr=subprocess.PIPE).returncode != 0
        subprocess.run("echo x > $TMPDIR/x && cat last.pt > /dev/null", shell=True, check=True)

    with Scratch.made() as scratch:
        run_apart(scratch, program)
    assert contents(folder) == before


@pytest.mark.parametrize(
    ("kind", "version", "end"),
    [
        ("kernel", 0, "the kernel sees to it."),
        ("python", 7, "whatever else writes is refused."),
        ("python", 2, "What native code and other programs write isn't held back here."),
    ],
)
def test_what_holds_is_said(monkeypatch: pytest.MonkeyPatch, kind: str, version: int, end: str) -> None:
    """Also what doesn't, where the system can refuse nothing."""
    monkeypatch.setattr(landlock, "version", lambda: version)
    assert sentence(kind=kind).startswith("What the program writes goes to a scratch copy")
    assert sentence(kind=kind).endswith(end)


def test_a_folder_that_nobody_holds_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One in use stays, and so does one that was made just now."""
    monkeypatch.setattr(scratch_view, "_bases", lambda: [tmp_path])
    left, fresh = tmp_path / f"{scratch_view.PREFIX}left", tmp_path / f"{scratch_view.PREFIX}fresh"
    for folder in (left, fresh):
        folder.mkdir()
    (held,) = scratch_view._made()
    for folder in (left, held):
        os.utime(folder, (0, 0))
    for folder in scratch_view._made():
        scratch_view._remove(folder)
    assert (left.exists(), fresh.exists(), held.exists()) == (False, True, True)
    scratch_view._remove(held)
