"""The icicle of the time in view: its shares are those of the slices in view, and it follows the timeline."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from syncscan import api
from tests.browser.test_report import odd
from tests.browser.viewer import Report
from tests.builder import TraceBuilder

pytestmark = [pytest.mark.slow, pytest.mark.browser]

TREE = """() => syncscan.inView.icicle.nodes.map((node) => [node.name, node.depth, Math.round(node.us)])"""


def two_scopes(show: Callable[..., Report]) -> Report:
    """Steps of 1000 µs with a scope of 600 µs, an op of 200 µs in it, and a scope of 100 µs."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=1000):
        with t.scope("forward", start + 100, start + 700):
            t.op("aten::mm", start + 200, start + 300)
            t.op("aten::mm", start + 400, start + 500)
        with t.scope("log", start + 800, start + 900):
            t.launch("gemm_kernel", at=start + 810, lasts=50)
    report = show(api.analyze_trace(t.trace())).all_lanes()
    report.page.locator("#in-view > summary").click()
    return report


def test_it_sums_up_what_is_in_view(show: Callable[..., Report]) -> None:
    """Slices of one name below one caller are one; a slice at the edge counts as far as it is in view."""
    report = two_scopes(show)
    begin = report.js("syncscan.data.steps[0][1]")
    report.js(f"syncscan.timeline.view.set({begin}, {begin} + 1000000)")
    report.settle()
    report.settle()
    whole, *nodes = report.js(TREE)
    assert (whole[1], whole[2]) == (0, 1000)
    assert nodes[:3] == [["forward", 1, 600], ["aten::mm", 2, 200], ["log", 1, 100]]
    report.js(f"syncscan.timeline.view.set({begin} + 250000, {begin} + 450000)")
    report.settle()
    report.settle()
    assert report.js(TREE)[1:] == [["forward", 1, 200], ["aten::mm", 2, 100]]


def test_it_is_drawn_only_once_it_is_opened(show: Callable[..., Report]) -> None:
    """A page that opens has nothing to compute for it, and one without a timeline doesn't have it."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=1000):
        t.launch("gemm_kernel", at=start + 10, lasts=50)
    report = show(api.analyze_trace(t.trace())).all_lanes()
    assert report.js("syncscan.inView.icicle") is None
    assert not show(odd("empty")).page.locator("#in-view").is_visible()


def test_keys_zoom_as_in_the_sampled_tree(show: Callable[..., Report]) -> None:
    """And a hostile name stays a text."""
    report = two_scopes(show)
    box: Any = report.page.locator("#in-view-icicle")
    box.focus()
    report.page.keyboard.press("ArrowDown")
    report.page.keyboard.press("Enter")
    assert "forward" in report.page.locator("#in-view-icicle-details").inner_text()
    assert report.page.get_by_role("button", name="Whole view").is_visible()


ABOVE = """(name) => syncscan.inView.icicle.nodes.filter((node) => node.name === name).map((node) => {
  const around = [];
  for (let above = node.parent; above; above = above.parent) around.push([above.name, above.place]);
  return around;
})"""
"""The callers of each node of a name, the nearest first."""


@pytest.fixture(scope="module")
def with_stacks() -> Any:
    """A recording with Python stacks."""
    return api.analyze(Path(__file__).parents[2] / "sample_traces" / "lines.stacks.pt.trace.json.gz")


def test_the_programs_functions_stand_above_the_ops_that_they_call(
    show: Callable[..., Report], with_stacks: Any
) -> None:
    """Recorded Python stacks, scopes, ops and calls are one tree, which begins with the program's own function."""
    report = show(with_stacks).all_lanes()
    report.page.locator("#in-view > summary").click()
    report.settle()
    assert report.js(ABOVE, "aten::item")[0][:2] == [
        ["item", "built-in method of Tensor object"],
        ["recomputed", "zoo.py:71"],
    ]
    first = report.js("syncscan.inView.icicle.nodes[1]")
    assert (first["name"], first["place"], first["depth"]) == ("<module>", "record.py:94", 1)
    legend = report.page.locator("#in-view-icicle-legend li").all_inner_texts()
    assert [entry.rsplit(" ", 1)[0] for entry in legend] == [
        "scopes",
        "ops",
        "calls",
        "calls that wait",
        "the program's functions",
        "other Python functions",
    ]
    assert 97 <= sum(int(entry.rsplit(" ", 1)[1].rstrip("%")) for entry in legend) <= 103
    note = report.page.locator("#in-view-note").inner_text()
    assert note.endswith("recorded time, in which the profiler and its Python stacks slowed the host.")


def test_functions_follow_the_timeline(show: Callable[..., Report], with_stacks: Any) -> None:
    """Zooming in leaves those of the time in view, with their parts in it; the timeline has no lane of them."""
    report = show(with_stacks).all_lanes()
    report.page.locator("#in-view > summary").click()
    report.settle()
    before = report.js(TREE)
    begin, end = report.js(
        """() => {
          const { start, dur, name, texts } = syncscan.data.python, at = texts.findIndex(([text]) => text === "shapes");
          const i = name.indexOf(at);
          return [start[i], start[i] + dur[i]];
        }"""
    )
    report.js(f"syncscan.timeline.view.set({begin}, {end})")
    report.settle()
    report.settle()
    after = report.js(TREE)
    assert {name for name, *_ in before} >= {"train", "checked", "shapes"}
    assert {name for name, *_ in after}.isdisjoint({"train", "checked"})
    assert {name: us for name, _, us in after}["shapes"] == after[0][2] == round((end - begin) / 1e3)
    assert report.js("[...new Set(syncscan.data.groups.flatMap((g) => g.lanes.map((l) => l.kind)))].sort()") == [
        "ops",
        "scopes",
        "stream",
    ]


def test_a_kind_that_does_not_occur_has_no_entry(show: Callable[..., Report]) -> None:
    """Without stacks there is none of functions, and the note doesn't speak of them."""
    report = two_scopes(show)
    report.settle()
    legend = report.page.locator("#in-view-icicle-legend li").all_inner_texts()
    assert [entry.rsplit(" ", 1)[0] for entry in legend] == ["scopes", "ops", "calls"]
    assert report.page.locator("#in-view-note").inner_text().endswith("in which the profiler slowed the host.")


def test_a_functions_hostile_name_stays_text(show: Callable[..., Report]) -> None:
    """In the picture and in its details."""
    t = TraceBuilder(with_stack=1)
    for start in t.steps(2, lasts=1000):
        with t.frame("<img src=x onerror=alert(1)>.py(3): <b>f</b>", start + 10, start + 900):
            t.op("aten::mm", start + 200, start + 300)
    report = show(api.analyze_trace(t.trace())).all_lanes()
    report.page.locator("#in-view > summary").click()
    report.settle()
    report.page.locator("#in-view-icicle g", has_text="<b>f</b>").first.click(position={"x": 4, "y": 8})
    assert "<img src=x onerror=alert(1)>.py:3" in report.page.locator("#in-view-icicle-details").inner_text()
    assert report.js("document.querySelectorAll('#in-view-icicle b, #in-view img').length") == 0
