"""Each room can be taken away: a copy of the project without it still does what the core does."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from syncscan import features

ROOT = Path(__file__).parents[1]
TRACE = ROOT / "sample_traces" / "log_item.pt.trace.json.gz"
CORE = ("cost", "detect", "host", "model", "whatif")
"""Folders of the core's tests that show that its stages work; they take some seconds."""


@pytest.fixture
def without(tmp_path: Path) -> Path:
    """A copy of the package, from which a test takes a room."""
    shutil.copytree(ROOT / "syncscan", tmp_path / "syncscan", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=900)


@pytest.mark.parametrize("room", features.FEATURES)
def test_the_core_works_without_a_room(room: str, without: Path) -> None:
    """Help lists what is left, a trace is analyzed and reported, and a lost command is unknown."""
    shutil.rmtree(without / "syncscan" / room)
    missing = features.rooms()[room]
    help_ = run(without, "-m", "syncscan", "--help")
    assert help_.returncode == 0, help_.stderr
    listed = {line.split()[0] for line in help_.stdout.splitlines() if line.startswith("  ") and line.strip()}
    assert not listed & {*missing.commands, *missing.more}
    assert {"profile", "analyze", "report", "explain"} <= listed
    for words in (["analyze", str(TRACE)], ["report", str(TRACE), "-o", "r.html"], ["explain", "item"]):
        done = run(without, "-m", "syncscan", *words)
        assert done.returncode == 0, done.stderr
    for command in (*missing.commands, *missing.more):
        assert f"No such command '{command}'" in run(without, "-m", "syncscan", command).stderr


@pytest.mark.slow
@pytest.mark.parametrize("room", features.FEATURES)
def test_the_core_passes_its_tests_without_a_room(room: str, without: Path) -> None:
    """Those of its stages, with the room's own tests taken away too."""
    shutil.rmtree(without / "syncscan" / room)
    for name in ("sample_traces", "docs", "pyproject.toml"):
        (without / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "tests", without / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.rmtree(without / "tests" / room, ignore_errors=True)
    done = run(without, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *(f"tests/{name}" for name in CORE))
    assert done.returncode == 0, done.stdout[-3000:]
