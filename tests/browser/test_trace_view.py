"""TensorBoard's Trace View, offline: it draws the annotated copy, and a click on a finding shows what it is."""

from __future__ import annotations

import json
import re
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.viewer import Watched, browsing, opened
from tests.report.example import story

pytestmark = [pytest.mark.slow, pytest.mark.browser]

_STATE = """() => {
  const view = document.querySelector('tr-ui-timeline-view');
  if (!view || !view.model || !view.trackView) return null;
  const threads = view.model.getAllThreads().filter(t => t.parent.userFriendlyName.includes('syncscan'));
  const selected = [...view.brushingStateController.selection];
  if (!selected.length) return null;
  const shown = view.trackView.viewport.currentDisplayTransform;
  const width = view.trackView.modelTrackContainer_.canvas.width;
  return {
    rows: threads.map(t => t.name),
    arrows: view.model.flowEvents.filter(f => f.category === 'syncscan').length,
    warnings: view.model.importWarnings.filter(w => w.showToUser).map(w => w.message),
    selected: selected.map(s => [s.title, s.args.id, s.start]),
    shown: [shown.xViewToWorld(0), shown.xViewToWorld(width)],
    steps: threads.find(t => t.name === 'steps').sliceGroup.slices.map(s => [s.start, s.end]),
    waiting: document.querySelectorAll('#syncscan-waiting').length,
  };
}"""


@pytest.fixture(scope="module")
def trace_view(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a TensorBoard that `syncscan open` started."""
    pytest.importorskip("torch_tb_profiler")
    trace = tmp_path_factory.mktemp("trace") / "story.json"
    t = story()
    trace.write_text(json.dumps({**t.metadata, "traceEvents": t.events}))
    with opened(trace, "tensorboard") as url:
        yield url


def state(watched: Watched) -> tuple[Any, dict[str, Any]]:
    """Trace View's frame and what it drew, once it has: a machine that does other things takes over half a minute."""
    for _ in range(360):
        watched.page.wait_for_timeout(250)
        for frame in watched.page.frames:
            if frame.url.endswith("/trace_embedding.html") and (drawn := frame.evaluate(_STATE)):
                return frame, drawn
    raise AssertionError(f"nothing was drawn: {watched.errors}")


def test_trace_view_opens_at_the_costliest_sync_and_tells_of_it(browser: Any, trace_view: str) -> None:
    """Its step fills the view of the annotated run, without a warning, an error, or a request to another machine."""
    with browsing(browser, trace_view) as watched:
        frame, drawn = state(watched)
        assert drawn["rows"] == ["findings", "steps", "device 0 idle"]
        assert drawn["arrows"] == 2
        assert drawn["warnings"] == []
        assert drawn["waiting"] == 0
        [(title, _, start)] = drawn["selected"]
        assert re.fullmatch(r"saves [0-9.]+ µs · nonzero", title)
        step = next(s for s in drawn["steps"] if s[0] <= start < s[1])
        assert drawn["shown"] == pytest.approx(step, abs=1e-3)
        panel = frame.locator("tr-ui-a-single-event-sub-view")
        panel.wait_for()
        shown = re.sub(r"\s+", " ", panel.inner_text())
        assert "nonzero" in shown
        for arg in ("rule", "wait", "bubble", "recoverable", "line", "fix"):
            assert re.search(rf"\b{arg}\b", shown), shown
        assert watched.elsewhere == []
        assert watched.errors == []


def test_the_recorded_trace_is_a_run_of_its_own(trace_view: str) -> None:
    """The log folder holds the trace itself beside its annotated copy, each a folder, and both are read."""
    root = trace_view.partition("#")[0]
    runs: list[str] = []
    for _ in range(100):
        with urllib.request.urlopen(f"{root}data/plugin/pytorch_profiler/runs") as answer:
            runs = json.load(answer)["runs"]
        if len(runs) == 2:
            break
        time.sleep(0.2)
    assert runs == ["annotated", "recorded"]
