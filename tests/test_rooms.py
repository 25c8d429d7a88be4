"""Each room can be taken away: a copy of the project without it still does what the core does."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from syncscan import features

ROOT = Path(__file__).parents[1]
TRACE = ROOT / "sample_traces" / "log_item.pt.trace.json.gz"
CORE = ("cost", "host", "model")
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


COMMANDS = f"""
import sys
from click.testing import CliRunner
from syncscan.cli import group
lost = sys.argv[1:]
runs = [["--help"], ["analyze", {str(TRACE)!r}], ["report", {str(TRACE)!r}, "-o", "r.html"], ["explain", "item"]]
for words in [*runs, *([command] for command in lost)]:
    result = CliRunner().invoke(group, words)
    assert result.exit_code == (2 if words[0] in lost else 0), (result.output, result.exception)
    print(result.output)
"""
"""Runs commands of the core, and then those that its arguments name."""


ALL = [room if room == "gate" else pytest.param(room, marks=pytest.mark.slow) for room in features.FEATURES]
"""The rooms, of which the one that most commands and reports could need is taken away in each run of the tests."""


@pytest.mark.parametrize("room", ALL)
def test_the_core_works_without_a_room(room: str, without: Path) -> None:
    """Help lists what is left, a trace is analyzed and reported, and a lost command is unknown."""
    shutil.rmtree(without / "syncscan" / room)
    lost = [*features.rooms()[room].commands, *features.rooms()[room].more]
    done = run(without, "-c", COMMANDS, *lost)
    assert done.returncode == 0, done.stderr
    assert "\n  analyze " in done.stdout
    assert not [command for command in lost if f"\n  {command} " in done.stdout]
    assert done.stdout.count("No such command") == len(lost)
    assert (without / "r.html").stat().st_size > 100_000


def test_the_core_names_no_room() -> None:
    """But for the list of rooms, the public names, and the plugin that pytest loads."""
    named = re.compile(rf"syncscan[./]({'|'.join(features.FEATURES)})\b")
    excepted = ("features.py", "__init__.py", "pytest_plugin.py")
    package = ROOT / "syncscan"
    core = (file for file in package.rglob("*.py") if file.relative_to(package).parts[0] not in features.FEATURES)
    lines = (
        f"{file.relative_to(ROOT)}:{number}"
        for file in core
        if str(file.relative_to(package)) not in excepted
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1)
        if named.search(line)
    )
    assert not list(lines)


@pytest.mark.slow
@pytest.mark.parametrize("room", features.FEATURES)
def test_the_core_passes_its_tests_without_a_room(room: str, without: Path) -> None:
    """Those of its stages, with the room's own tests taken away too."""
    shutil.rmtree(without / "syncscan" / room)
    for name in ("sample_traces", "docs", "pyproject.toml", "CONTRIBUTING.md", "README.md"):
        (without / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "tests", without / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.rmtree(without / "tests" / room, ignore_errors=True)
    done = run(without, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *(f"tests/{name}" for name in CORE))
    assert done.returncode == 0, done.stdout[-3000:]
