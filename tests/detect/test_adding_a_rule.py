"""The page "Adding a rule" is followed to the letter, in a copy of the project: its rule then names its wait."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.builder import TraceBuilder

ROOT = Path(__file__).parent.parent.parent
PAGE = (
    (ROOT / "CONTRIBUTING.md")
    .read_text(encoding="utf-8")
    .partition("## Adding a rule\n")[2]
    .partition("\n<!-- /adding-a-rule -->")[0]
)
RULE = re.search(r"`(syncscan/detect/rules/\w+\.py)`:\n\n````python\n(.*?\n)````\n", PAGE, re.DOTALL)
DIFFS = re.findall(r"```diff\n--- a/(\S+)\n(.*?)```", PAGE, re.DOTALL)
COMMANDS = re.findall(r"^\$ (.*)", PAGE, re.MULTILINE)
"""The page's commands; those without `$` need a GPU, or change the project."""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project in which a reader has done what the page says."""
    folder = tmp_path_factory.mktemp("project")
    without = shutil.ignore_patterns("__pycache__")
    for name in ("syncscan", "tests/detect"):
        shutil.copytree(ROOT / name, folder / name, ignore=without)
    for name in ("pyproject.toml", "tests/__init__.py", "tests/builder.py", "tests/conftest.py", "tests/registers.py"):
        shutil.copy(ROOT / name, folder / name)
    assert RULE is not None
    (folder / RULE[1]).write_text(RULE[2], encoding="utf-8")
    for path, diff in DIFFS:
        apply(folder / path, diff)
    return folder


def apply(path: Path, diff: str) -> None:
    """Put what a hunk adds where its context stands, which has to be there once."""
    lines = diff.splitlines(keepends=True)
    before = "".join(line[1:] for line in lines if line[0] in " -")
    after = "".join(line[1:] for line in lines if line[0] in " +")
    text = path.read_text(encoding="utf-8")
    assert text.count(before) == 1, f"the page's lines aren't in {path.name}, or not once:\n{before}"
    path.write_text(text.replace(before, after), encoding="utf-8")


def run(project: Path, *command: str) -> str:
    """What the command prints; its exit code has to be 0."""
    done = subprocess.run(
        command, cwd=project, env={"PYTHONPATH": str(project), "PATH": ""}, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_rule_names_the_wait_of_the_pages_trace(project: Path, tmp_path: Path) -> None:
    """As a user runs it: the finding has the rule's words, and of its texts the first paragraph."""
    t = TraceBuilder()
    for start in t.steps(3, lasts=2000):
        t.launch("busy", at=start + 1, lasts=900)
        t.sync("mylib::radius > aten::masked_select > aten::nonzero", at=start + 20)
    trace = t.write(tmp_path / "mylib.pt.trace.json")
    answer = json.loads(run(project, sys.executable, "-m", "syncscan", "analyze", str(trace), "--format", "json"))
    (finding,) = answer["findings"]
    assert (finding["rule"], finding["cause"], finding["count"]) == ("radius", "SHAPE", 3)
    assert finding["title"] == "radius waits for the number of neighbours"
    assert finding["why"].endswith("the host waits for the device to count them.")
    assert finding["when_fine"] == "Once, before the training loop."


def test_without_the_rule_the_wait_has_the_name_that_the_page_says() -> None:
    """The page's reason for the rule is true: today another rule takes the wait."""
    from syncscan.detect import detect

    t = TraceBuilder()
    with t.step(0, 2000):
        t.sync("mylib::radius > aten::masked_select > aten::nonzero", at=20, wait=100)
    (point,), _ = detect(t.trace())
    assert point.diagnosis.rule == "masked-select"


@pytest.mark.parametrize("command", COMMANDS)
def test_the_pages_commands_work_in_the_project(project: Path, command: str) -> None:
    """The tests that the page names pass with the new rule, its own example among them.

    The examples of other rules, which run torch and know of no new one, run in test_rule_docs itself.
    """
    words = shlex.split(command.removeprefix("python -m "))
    quick = ["-p", "no:cacheprovider", "-k", "radius or not use_instead"] if words[0] == "pytest" else []
    said = run(project, sys.executable, "-m", *words, *quick)
    assert "passed" in said if words[0] == "pytest" else said.startswith("# radius: ")


def test_the_page_has_all_its_parts() -> None:
    """So that a page whose blocks nobody finds can't pass."""
    assert (len(DIFFS), len(COMMANDS)) == (3, 2)
