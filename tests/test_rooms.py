"""Each room can be taken away: a copy of the project without it still does what the core does."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterable
from pathlib import Path

import pytest

from syncscan import features

ROOT = Path(__file__).parents[1]
TRACE = ROOT / "sample_traces" / "log_item.pt.trace.json.gz"
CORE = sorted(
    file.name
    for file in (ROOT / "tests").iterdir()
    if (file / "__init__.py").is_file() and file.name not in features.FEATURES
)
"""Folders of tests that no room owns."""
STAGES = ("cost", "host", "model")
"""Those that show that the stages work; they take some seconds."""
OWN = ("syncscan", "tests", "sample_traces", ".git", ".venv", ".hypothesis", ".pytest_cache")
"""Names that a copy has itself, or needs not at all; the other files are linked to."""


@pytest.fixture
def without(tmp_path: Path) -> Path:
    """A copy of the package, from which a test takes a room."""
    return copied(tmp_path, [])


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project that has no room."""
    folder = copied(tmp_path_factory.mktemp("bare"), features.FEATURES)
    with_tests(folder, features.FEATURES)
    return folder


def copied(folder: Path, rooms: Iterable[str]) -> Path:
    """Copy the package but for some rooms, and make a Python that finds it and the installed packages.

    It doesn't find an editable installation of this checkout, which would have what was taken away.
    """
    passed_over = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "syncscan", folder / "syncscan", ignore=passed_over)
    for room in rooms:
        shutil.rmtree(folder / "syncscan" / room)
    venv.EnvBuilder(symlinks=True).create(folder / ".venv")
    (packages,) = (folder / ".venv" / "lib").glob("*/site-packages")
    installed = [path for path in sys.path if path.endswith("-packages")]
    (packages / "installed.pth").write_text("\n".join([str(folder), *installed, ""]))
    return folder


def with_tests(folder: Path, rooms: Iterable[str]) -> None:
    """Copy the tests but for those of some rooms, and link what they read."""
    shutil.copytree(ROOT / "tests", folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    for room in rooms:
        shutil.rmtree(folder / "tests" / room)
    shutil.copytree(ROOT / "sample_traces", folder / "sample_traces")  # programs in it are looked for below a folder
    for file in ROOT.iterdir():
        if file.name not in OWN:
            (folder / file.name).symlink_to(file)


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTEST_ADDOPTS")}
    command = [str(folder / ".venv" / "bin" / "python"), *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def run_tests(folder: Path, *words: str) -> None:
    """Run tests of a copy: all that aren't slow or skipped pass."""
    done = run(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *words)
    assert done.returncode in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED), done.stdout[-5000:]


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
def test_the_core_s_tests_import_nothing_of_a_room(room: str, without: Path) -> None:
    """All of them are collected with the room and its own tests taken away, and those of the stages pass."""
    shutil.rmtree(without / "syncscan" / room)
    with_tests(without, [room])
    run_tests(without, "--collect-only", "-m", "", *(f"--ignore=tests/{other}" for other in features.FEATURES))
    run_tests(without, "-x", *(f"tests/{name}" for name in STAGES))


@pytest.mark.slow
@pytest.mark.parametrize("folder", [*CORE, "."])
def test_the_core_passes_all_its_tests_without_any_room(folder: str, bare: Path) -> None:
    """Folder by folder, and those that lie in none."""
    elsewhere = [*CORE, Path(__file__).name] if folder == "." else []
    run_tests(bare, f"tests/{folder}", *(f"--ignore=tests/{name}" for name in elsewhere))
