"""The page "Adding a rule" is followed to the letter, in a copy of the project: its rule then names its wait."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tests.builder import TraceBuilder
from tests.worked_page import WorkedPage, run

PAGE = WorkedPage("Adding a rule")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project in which a reader has done what the page says."""
    return PAGE.followed(tmp_path_factory.mktemp("project"), "tests/detect")


@pytest.mark.slow
def test_the_rule_names_the_wait_of_the_pages_trace(project: Path, tmp_path: Path) -> None:
    """As a user runs it: the finding has the rule's words, and of its texts the first paragraph."""
    t = TraceBuilder()
    for start in t.steps(3, lasts=2000):
        t.launch("busy", at=start + 1, lasts=900)
        t.sync("mylib::radius > aten::masked_select > aten::nonzero", at=start + 20)
    trace = t.write(tmp_path / "mylib.pt.trace.json")
    answer = json.loads(run(project, "syncscan", "analyze", str(trace), "--format", "json"))
    (finding,) = answer["findings"]
    assert (finding["rule"], finding["cause"], finding["count"]) == ("radius", "SHAPE", 3)
    assert finding["title"] == "radius waits for the number of neighbors"
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


@pytest.mark.slow
@pytest.mark.parametrize("command", PAGE.commands)
def test_the_pages_commands_work_in_the_project(project: Path, command: str) -> None:
    """The tests that the page names pass with the new rule, its own example among them.

    The examples of other rules, which run torch and know of no new one, run in test_rule_docs itself.
    """
    words = shlex.split(command.removeprefix("python -m "))
    quick = ["-p", "no:cacheprovider", "-k", "radius or not use_instead"] if words[0] == "pytest" else []
    text = run(project, *words, *quick)
    assert "passed" in text if words[0] == "pytest" else text.startswith("# radius: ")


def test_the_page_has_all_its_parts() -> None:
    """So that a page whose blocks nobody finds can't pass."""
    assert (len(PAGE.files), len(PAGE.diffs), len(PAGE.commands)) == (2, 2, 2)
