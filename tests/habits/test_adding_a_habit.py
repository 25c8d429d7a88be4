"""The page "Adding a habit" is followed to the letter, in a copy of the project: its habit is found, with its gain."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from syncscan import api
from tests.builder import TraceBuilder
from tests.worked_page import WorkedPage, run

PAGE = WorkedPage("Adding a habit")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project in which a reader has done what the page says."""
    return PAGE.followed(tmp_path_factory.mktemp("project"), "tests/habits")


def audited() -> TraceBuilder:
    """The page's trace: an audit takes 300 of the step's 1,000 µs."""
    t = TraceBuilder(syncscan={"unprofiled_step_us": 1000.0})
    for start in t.steps(3, lasts=1000):
        t.op("mylib::audit", start + 10, start + 310)
        t.launch("train", at=start + 320, lasts=200)
    return t


@pytest.mark.slow
def test_the_habit_is_found_in_the_pages_trace(project: Path, tmp_path: Path) -> None:
    """As a user runs it: the report has the advice's words, the evidence, and what the step would save."""
    trace = audited().write(tmp_path / "mylib.pt.trace.json")
    answer = json.loads(run(project, "syncscan", "analyze", str(trace), "--format", "json"))
    (habit,) = answer["habits"]
    assert (habit["rule"], habit["area"]) == ("audit-on-step", "host")
    assert habit["title"] == "The step's thread audits the weights"
    assert habit["evidence"] == ["audit takes 300 µs per step, and launches nothing"]
    assert habit["recoverable_us"] == pytest.approx(300, abs=5)


def test_without_the_rule_the_host_s_time_is_reported_as_the_page_says() -> None:
    """The page's reason for the habit is true: today the op is only one of those that take the host's time."""
    analysis = api.analyze_trace(audited().trace())
    assert analysis.habits == ()
    assert analysis.step.bound.limit == "the host"
    assert analysis.host_time.counted is not None
    (op,) = analysis.host_time.counted.dearest
    assert (op.op, op.us) == ("mylib::audit", pytest.approx(300))


@pytest.mark.slow
@pytest.mark.parametrize("command", PAGE.commands)
def test_the_pages_commands_work_in_the_project(project: Path, command: str) -> None:
    """The tests that the page names pass with the new habit, its own facts among them.

    The examples of other habits, which run torch and know of no new one, run in test_documentation itself.
    """
    words = shlex.split(command.removeprefix("python -m "))
    quick = ["-p", "no:cacheprovider", "-k", "audit or not both_examples_run"] if words[0] == "pytest" else []
    text = run(project, *words, *quick)
    assert "passed" in text if words[0] == "pytest" else text.startswith("# audit-on-step: ")


def test_the_page_has_all_its_parts() -> None:
    """So that a page whose blocks nobody finds can't pass."""
    assert (len(PAGE.files), len(PAGE.diffs), len(PAGE.commands)) == (2, 3, 2)
