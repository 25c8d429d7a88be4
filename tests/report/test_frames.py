"""Frames of findings and of the host's time: the documented columns and dtypes, whatever they hold."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from syncscan.errors import MissingExtra
from syncscan.model.finding import Phase
from syncscan.model.host import UNKNOWN_HOST, Host, HostNode, SampledHost
from syncscan.report.frames import HOST_COLUMNS, JOB_COLUMNS, finding_frame, host_frame
from tests.report.example import typical


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
