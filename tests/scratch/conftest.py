"""Each kind of view that this system allows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from syncscan.scratch import Scratch
from syncscan.scratch.scratch_view import KERNEL, PYTHON, VARIABLE, _kernels_refusal


@pytest.fixture(params=[KERNEL, PYTHON])
def scratch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scratch]:
    if request.param == KERNEL and _kernels_refusal():
        pytest.skip(f"the kernel gives no view here: {_kernels_refusal()}")
    monkeypatch.setenv(VARIABLE, request.param)
    with Scratch.made() as made:
        yield made


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder of a program: a checkpoint, a log and a folder of results."""
    (tmp_path / "last.pt").write_text("checkpoint")
    (tmp_path / "train.log").write_text("epoch 1\n")
    (tmp_path / "results" / "first").mkdir(parents=True)
    (tmp_path / "results" / "first" / "loss.txt").write_text("0.5")
    monkeypatch.chdir(tmp_path)
    return tmp_path
