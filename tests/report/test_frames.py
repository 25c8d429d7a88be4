"""Frames of findings, of jobs and of the host's time: the documented columns and dtypes, whatever they hold."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pandas as pd
import pytest

from syncscan.errors import MissingExtra
from syncscan.model.finding import Phase
from syncscan.model.host import UNKNOWN_HOST, Host, HostNode, SampledHost
from syncscan.report.frames import HOST_COLUMNS, JOB_COLUMNS, finding_frame, fleet_frame, host_frame
from tests.fleet.example import even, job
from tests.report.example import typical


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


def test_the_reference_documents_each_column() -> None:
    """On the page of formats."""
    page = (Path(__file__).parents[2] / "docs/reference/formats.md").read_text()
    messages = {name for line in page.splitlines() if line.startswith("| `") for name in re.findall(r"`(\w+)`", line)}
    assert set(JOB_COLUMNS) - messages == set()


def node(parent: int, us: float, self_us: float) -> HostNode:
    return HostNode(
        parent=parent, function="f", file="a.py", line=3, owner="user", phase=Phase.OTHER, us=us, self_us=self_us
    )


SAMPLED = SampledHost(
    step_us=200.0,
    steps=5,
    samples=100,
    overhead=0.01,
    nodes=(node(-1, 200.0, 50.0), node(0, 150.0, 100.0), node(1, 50.0, 50.0)),
)


def test_a_row_a_node_below_its_caller() -> None:
    """Depth and share follow from the tree."""
    frame = host_frame(Host(sampled=SAMPLED))
    assert frame.depth.tolist() == [0, 1, 2]
    assert frame.share.tolist() == [1.0, 0.75, 0.25]
    assert frame.self_us.sum() == SAMPLED.step_us


def test_dtypes_are_the_documented_ones_also_without_a_row() -> None:
    """So that frames of several traces can be joined."""
    for host in (Host(sampled=SAMPLED), UNKNOWN_HOST):
        matches = {name: str(dtype) for name, dtype in host_frame(host).dtypes.items()}
        assert matches == {name: dtype for name, (dtype, _) in HOST_COLUMNS.items()}


def test_without_pandas_a_frame_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The analysis itself doesn't need it."""
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match="A frame needs pandas") as raised:
        finding_frame(typical())
    assert raised.value.hint == "Run: pip install 'pandas>=2.0,<4'."
