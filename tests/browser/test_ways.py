"""Keys and clicks do what the report's help promises, and grid and ruler share their ticks."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest

from syncscan import api
from syncscan.model.analysis import Analysis
from syncscan.report import html
from syncscan.report.timeline import timeline
from tests.browser.viewer import Report
from tests.builder import TraceBuilder

pytestmark = [pytest.mark.slow, pytest.mark.browser]
SIZES = ((1440, 900), (1280, 720))


@functools.cache
def two_steps() -> Analysis:
    """Three steps with two syncs each: the first is costliest in the first step, the second in the last one."""
    t = TraceBuilder()
    for number, start in enumerate(t.steps(3, lasts=4000)):
        with t.scope("select", start + 10, start + 1500):
            t.launch("gemm_kernel", at=start + 20, lasts=1400 - 300 * number)
            t.sync("aten::nonzero", at=start + 100)
        with t.scope("log", start + 2000, start + 3900):
            t.launch("needle_kernel", at=start + 2200, lasts=300 + 300 * number)
            t.sync("aten::item > aten::_local_scalar_dense", at=start + 2300)
    return api.analyze_trace(t.trace())


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_enter_opens_the_sync_that_n_chose(show: Callable[..., Report], width: int, height: int) -> None:
    """Wherever the focus was before, `n` begins with the first sync in view."""
    report = show(two_steps(), width=width, height=height).all_lanes()
    report.page.keyboard.press("n")
    first = report.page.evaluate("syncscan.timeline.state.sync")
    assert first == report.page.evaluate("lowerBound(syncscan.data.syncs.start, syncscan.data.home[0])")
    report.page.keyboard.press("Enter")
    assert report.page.evaluate("!document.getElementById('drawer').hidden")


def test_a_chosen_finding_is_shown_in_a_step_that_is_projected(show: Callable[..., Report]) -> None:
    """Its sync point lies in the step that is drawn twice, which is in view."""
    report = show(two_steps()).all_lanes()
    for number in range(2):
        report.page.evaluate(f"syncscan.list.choose(document.getElementById('f{number}'))")
        assert report.page.evaluate(
            "(() => { const { state, options: { replay }, data } = syncscan.timeline;"
            " const at = data.syncs.start[state.sync]; return at >= replay.start && at < replay.recorded; })()"
        )


def test_grid_and_ruler_share_their_ticks(show: Callable[..., Report]) -> None:
    """Both count from the begin of the step in view, which isn't a multiple of the ticks' distance."""
    report = show(two_steps(), width=1440, height=900).all_lanes()
    report.page.evaluate("syncscan.timeline.view.set(4100e3, 7700e3)")
    zero = report.page.evaluate("rulerZero(syncscan.timeline.view, syncscan.data.steps)")
    assert zero == report.page.evaluate("syncscan.data.steps[1][1]")
    drawn = report.page.evaluate(
        """(() => {
          const { timeline } = syncscan, ink = timeline.canvas.getContext("2d"), line = [];
          const { faint, line: strong } = timeline.palette, fill = ink.fillRect.bind(ink);
          ink.fillRect = (x, y, w, h) => { if (w === 1 && h > 30) line.push(x); fill(x, y, w, h); };
          timeline.draw();
          delete ink.fillRect;
          const { view } = timeline, zero = rulerZero(view, timeline.data.steps);
          const ruler = ticks({ from: view.from - zero, to: view.to - zero, scale: view.scale });
          return ruler.every(({ t }) => line.includes(Math.round(view.x(t + zero))));
        })()"""
    )
    assert drawn


def test_a_search_counts_what_the_trace_has(show: Callable[..., Report], monkeypatch: pytest.MonkeyPatch) -> None:
    """All slices of that name, and how many of them are drawn where the report keeps fewer."""
    monkeypatch.setattr(html, "timeline", functools.partial(timeline, budget=40))
    t = TraceBuilder()
    for start in t.steps(20, lasts=4000):
        t.launch("needle_kernel", at=start + 20, lasts=100)
        t.launch("gemm_kernel", at=start + 500, lasts=100)
        t.sync("aten::nonzero", at=start + 600)
    report = show(api.analyze_trace(t.trace()), width=1440, height=900).all_lanes()
    report.page.locator("#lanes").focus()
    report.page.fill("#find", "needle")
    drawn = report.page.evaluate("syncscan.timeline.hits.length")
    assert 0 < drawn < 20
    assert report.page.inner_text("#found") == f"20 in the trace, {drawn} drawn"
