"""The pre-commit hook, the GitHub action and the GitLab component fail a repository by its traces, and pass it.

What they install can't be fetched here: this checkout's syncscan stands in its place, and the rest runs as it stands.
The repository's program has a sync three calls below its script: `step`, `read_back` and `.item()`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PROGRAM, LINE = Path("sample_traces/programs/tips.py"), 83
WAITS, CLEAN = "tips.item.pt.trace.json.gz", "tips.no_item.pt.trace.json.gz"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A program's git repository with its recordings, and this syncscan on its path."""
    for name in (WAITS, CLEAN):
        shutil.copy(ROOT / PROGRAM.parent / "recorded" / name, tmp_path / name)
    (tmp_path / PROGRAM).parent.mkdir(parents=True)
    shutil.copy(ROOT / PROGRAM, tmp_path / PROGRAM)
    bin = tmp_path / "tools/syncscan/bin"
    bin.mkdir(parents=True)
    command = bin / "syncscan"
    command.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m syncscan "$@"\n')
    command.chmod(0o755)
    assert shell("git init -q && git config user.name a && git config user.email a@b", tmp_path, {}).returncode == 0
    return tmp_path


def nothing(repository: Path) -> None:
    """Leave the sync as it is."""


def commented(repository: Path) -> None:
    """Allow it on its line."""
    lines = (repository / PROGRAM).read_text().split("\n")
    lines[LINE - 1] += "  # syncscan: allow[item] summed every step"
    (repository / PROGRAM).write_text("\n".join(lines))


def listed(repository: Path) -> None:
    """Allow it in the project's file."""
    entry = f"[[tool.syncscan.allow]]\nline = 'tips.py:{LINE}'\nreason = 'summed every step'\n"
    (repository / "pyproject.toml").write_text(entry)


def shell(lines: str, folder: Path, variables: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """As GitHub and GitLab run bash."""
    paths = f"{folder}/tools/syncscan/bin{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": paths, "RUNNER_TEMP": f"{folder}/tools"} | variables
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", lines]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def with_inputs(text: str, inputs: Mapping[str, str], pattern: str) -> str:
    return re.sub(pattern, lambda result: inputs[result[1]], text)


@pytest.mark.parametrize(("allowed", "status"), [(nothing, 1), (commented, 0)])
def test_the_action_fails_by_a_trace(allowed: Callable[[Path], None], status: int, repository: Path) -> None:
    """Marks the line, and writes the report into the job's summary whichever way it went; a comment lets it pass."""
    allowed(repository)
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    inputs = {"traces": "*" + WAITS[1:], "options": "", "python": "python3"}
    assert set(action["inputs"]) == set(inputs)
    install, check, summary = action["runs"]["steps"]
    assert subprocess.run(["bash", "-n", "-c", install["run"]]).returncode == 0
    assert set(install["env"]) == set(re.findall(r"\$(PYTHON|SOURCE)\b", install["run"]))
    done = []
    for step in (check, summary):
        values = {k: with_inputs(v, inputs, r"\$\{\{ inputs\.(\w+) \}\}") for k, v in step["env"].items()}
        done.append(shell(step["run"], repository, values | {"GITHUB_STEP_SUMMARY": str(repository / "summary.md")}))
    assert [result.returncode for result in done] == [status, 0], done[0].stderr
    assert (f"::error file={PROGRAM},line={LINE},title=" in done[0].stdout) is bool(status)
    assert re.match(r"<sub>.*</sub>\n\n### ", (repository / "summary.md").read_text())


@pytest.mark.parametrize(("allowed", "status"), [(nothing, 1), (listed, 0)])
def test_the_gitlab_component_fails_by_a_trace(allowed: Callable[[Path], None], status: int, repository: Path) -> None:
    """And leaves a JUnit report for the merge request; the project's allow-list lets it pass."""
    allowed(repository)
    text = (ROOT / "templates/check.yml").read_text()
    declared = next(yaml.safe_load_all(text))["spec"]["inputs"]
    given = {"traces": WAITS, "package": "syncscan"}
    inputs: dict[str, str] = {name: given.get(name, (how or {}).get("default", "")) for name, how in declared.items()}
    body = text.partition("\n---\n")[2]
    job: dict[str, Any] = yaml.safe_load(with_inputs(body, inputs, r"\$\[\[ inputs\.(\w+) \]\]"))["syncscan-check"]
    assert (job["stage"], job["image"]) == ("test", "python:3.11")
    install, *script = job["script"]
    assert install == 'python -m pip install --quiet "syncscan"'
    done = shell("\n".join(script), repository, {})
    assert done.returncode == status, done.stderr
    report = (repository / job["artifacts"]["reports"]["junit"]).read_text()
    assert ("<failure" in report) is bool(status)


def hooks() -> dict[str, Any]:
    """Return the pre-commit hooks of this repository, by id."""
    return {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}


@pytest.mark.parametrize(("options", "status"), [("", 0), ("--fail-on medium", 1)])
def test_the_lint_hook_fails_only_when_configured_to(options: str, status: int, repository: Path) -> None:
    """It is called with the Python files of a commit, as pre-commit does, and says the line."""
    step = "def train(batches, net):\n    for x in batches:\n        loss = net(x)\n        loss.backward()\n"
    (repository / "train.py").write_text(f"{step}        print(loss.item())\n")
    done = shell(f"{hooks()['syncscan-lint']['entry']} {options} train.py", repository, {})
    assert done.returncode == status, done.stderr
    assert "train.py:5:" in done.stdout


@pytest.mark.parametrize(("trace", "status"), [(WAITS, 1), (CLEAN, 0)])
def test_the_hook_fails_by_a_trace(trace: str, status: int, repository: Path) -> None:
    """A commit is refused: it is called with those of its files that its pattern takes, as pre-commit does."""
    hook = hooks()["syncscan-check"]
    assert hook["language"] == "python"
    script = repository / ".git/hooks/pre-commit"
    script.write_text(f"#!/bin/sh\n{hook['entry']} $(git diff --cached --name-only | grep -E '{hook['files']}')\n")
    script.chmod(0o755)
    (repository / "notes.json").write_text("{}")
    done = shell(f"git add {trace} {PROGRAM} notes.json && git commit -q -m one", repository, {})
    assert done.returncode == status, done.stderr
    assert (f"{PROGRAM}:{LINE}: aten::item" in done.stdout + done.stderr) is bool(status)
    assert (shell("git log", repository, {}).returncode == 0) is not bool(status)
