"""A release's files agree, as far as can be checked without building one; `make dist` builds and tries it."""

from __future__ import annotations

import fnmatch
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import syncscan

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_every_file_of_the_package_is_packed() -> None:
    """Each that is no module has a pattern in pyproject.toml; `py.typed` is there."""
    patterns = PROJECT["tool"]["setuptools"]["package-data"]["syncscan"]
    package = ROOT / "syncscan"
    others = [p.relative_to(package).as_posix() for p in package.rglob("*") if p.is_file() and p.suffix != ".py"]
    stored = [name for name in others if "__pycache__" not in name]
    assert "py.typed" in stored
    assert [name for name in stored if not any(fnmatch.fnmatch(name, pattern) for pattern in patterns)] == []
    folders = {p.parent for p in package.rglob("*.py")}
    assert [str(f) for f in folders if not (f / "__init__.py").exists()] == []


def test_the_version_stands_in_one_place() -> None:
    """pyproject.toml takes it from there, and the citation repeats it."""
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert PROJECT["tool"]["setuptools"]["dynamic"]["version"]["attr"] == "syncscan.version.__version__"
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == syncscan.__version__
    assert f"## [{syncscan.__version__}]" in (text := (ROOT / "CHANGELOG.md").read_text()) or "## [Unreleased]" in text


def test_licences_go_with_it() -> None:
    """Ours, and what is said of others'; each dependency is named there."""
    assert PROJECT["project"]["license-files"] == ["LICENSE", "THIRD_PARTY.md"]
    text = (ROOT / "THIRD_PARTY.md").read_text().lower()
    extras = dict(PROJECT["project"]["optional-dependencies"])
    users = [d for name in ("all", "test", "bench", "mutants", "docs", "release", "lint") for d in extras.pop(name, [])]
    assert users
    needed = [*PROJECT["project"]["dependencies"], *(d for group in extras.values() for d in group)]
    names = {re.match(r"[\w-]+", need)[0].lower() for need in needed}  # type: ignore[index]
    assert {name for name in names - {"torch"} if name not in text} == set()


def test_nothing_of_the_package_is_anybody_elses() -> None:
    """No text in it carries a notice of its own: such a file would have to be named in THIRD_PARTY.md."""
    texts = [p for p in (ROOT / "syncscan").rglob("*") if p.suffix in (".py", ".js", ".css", ".j2", ".json")]
    assert len(texts) > 300
    assert [str(p) for p in texts if re.search(r"copyright|@license", p.read_text(encoding="utf-8"), re.I)] == []


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_calls_targets_that_are_there(workflow: Path) -> None:
    """It runs nothing of its own beside `make` and `.ci/run`, has the least permissions and leaves no credentials."""
    report: dict[Any, Any] = yaml.safe_load(workflow.read_text())
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    assert report["permissions"] == {"contents": "read"}
    for job in report["jobs"].values():
        for step in job["steps"]:
            words = step.get("run", "make help").split()
            assert words[0] in ("make", ".ci/run", "test"), step
            assert words[0] != "make" or words[1] in targets, step
            assert not step.get("uses", "").startswith("actions/checkout") or step["with"] == {
                "persist-credentials": False
            }


def test_ci_runs_what_a_contributor_runs() -> None:
    """Tests, lint, the site, a minute of hostile input; the package is tried on each Python by a workflow."""
    run = (ROOT / ".ci" / "run").read_text()
    assert re.findall(r"^make (\w+)", run, re.M) == ["test", "lint", "docs", "fuzz"]
    ci = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    tried = set(ci["jobs"]["package"]["strategy"]["matrix"]["python"])
    assert {f"Programming Language :: Python :: {version}" for version in tried} <= set(
        PROJECT["project"]["classifiers"]
    )


def test_what_the_site_is_built_with_is_pinned() -> None:
    """CI takes the versions that were tried."""
    pinned = (ROOT / ".ci" / "constraints.txt").read_text()
    names = [re.match(r"[\w-]+", need)[0] for need in PROJECT["project"]["optional-dependencies"]["docs"]]  # type: ignore[index]
    assert [name for name in names if f"\n{name}==" not in pinned] == []
