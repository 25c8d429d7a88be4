"""An analysis answers by id, as a frame, and by replaying the step."""

from __future__ import annotations

import pytest

from syncscan.model.finding_table import COLUMNS
from syncscan.model.projection import Projection
from syncscan.model.step import Bound
from tests.report.example import analysis, finding, typical


def test_finding_by_id():
    """The one with this id, or a KeyError."""
    a = typical()
    assert a.finding("item-00aa11bb") is a.findings[1]
    with pytest.raises(KeyError):
        a.finding("none-00000000")


def test_the_frame_is_tidy():
    """A row a finding, the documented columns in order, numbers as floats, missing gains as NaN."""
    frame = typical().to_frame()
    assert list(frame.columns) == list(COLUMNS)
    assert frame["wait_us"].dtype == frame["recoverable_us"].dtype == "float64"
    assert frame["recoverable_us"].isna().tolist() == [False, False, True, True]
    assert frame["scope"][0] == "detect > mask"


def test_the_frame_of_nothing_has_its_columns():
    """Code that selects a column works on a clean trace too."""
    frame = analysis().to_frame()
    assert list(frame.columns) == list(COLUMNS)
    assert len(frame) == 0


def test_without_a_replay_whatif_says_so():
    """It isn't guessed."""
    with pytest.raises(RuntimeError, match="without what-if"):
        analysis(finding()).whatif("all")


def test_a_projection_computes_saving_and_speedup():
    """Both against the replay of the step as it was, not against the observed step."""
    p = Projection((), 105.0, 100.0, 80.0, (78.0, 82.0), Bound.DEVICE, 50.0, 80.0)
    assert p.saving_us == 20.0
    assert p.speedup == 1.25
