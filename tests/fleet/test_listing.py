"""Which files make a job."""

from __future__ import annotations

from pathlib import Path

import pytest

from syncscan.errors import TraceNotFound
from syncscan.fleet.listing import find
from tests.fleet.small_ranks import rank_trace, write_ranks


def test_a_folder_and_a_glob_name_the_same_traces(tmp_path: Path) -> None:
    """By rank, 10 behind 2; reports and other JSON beside them are none."""
    for rank in (10, 2):
        rank_trace(rank).write(tmp_path / f"rank{rank}.json")
    (tmp_path / "report.json").write_text('{"schema": "syncscan.analysis/1"}')
    (tmp_path / "numbers.json").write_text("[1, 2]")
    expected = [str(tmp_path / "rank2.json"), str(tmp_path / "rank10.json")]
    assert find(str(tmp_path)) == expected
    assert find(str(tmp_path / "*.json")) == expected
    assert find(f"file://{tmp_path}/*.json") == [f"file://{path}" for path in expected]


def test_traces_in_a_folder_for_each_node(tmp_path: Path) -> None:
    """Found when the folder itself has none."""
    paths = [write_ranks(tmp_path / node, 1)[0] for node in ("node0", "node1")]
    assert find(str(tmp_path)) == paths


def test_nothing_there_is_reported(tmp_path: Path) -> None:
    """It holds for a folder and for a glob."""
    for where in (tmp_path, tmp_path / "*.json"):
        with pytest.raises(TraceNotFound, match="contains no traces"):
            find(str(where))
