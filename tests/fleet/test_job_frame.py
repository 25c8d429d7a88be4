"""A job's frame: a row for each rank, step and finding, in the documented columns."""

from __future__ import annotations

import importlib

import pandas as pd

from syncscan.report.frames import JOB_COLUMNS, fleet_frame
from tests.fleet.example import even, job


def test_it_has_a_row_for_each_rank_step_and_finding() -> None:
    """Two findings on the rank that is late, one on each other, in each of three steps."""
    frame = fleet_frame(job(4))
    assert len(frame) == 3 * (2 + 1 + 1 + 1)
    assert {name: str(kind) for name, kind in frame.dtypes.items()} == {
        n: dtype for n, (dtype, _) in JOB_COLUMNS.items()
    }
    late = frame[frame["id"] == "item-01c248f7"]
    assert late[["rank", "step", "late_us", "late_by", "job_gain_us"]].values.tolist() == [
        [0, step, 700.0, "sync", 700.0] for step in range(3)
    ]
    assert frame[frame["rank"] == 2]["late_us"].tolist() == [0.0] * 3


def test_a_rank_without_findings_has_a_row_a_step() -> None:
    """So that what is asked of ranks and steps is asked of all."""
    frame = fleet_frame(even(4))
    assert len(frame) == 12
    assert frame["id"].isna().all()


def test_a_job_without_steps_has_the_columns() -> None:
    """With their types."""
    frame = fleet_frame(job(2, 0))
    assert len(frame) == 0
    assert str(frame["line"].dtype) == "Int64"


def test_a_job_that_was_analyzed_makes_its_own_frame() -> None:
    """`Fleet.to_frame()` is the same frame; the room that joins jobs hands it in."""
    assert importlib.import_module("syncscan.fleet")
    pd.testing.assert_frame_equal(job().to_frame(), fleet_frame(job()))
