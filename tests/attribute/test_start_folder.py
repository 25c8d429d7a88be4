"""Paths of a program's files are told from where it was started, so that they are the same in every folder."""

from __future__ import annotations

import pytest

from syncscan.attribute.start_folder import path_in_program, program_root
from syncscan.model.capture import Frame


def stack(*files: str) -> tuple[Frame, ...]:
    """A stack through these files, outermost first."""
    return tuple(Frame(file, 1, "f") for file in files)


@pytest.mark.parametrize("home", ["/home/a/project", "/mnt/jobs/17/checkout", "C:\\Users\\a\\project"])
def test_a_program_looks_the_same_in_every_folder(home: str) -> None:
    """Its entry's folder is the root; modules below and beside it get the same paths in each."""
    root = program_root([stack(f"{home}/scripts/train.py", f"{home}/nets/unet.py"), stack(f"{home}/scripts/train.py")])
    files = ("scripts/train.py", "scripts/lib/loss.py", "nets/unet.py")
    seen = [path_in_program(f"{home}/{file}", root) for file in files]
    assert seen == ["train.py", "lib/loss.py", "../nets/unet.py"]


def test_libraries_around_the_program_are_not_its_entry() -> None:
    """A runner or a trainer that calls the user's code isn't where the program lies."""
    runner = "/usr/lib/python3.11/site-packages/torch/distributed/run.py"
    assert program_root([stack(runner, "/data/job/train.py", "/data/job/lib/net.py")]) == "/data/job"


def test_the_entry_of_most_stacks_counts() -> None:
    """A thread of its own that begins elsewhere doesn't move the root."""
    stacks = [stack("/p/train.py"), stack("/p/train.py"), stack("/p/workers/log.py")]
    assert program_root(stacks) == "/p"


def test_a_relative_entry_leaves_the_folder_of_the_others() -> None:
    """`python train.py` may be recorded as `train.py`; its modules still have absolute paths."""
    root = program_root([stack("train.py", "/p/nets/unet.py"), stack("train.py", "/p/loss.py")])
    assert (root, path_in_program("/p/nets/unet.py", root)) == ("/p", "nets/unet.py")


def test_what_has_no_absolute_path_stays() -> None:
    """Notebook cells and profiler frames, whose prefixes are stripped already."""
    assert program_root([stack("<ipython-input-3-abc>"), stack("train.py")]) == ""
    assert path_in_program("train.py", "/p") == "train.py"
    assert path_in_program("/p/a.py", "") == "/p/a.py"
