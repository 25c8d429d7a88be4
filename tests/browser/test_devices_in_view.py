"""The devices' lanes stay in view: beside many threads, beside the drawer, on a phone; their edge can be moved."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from syncscan import api
from syncscan.model.analysis import Analysis
from tests.browser.viewer import Report
from tests.builder import TraceBuilder

pytestmark = [pytest.mark.slow, pytest.mark.browser]
STREAMS = """(() => { const t = syncscan.timeline, high = t.lanes.clientHeight, { bands } = t.layout;
  return bands.filter((b) => b.pinned && b.kind === 'slices').map((b) => [t.topOf(b), t.topOf(b) + b.h, high]); })()"""


def deep() -> Analysis:
    """Three steps with ops nested twenty deep, and work of less than a pixel on the stream."""
    t = TraceBuilder()
    for start in t.steps(3, lasts=10_000):
        for depth in range(20):
            t.op(f"level{depth}", start + 10 + depth, start + 9_900 - depth)
        for k in range(90):
            t.launch("tiny", at=start + 100 * k + 40, lasts=1)
    return api.analyze_trace(t.trace())


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (1280, 720), (390, 844)])
def test_the_devices_are_seen_below_a_deep_thread(show: Callable[..., Report], width: int, height: int) -> None:
    """Wherever the threads are scrolled to; what is clicked there is device work."""
    report = show(deep(), width=width, height=height).all_lanes()
    for scrolled in (0, 150):
        report.js(f"syncscan.timeline.scroll({scrolled})")
        report.settle()
        ((top, bottom, high),) = report.js(STREAMS)
        assert 0 <= top < bottom <= high
    hit = report.js(
        "(() => { const t = syncscan.timeline; return t.at(t.left + 50, t.lanes.clientHeight - 3).band; })()"
    )
    assert hit is None or hit["pinned"]


def test_the_edges_move_by_key_and_by_pointer(show: Callable[..., Report]) -> None:
    """Arrow keys on the edge give the devices more room, and the labels more width."""
    report = show(deep(), width=1280, height=720).all_lanes()
    low = report.js("syncscan.timeline.place.low")
    report.page.locator("#split").focus()
    report.page.keyboard.press("ArrowDown")
    assert report.js("syncscan.timeline.place.low") < low
    left = report.js("syncscan.timeline.left")
    report.page.locator("#label-edge").focus()
    report.page.keyboard.press("ArrowRight")
    assert report.js("syncscan.timeline.left") == left + 16


def test_kernels_shorter_than_a_pixel_do_not_fill_one(show: Callable[..., Report]) -> None:
    """A stream that works 1 % of the time isn't drawn over its lane's whole height."""
    report = show(deep(), width=1280, height=720).all_lanes()
    report.js("syncscan.timeline.view.set(0, syncscan.data.length)")
    report.settle()
    high = report.js(
        """(() => { const t = syncscan.timeline, c = t.canvas;
        const b = t.layout.bands.find((b) => b.pinned && b.kind === 'slices');
        const r = c.width / c.clientWidth, y = Math.round((t.topOf(b) + 4) * r);
        const row = c.getContext('2d').getImageData(t.left * r + 2, y, t.view.width * r - 4, 1).data, seen = new Set();
        for (let i = 0; i < row.length; i += 4) seen.add(row.slice(i, i + 3).join());
        return seen.size; })()"""
    )
    assert high <= 3  # ground, grid, a step's begin
