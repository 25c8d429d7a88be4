"""A worked page of CONTRIBUTING, followed to the letter in a copy of the project."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
_SHARED = (
    *("__init__", "builder", "conftest", "each", "recordings", "registers", "warm_python"),
    *("load/__init__", "load/reference"),
)
"""The modules that all tests stand on."""


class WorkedPage:
    """The page under a heading, up to its end mark: the files that it writes, its changes to others, and its commands.

    Args:
        heading: `Adding a rule`, whose end mark is `<!-- /adding-a-rule -->`.
    """

    def __init__(self, heading: str) -> None:
        text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition(f"## {heading}\n")[2]
        page, end, _ = text.partition(f"\n<!-- /{heading.lower().replace(' ', '-')} -->")
        assert end, f"the page {heading!r} has no end mark"
        self.files: list[tuple[str, str]] = re.findall(r"`(syncscan/\S+)`:\n\n````\w+\n(.*?\n)````\n", page, re.DOTALL)
        self.diffs: list[tuple[str, str]] = re.findall(r"```diff\n--- a/(\S+)\n(.*?)```", page, re.DOTALL)
        assert self.files or self.diffs, f"the page {heading!r} changes nothing"
        self.commands: list[str] = re.findall(r"^\$ (.*)", page, re.MULTILINE)
        """Commands without `$` need a GPU, or change the project."""

    def followed(self, folder: Path, tests: str) -> Path:
        """Return a copy of the project in this folder in which a reader has done what the page says.

        Args:
            folder: empty.
            tests: the folder of tests that the page names.
        """
        without = shutil.ignore_patterns("__pycache__")
        for name in ("syncscan", tests):
            shutil.copytree(ROOT / name, folder / name, ignore=without)
        for name in (
            "pyproject.toml",
            *(f"tests/{name}.py" for name in _SHARED),
        ):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
        for path, source in self.files:
            (folder / path).write_text(source, encoding="utf-8")
        for path, diff in self.diffs:
            _apply(folder / path, diff)
        return folder


def _apply(path: Path, diff: str) -> None:
    """Put what a hunk adds where its context stands, which has to be there once."""
    lines = [line if line.strip() else f" {line}" for line in diff.splitlines(keepends=True)]
    before = "".join(line[1:] for line in lines if line[0] in " -")
    after = "".join(line[1:] for line in lines if line[0] in " +")
    text = path.read_text(encoding="utf-8")
    assert text.count(before) == 1, f"the page's lines aren't in {path.name}, or not once:\n{before}"
    path.write_text(text.replace(before, after), encoding="utf-8")


def run(project: Path, *module: str) -> str:
    """Return what a module prints, run in this copy of the project; its exit code has to be 0."""
    done = subprocess.run(
        (sys.executable, "-m", *module),
        cwd=project,
        env={"PYTHONPATH": str(project), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
