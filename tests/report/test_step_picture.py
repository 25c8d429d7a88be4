"""The step before and after a change is in the pages without a script, with the numbers of the page around it."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from msgspec.structs import replace

from syncscan import api
from syncscan.model.analysis import Analysis
from syncscan.proof import report as proof_report
from syncscan.report import page, step_picture, whatif_report
from syncscan.report.units import duration, within
from tests.builder import TraceBuilder
from tests.proof.test_report import PROOF

FOLDER = Path(__file__).parents[2] / "sample_traces"


@cache
def logged() -> Analysis:
    """The recorded step with one sync."""
    return api.analyze(FOLDER / "logged.pt.trace.json.gz")


def test_a_projection_is_drawn_with_its_own_numbers() -> None:
    """The step after takes what the projection says, not what a single replayed step does."""
    projection = logged().whatif("all")
    drawn = step_picture.projected(logged(), projection)
    assert drawn is not None
    assert (drawn.base_us, drawn.shown.us, drawn.shown.range_us) == (
        projection.baseline_us,
        projection.predicted_us,
        projection.range_us,
    )
    times = f"{duration(projection.baseline_us)} → {within(projection.predicted_us, projection.range_us)} ("
    assert drawn.shown.sentence.startswith(times)


def test_nothing_is_drawn_where_nothing_is_removed_or_nothing_can_be_replayed() -> None:
    """A step that launches another way isn't drawn either: its replay has no launches of the trace."""
    analysis = logged()
    projection = analysis.whatif("all")
    assert step_picture.projected(analysis, replace(projection, removed=())) is None
    assert step_picture.projected(analysis, replace(projection, launches="graph")) is None
    assert step_picture.projected(replace(analysis, projector=None), projection) is None


def test_two_recordings_are_drawn_on_one_ruler() -> None:
    """The longer step is as wide as the ruler, and nothing is hatched: both were recorded."""
    after = api.analyze(FOLDER / "logged.kept.pt.trace.json.gz")
    drawn = step_picture.measured(logged(), after)
    assert drawn is not None
    assert drawn.recorded.end == drawn.length
    assert drawn.shown.lanes.end < drawn.length
    page = step_picture.in_page(drawn)
    assert page is not None
    assert "ba-hatch" not in page["plot"]
    assert page["rows"] == [(f"{lane} {side}", False) for side in ("before", "after") for lane in ("host", "device")]


def test_the_page_of_a_projection_lists_what_it_removes_first() -> None:
    """With the picture above, the sentences of the text report, and no script."""
    analysis = api.analyze(FOLDER / "maskedloss.v0.pt.trace.json.gz")
    html = page.drawn(whatif_report.blocks(analysis, analysis.whatif("rule:unique")), "x")
    first, second, *_ = re.findall("<tr>.*</tr>", html.partition("<tbody>")[2])
    assert "✗" in first
    assert "unique-" in first
    assert "✗" not in second
    assert "The step without one sync: " in html
    assert 'class="ba-plot"' in html
    assert "<script" not in html


def test_a_proof_shows_the_step_that_its_projection_is_of() -> None:
    """Without a trace there is none."""
    picture = step_picture.projected(logged(), logged().whatif("all"))
    assert "The step that was projected" in page.drawn(proof_report.blocks(PROOF, picture), "syncscan prove")
    assert "The step that was projected" not in page.drawn(proof_report.blocks(PROOF), "syncscan prove")


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
