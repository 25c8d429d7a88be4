"""Whose a file is that lies outside of an environment: what was imported from it tells."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

from syncscan.capture import sync_lines
from syncscan.capture.sampling import tree
from syncscan.capture.stack_frames import naming
from syncscan.capture.sync_lines import RecordedWaits, lines_table
from syncscan.model.libraries import is_library, package_of


def imported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A library of a known name, imported from a folder on the path, as `pip install --target` puts it there."""
    package = folder / "dgl"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("def run(wait):\n    wait()\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.syspath_prepend(str(folder.parent / "program"))
    monkeypatch.delitem(sys.modules, "dgl", raising=False)
    module = importlib.import_module("dgl")
    monkeypatch.setitem(sys.modules, "dgl", module)
    return module


def test_a_library_in_a_folder_of_any_name_is_known_by_its_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its path it would be the program's; it is named as the profiler names it, and what lies beside it isn't."""
    file = str(imported(tmp_path / "libs", monkeypatch).__file__)
    assert not is_library(file)
    named = naming()
    assert named(file) == "dgl/__init__.py"
    assert package_of(named(file)) == "dgl"
    for other in (__file__, str(tmp_path / "libs" / "dgl_own" / "train.py"), "<string>", "torch/_tensor.py"):
        assert named(other) == other


def test_what_lies_beside_the_program_is_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program may have a folder with a library's name."""
    file = str(imported(tmp_path / "libs", monkeypatch).__file__)
    monkeypatch.syspath_prepend(str(tmp_path / "libs"))
    assert naming()(file) == file


def test_recorded_stacks_and_samples_have_that_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the program's line is the one that calls the library."""
    pytest.importorskip("torch")
    library = imported(tmp_path / "libs", monkeypatch)
    recording = RecordedWaits()
    monkeypatch.setattr(sync_lines._state, "recording", recording)
    library.run(sync_lines.on_sync("stream"))
    files = [file for file, _, _ in lines_table(recording)["frames"]]
    assert files[:2] == ["dgl/__init__.py", __file__]
    frames, _ = tree([((1,), ((library.run.__code__, 2),))])
    assert frames == [["dgl/__init__.py", "run"]]
