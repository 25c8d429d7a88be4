"""One step without the profiler: its host, its device, and a row for each change, with the numbers around it."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace

from syncscan import api
from syncscan.errors import UsageError
from syncscan.model.analysis import Analysis
from syncscan.report import page, step_picture, svg, whatif_report
from syncscan.report.front import front_of
from syncscan.report.phrases import replayed
from syncscan.report.step_picture import StepPicture, between
from syncscan.report.units import within
from tests.builder import TraceBuilder
from tests.each import each
from tests.recordings import RECORDINGS, analyzed, large, name

FOLDER = Path(__file__).parents[2] / "sample_traces"


@cache
def logged() -> Analysis:
    """The recorded step with one sync."""
    return analyzed(FOLDER / "logged.pt.trace.json.gz")


def drawn(analysis: Analysis) -> StepPicture:
    """Return the picture of an analysis that has one."""
    picture = step_picture.of(analysis, front_of(analysis))
    assert picture is not None
    return picture


def test_a_wait_is_on_the_host_and_what_it_costs_behind_it_on_the_device() -> None:
    """The device begins to idle where the host is released; both are named."""
    host, device = drawn(logged()).lanes
    (wait,) = [part for part in host.parts if part.look == "wait"]
    (lost,) = [part for part in device.parts if part.look == "lost"]
    assert wait.texts[0].startswith("item waits ")
    assert lost.texts[0].startswith("idle after it ")
    assert lost.begin == pytest.approx(wait.end, abs=0.01 * host.end)


def test_a_host_bound_step_is_drawn_by_phase_where_it_was_sampled() -> None:
    """In the order of a step, as long together as the step."""
    analysis = analyzed(FOLDER / "stalls" / "logging.json.gz")
    host, device = drawn(analysis).lanes
    assert [part.texts[0].split()[0] for part in host.parts if part.end > part.begin] == [
        "forward",
        "backward",
        "optimizer",
        "in",
    ]
    assert sum(part.end - part.begin for part in host.parts) == pytest.approx(host.end, rel=0.01)
    assert device.texts[0].startswith("busy ")


@each("recording", RECORDINGS, name, large)
def test_lanes_last_as_long_as_the_step_and_rows_have_the_numbers_of_the_changes(recording: Path) -> None:
    """Parts lie in time order inside of the step; each row is the state after a change that was projected."""
    analysis = analyzed(recording)
    first = front_of(analysis)
    picture = step_picture.of(analysis, first)
    if picture is None:
        return
    assert picture.now_us == replayed(analysis.step)
    for lane in picture.lanes:
        assert lane.end == picture.now_us
        assert [p.begin for p in lane.parts] == sorted(p.begin for p in lane.parts)
        assert all(0 <= p.begin <= p.end <= 1.0001 * lane.end for p in lane.parts)
        assert all(0 <= a < b <= lane.end for a, b in lane.work)
    rows = [(c.after_us, (c.after_low_us, c.after_high_us)) for c in first.changes if c.gain is not None]
    assert [(row.us, row.range_us) for row in picture.after] == rows
    text = svg.in_page(picture)
    assert [text.count(f">{row.takes}<") >= 2 for row in picture.after] == [True] * len(rows)


def test_what_lies_between_spans_that_overlap() -> None:
    """Everything from 0 on; nothing between spans that touch."""
    assert between([(1.0, 3.0), (2.0, 4.0), (4.0, 5.0), (7.0, 9.0)], 9.0) == [(0.0, 1.0), (5.0, 7.0)]


def test_a_projection_is_drawn_with_its_own_numbers() -> None:
    """The step after takes what the projection says."""
    projection = logged().whatif("all")
    picture = step_picture.projected(logged(), projection)
    assert picture is not None
    (row,) = picture.after
    assert (row.us, row.range_us) == (projection.predicted_us, projection.range_us)
    assert row.takes == within(projection.predicted_us, projection.range_us)


def test_nothing_is_drawn_where_nothing_is_removed_or_nothing_can_be_replayed() -> None:
    """A page without a picture has its words."""
    projection = logged().whatif("all")
    assert step_picture.projected(logged(), replace(projection, removed=())) is None
    bare = replace(logged(), projector=None)
    assert step_picture.of(bare, front_of(bare)) is None
    with pytest.raises(UsageError, match="nothing to draw"):
        svg.picture(bare)
    assert "No step of this trace can be replayed" in svg.render(bare)


def test_two_recordings_are_drawn_on_one_ruler() -> None:
    """Each with its host and its device, and nothing is hatched."""
    after = analyzed(FOLDER / "logged.kept.pt.trace.json.gz")
    picture = step_picture.measured(logged(), after)
    assert picture is not None
    assert [lane.name for lane in picture.lanes] == ["host before", "device before", "host after", "device after"]
    assert picture.longest_us == replayed(logged().step) > picture.lanes[2].end
    assert "sp-bar" not in svg.in_page(picture)


def test_a_file_holds_its_own_colors_for_light_and_dark() -> None:
    """It is well-formed, and refers to nothing outside."""
    text = svg.render(logged())
    ElementTree.fromstring(text)
    assert "prefers-color-scheme: dark" in text
    assert "var(--" not in text
    assert re.findall(r"(?:href|src)=", text) == []
    assert front_of(logged()).together in text


def test_the_page_of_a_projection_lists_what_it_removes_first() -> None:
    """With the picture above, the sentences of the text report, and no script."""
    analysis = analyzed(FOLDER / "maskedloss.v0.pt.trace.json.gz")
    html = page.drawn(whatif_report.blocks(analysis, analysis.whatif("rule:unique")), "x")
    first, second, *_ = re.findall("<tr>.*</tr>", html.partition("<tbody>")[2])
    assert "✗" in first
    assert "unique-" in first
    assert "✗" not in second
    assert "The step without one sync: " in html
    assert 'class="sp sp-wide"' in html
    assert "<script" not in html


def test_hostile_names_are_text_in_the_page_of_a_projection() -> None:
    """In scopes, which place a finding."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=1000):
        with t.scope("<img src=x onerror=alert(1)>", start + 10, start + 600):
            t.launch("gemm", at=start + 12, lasts=500)
            t.sync("aten::nonzero", at=start + 20)
    analysis = api.analyze_trace(t.trace())
    html = page.drawn(whatif_report.blocks(analysis, analysis.whatif("all")), "x")
    assert "<img" not in html
    assert "&lt;img" in html
