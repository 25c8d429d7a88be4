"""The pre-commit hook, the GitHub action and the GitLab component fail a repository by its traces, and pass it.

What they install can't be fetched here: this checkout's syncscan stands in its place, and the rest runs as it stands.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("syncscan.cli.check") is None, reason="syncscan check isn't there yet"
)

ROOT = Path(__file__).parents[2]
WAITS, CLEAN = "log_item.pt.trace.json.gz", "clean.pt.trace.json.gz"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A program's repository with both recordings, and this syncscan on its path."""
    for name in (WAITS, CLEAN):
        shutil.copy(ROOT / "sample_traces" / name, tmp_path / name)
    bin = tmp_path / "tools/syncscan/bin"
    bin.mkdir(parents=True)
    command = bin / "syncscan"
    command.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m syncscan "$@"\n')
    command.chmod(0o755)
    return tmp_path


def shell(lines: str, folder: Path, variables: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """As GitHub and GitLab run bash."""
    paths = f"{folder}/tools/syncscan/bin{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": paths, "RUNNER_TEMP": f"{folder}/tools"} | variables
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", lines]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def with_inputs(text: str, inputs: Mapping[str, str], pattern: str) -> str:
    return re.sub(pattern, lambda found: inputs[found[1]], text)


@pytest.mark.parametrize(("trace", "status"), [(WAITS, 1), (CLEAN, 0)])
def test_the_action_fails_by_a_trace(trace: str, status: int, repository: Path) -> None:
    """Marks the line, and writes the report into the job's summary whichever way it went."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    inputs = {"traces": "*" + trace[1:], "options": "", "python": "python3"}
    assert set(action["inputs"]) == set(inputs)
    install, check, summary = action["runs"]["steps"]
    assert subprocess.run(["bash", "-n", "-c", install["run"]]).returncode == 0
    assert set(install["env"]) == set(re.findall(r"\$(PYTHON|SOURCE)\b", install["run"]))
    done = []
    for step in (check, summary):
        values = {k: with_inputs(v, inputs, r"\$\{\{ inputs\.(\w+) \}\}") for k, v in step["env"].items()}
        done.append(shell(step["run"], repository, values | {"GITHUB_STEP_SUMMARY": str(repository / "summary.md")}))
    assert [result.returncode for result in done] == [status, 0], done[0].stderr
    assert ("::error" in done[0].stdout) is bool(status)
    assert (repository / "summary.md").read_text().startswith("### ")


@pytest.mark.parametrize(("trace", "status"), [(WAITS, 1), (CLEAN, 0)])
def test_the_gitlab_component_fails_by_a_trace(trace: str, status: int, repository: Path) -> None:
    """And leaves a JUnit report for the merge request."""
    text = (ROOT / "templates/check.yml").read_text()
    declared = next(yaml.safe_load_all(text))["spec"]["inputs"]
    given = {"traces": trace, "package": "syncscan"}
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


@pytest.mark.parametrize(("trace", "status"), [(WAITS, 1), (CLEAN, 0)])
def test_the_hook_fails_by_a_trace(trace: str, status: int, repository: Path) -> None:
    """It is called with the files of a commit that its pattern takes."""
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    commit = [trace, "train.py", "notes.json"]
    files = [name for name in commit if re.search(hook["files"], name)]
    assert files == [trace]
    assert hook["language"] == "python"
    assert shell(f"{hook['entry']} {' '.join(files)}", repository, {}).returncode == status
