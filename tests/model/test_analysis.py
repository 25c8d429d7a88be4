"""An analysis answers by id, as a frame, and by replaying the step."""

from __future__ import annotations

import pytest

from syncscan import api
from syncscan.errors import UsageError
from syncscan.model.finding import Finding
from syncscan.model.projection import Projection
from syncscan.model.step import Bound
from syncscan.report import fragment, html, json, render
from syncscan.report.frames import FINDING_COLUMNS, finding_frame
from tests.builder import TraceBuilder
from tests.report.example import UNPROJECTED, analysis, finding, typical


def test_finding_by_id():
    """The one with this id, or a KeyError."""
    a = typical()
    assert a.finding("item-00aa11bb") is a.findings[1]
    with pytest.raises(KeyError):
        a.finding("none-00000000")


def test_the_frame_is_tidy():
    """A row a finding, the documented columns in order, numbers as floats, missing gains as NaN."""
    frame = finding_frame(typical())
    assert list(frame.columns) == list(FINDING_COLUMNS)
    assert frame["wait_us"].dtype == frame["recoverable_us"].dtype == "float64"
    assert frame["recoverable_us"].isna().tolist() == [False, False, True, True]
    assert frame["scope"][0] == "detect > mask"


def test_the_frame_of_nothing_has_its_columns():
    """Code that selects a column works on a clean trace too."""
    frame = finding_frame(analysis())
    assert list(frame.columns) == list(FINDING_COLUMNS)
    assert len(frame) == 0


@pytest.mark.parametrize("findings", [(), (finding(),), (finding(**UNPROJECTED, source=None),)])
def test_the_frame_has_the_documented_dtypes(findings: tuple[Finding, ...]):
    """Also without findings, gains or lines: code that sums or compares a column needs no case for them."""
    frame = finding_frame(analysis(*findings))
    assert {name: str(dtype) for name, dtype in frame.dtypes.items()} == {
        n: dtype for n, (dtype, _) in FINDING_COLUMNS.items()
    }


def test_an_analysis_shows_itself_in_every_format():
    """Each method gives what the renderer of that name gives; printing gives the text report, and a notebook both."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=1000):
        t.sync("aten::nonzero", at=start + 10, wait=100)
    a = api.analyze_trace(t.trace())
    assert a.to_html() == html.render(a)
    assert a.to_json() == json.render(a)
    assert a.to_markdown() == render(a, "markdown")
    assert str(a) == render(a, "text")
    assert a._repr_mimebundle_() == {"text/html": fragment.render(a), "text/plain": render(a, "text")}
    assert repr(a).startswith("<Analysis of 'built.pt.trace.json': 1 findings")
    assert a.__rich_repr__()[1:] == [("findings", 1), ("bound", a.step.bound.value)]


def test_an_analysis_made_by_hand_displays_itself():
    """As one that was read."""
    a = analysis(finding())
    assert str(a) == render(a, "text")
    assert len(a.to_frame()) == 1


def test_what_can_t_be_replayed_says_so():
    """A trace of a CPU has an analysis, and no step to replay."""
    t = TraceBuilder(vendor="none")
    for start in t.steps(2, lasts=100):
        t.op("aten::mm", start + 1, start + 50)
    a = api.analyze_trace(t.trace())
    assert not a.replayable
    with pytest.raises(UsageError, match="contains no device work"):
        a.whatif("all")


def test_without_a_replay_whatif_says_so():
    """It isn't guessed."""
    with pytest.raises(RuntimeError, match="without what-if"):
        analysis(finding()).whatif("all")


def test_a_projection_computes_saving_and_speedup():
    """Both against the replay of the step as it was, not against the observed step."""
    p = Projection((), 105.0, 100.0, 80.0, (78.0, 82.0), Bound.DEVICE, 50.0, 80.0)
    assert p.saving_us == 20.0
    assert p.speedup == 1.25
