"""The page "Adding a library's place" is followed to the letter, in a copy of the project: its row names the wait."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builder import TraceBuilder
from tests.worked_page import ROOT, WorkedPage, run

PAGE = WorkedPage("Adding a library's place")


def gauging() -> TraceBuilder:
    """A program calls the page's function, which reads a number in each step."""
    t = TraceBuilder()
    for start in t.steps(3, lasts=2000):
        t.frame("train.py(3): main", start + 10, start + 1990)
        t.frame("timm/utils/gauge.py(9): update", start + 11, start + 1989)
        t.launch("busy", at=start + 20, lasts=900)
        t.sync("aten::item > aten::_local_scalar_dense", at=start + 40)
    return t


@pytest.mark.slow
def test_the_row_names_the_wait_of_the_pages_trace(tmp_path: Path) -> None:
    """As a user runs it: the finding says what a user of the library can do, where today it is an item's."""
    trace = str(gauging().write(tmp_path / "timm.pt.trace.json"))
    (before,) = json.loads(run(ROOT, "syncscan", "analyze", trace, "--format", "json"))["findings"]
    project = PAGE.followed(tmp_path / "project", "tests/detect")
    (after,) = json.loads(run(project, "syncscan", "analyze", trace, "--format", "json"))["findings"]
    assert (before["rule"], after["rule"], after["cause"]) == ("item", "timm", "LOG")
    assert after["title"] == "Gauge reads a number of each batch"
    assert after["fix"] == "Gauge(every=50) reads it only in every fiftieth step."


def test_the_page_has_all_its_parts() -> None:
    """It needs no Python."""
    assert [path for path, _ in PAGE.diffs] == ["syncscan/rules/syncs/timm.toml"]
    assert (len(PAGE.files), len(PAGE.commands)) == (0, 2)
