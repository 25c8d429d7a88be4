"""The icicle of the time in view: its shares are those of the slices in view, and it follows the timeline."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from syncscan import api
from tests.browser.test_report import odd
from tests.browser.viewer import Report
from tests.builder import TraceBuilder

pytestmark = pytest.mark.browser

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
    report = show(api.analyze_trace(t.trace()))
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
    report = show(api.analyze_trace(t.trace()))
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
