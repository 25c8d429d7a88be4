"""Guessing a line from the source: the calls in the function that can be the op, and none where nothing is known."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from syncscan.attribute.candidate_lines import candidates
from syncscan.attribute.source_file import MAX_BYTES
from syncscan.model.finding import Source

CODE = """\
import torch


def step(x, mask, items):
    n = x.item()
    if x.sum() > 0:
        y = x[mask]
    y[mask] = 0
    values = x.tolist()
    torch.cuda.synchronize()
    w = float(x)
    where = x.nonzero()
    z = x[3]
    return where


@torch.no_grad()
def decorated(x):
    return x.item()


class Net:
    def forward(self, x):
        return x.cpu()
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "train.py"
    path.write_text(CODE)
    return str(path)


def lines(
    file: str, *ops: str, api: str = "cudaStreamSynchronize", at: int = 4, function: str = "step"
) -> tuple[int, ...]:
    return candidates(Source(file, at, function, exact=False), ops, api)


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        (("aten::nonzero",), (12,)),
        (("aten::index", "aten::nonzero"), (7,)),
        (("aten::index_put_", "aten::nonzero"), (8,)),
        (("aten::item", "aten::_local_scalar_dense"), (5, 9, 11)),
        (("aten::is_nonzero", "aten::item"), (6,)),
        (("aten::multinomial",), ()),
    ],
)
def test_calls_that_can_be_the_op(file: str, ops: tuple[str, ...], expected: tuple[int, ...]):
    """The outermost op that the function calls at all decides; an op that nothing in it can be gives no candidate."""
    assert lines(file, *ops) == expected


def test_a_synchronize_without_an_op(file: str):
    """It is looked for by its own name."""
    assert lines(file, api="cudaDeviceSynchronize") == (10,)


def test_an_op_of_any_length_is_looked_for_soon(file: str):
    """3 MB of digits that don't end the name: tried from each of them on they would take hours."""
    assert lines(file, "aten::" + "7" * 3_000_000 + "x", "aten::nonzero") == (12,)


def test_decorated_functions_begin_at_their_decorator(file: str):
    """The profiler gives the decorator's line as the function's."""
    assert lines(file, "aten::item", at=17, function="decorated") == (19,)


def test_methods(file: str):
    """A method is found by its name and line."""
    assert lines(file, "aten::to", at=23, function="forward") == (24,)


def test_another_function_of_that_name_is_not_taken(file: str):
    """The line must fit too: the file may have changed since the recording."""
    assert lines(file, "aten::item", at=40) == ()


def test_only_the_program_s_own_files_are_opened(file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A trace names whatever it likes: nothing above the working directory, no pipe, nothing that leads there."""
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "link.py").symlink_to(file)
    os.mkfifo(inner / "pipe.py")
    (inner / "large.py").write_text(CODE + "#" * MAX_BYTES)
    monkeypatch.chdir(inner)
    for name in (
        file,
        "../train.py",
        "link.py",
        "pipe.py",
        "large.py",
        "/dev/zero",
        "/proc/self/mem",
        "a\0.py",
        "n" * 3000,
    ):
        assert lines(name, "aten::nonzero") == ()
    monkeypatch.chdir(tmp_path)
    assert lines("train.py", "aten::nonzero") == (12,)


def test_without_the_file_there_are_no_candidates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Missing files, folders, code that doesn't parse, and what isn't Python."""
    monkeypatch.chdir(tmp_path)
    broken, text = tmp_path / "broken.py", tmp_path / "notes.txt"
    broken.write_text("def step(:\n")
    text.write_text(CODE)
    for path in (tmp_path / "none.py", tmp_path, broken, text):
        assert lines(str(path), "aten::item") == ()
