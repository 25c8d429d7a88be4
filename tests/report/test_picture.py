"""Pictures: what is drawn is found as plain values, and matplotlib makes a PNG of them."""

from __future__ import annotations

import itertools
import sys

import pytest

from syncscan import api
from syncscan.errors import MissingExtra, UsageError
from syncscan.model.interval import Interval
from syncscan.report import picture
from tests.builder import TraceBuilder
from tests.report.example import HOSTILE, host_bound, hostile
from tests.report.test_annotate import story


def test_a_step_is_drawn_as_scopes_ops_syncs_and_work() -> None:
    """Only outermost slices in the view are drawn, syncs with rule and saving, idle time below its stream."""
    lanes = {
        lane.label: lane.bars for lane in picture.lanes(api.analyze_trace(story().trace()), Interval(0, 3_000_000))
    }
    assert list(lanes) == ["scopes", "ops", "syncs", "stream 7", "idle after syncs"]
    assert [(bar.begin, bar.length, bar.text) for bar in lanes["scopes"]] == [(1_010_000, 890_000, "mask")]
    (sync,) = lanes["syncs"]
    assert sync.text.startswith("nonzero, saves ")
    assert len(lanes["idle after syncs"]) == 1


def test_what_a_picture_shows_is_reported_too() -> None:
    """A notebook gets a PNG, and a sentence for who can't see it."""
    pytest.importorskip("matplotlib")
    drawn = api.analyze_trace(story().trace()).picture()
    assert drawn.png.startswith(b"\x89PNG\r\n")
    assert drawn.alt.startswith("Syncs are the limit · step 2, ")
    assert drawn._repr_mimebundle_()["text/plain"] == drawn.alt


@pytest.mark.parametrize("text", [HOSTILE[0], "$\\frac{$", "漢字"])
def test_hostile_names_are_drawn(text: str, recwarn: pytest.WarningsRecorder) -> None:
    """Neither as formulas, nor with a warning for each letter that the font hasn't."""
    pytest.importorskip("matplotlib")
    t = TraceBuilder()
    with t.step(0, 1000), t.scope(text, 10, 900):
        t.launch("gemm", at=20, lasts=500)
    assert api.analyze_trace(t.trace()).picture().png
    assert picture.render(hostile(text), "host").png
    assert [str(w.message) for w in recwarn if "Glyph" in str(w.message)] == []


def test_an_icicle_hangs_what_is_called_below_its_caller() -> None:
    """Side by side from the caller's begin on, the longest first."""
    lanes, length = picture.icicle(host_bound())
    assert length == sum(bar.length for bar in lanes[0].bars)
    for above, below in itertools.pairwise(lanes):
        for bar in below.bars:
            assert any(a.begin <= bar.begin and bar.begin + bar.length <= a.begin + a.length + 1e-6 for a in above.bars)
    pytest.importorskip("matplotlib")
    assert picture.render(host_bound(), "host").alt.startswith("Host time in a step of ")


@pytest.mark.parametrize(("of", "says"), [("tree", "no picture of 'tree'"), ("host", "has no host samples")])
def test_what_cannot_be_drawn_is_reported(of: str, says: str) -> None:
    """With what to do instead."""
    with pytest.raises(UsageError, match=says):
        api.analyze_trace(story().trace()).picture(of)


def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """It belongs to an extra."""
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtra) as caught:
        api.analyze_trace(story().trace()).picture()
    assert "matplotlib" in caught.value.hint
