"""Until when a stored rank holds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from syncscan.errors import TraceUnreadable, UsageError
from syncscan.fleet import store as stored_ranks
from syncscan.fleet.store import Store, read_stored
from syncscan.fleet.worker import outcome_of
from syncscan.model.rank import RankAnalysis, decoded
from tests.fleet.small_ranks import write_ranks


@pytest.fixture(scope="module")
def rank(tmp_path_factory: pytest.TempPathFactory) -> RankAnalysis:
    """Return the rank of some trace."""
    (trace,) = write_ranks(tmp_path_factory.mktemp("job"), 1)
    return decoded(outcome_of(trace, {}, None).rank)


def test_a_rank_is_taken_until_its_trace_changes(tmp_path: Path, rank: RankAnalysis) -> None:
    """It is the same rank then; a trace that was written again is another."""
    (trace,) = write_ranks(tmp_path / "job", 1)
    store = Store(tmp_path / "out", [trace], {})
    store.expect(trace)
    store.put(trace, rank)
    assert Store(tmp_path / "out", [trace], {}).taken() == {trace: rank}
    os.utime(trace, ns=(0, 1))
    assert Store(tmp_path / "out", [trace], {}).taken() == {}


def test_other_options_or_another_version_make_other_ranks(
    tmp_path: Path, rank: RankAnalysis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ranks computed with them aren't reused; the amount of memory changes nothing."""
    (trace,) = write_ranks(tmp_path / "job", 1)
    store = Store(tmp_path / "out", [trace], {"step_ms": 2.0})
    store.expect(trace)
    store.put(trace, rank)
    assert Store(tmp_path / "out", [trace], {"step_ms": 3.0}).taken() == {}
    assert Store(tmp_path / "out", [trace], {"step_ms": 2.0, "max_memory": 9}).taken() == {trace: rank}
    monkeypatch.setattr(stored_ranks, "__version__", "0.0.0")
    assert Store(tmp_path / "out", [trace], {"step_ms": 2.0}).taken() == {}


def test_equal_names_in_two_folders_are_two_files(tmp_path: Path, rank: RankAnalysis) -> None:
    """Each node's `rank0.json` has its own; so have two addresses that differ in their secrets."""
    traces = [write_ranks(tmp_path / node, 1)[0] for node in "ab"]
    traces += [f"https://host/rank0.json?sig={k}" for k in "ab"]
    store = Store(tmp_path / "out", traces, {})
    for trace in traces:
        store.put(trace, rank)
    assert len(list((tmp_path / "out").iterdir())) == 4


def test_a_damaged_file_is_made_anew_and_named_if_it_is_asked_for(tmp_path: Path, rank: RankAnalysis) -> None:
    """Half of one is none."""
    (trace,) = write_ranks(tmp_path / "job", 1)
    store = Store(tmp_path / "out", [trace], {})
    store.expect(trace)
    store.put(trace, rank)
    (file,) = (tmp_path / "out").iterdir()
    assert read_stored(str(file)) == rank
    file.write_bytes(file.read_bytes()[:-200])
    assert Store(tmp_path / "out", [trace], {}).taken() == {}
    with pytest.raises(TraceUnreadable, match=file.name):
        read_stored(str(file))


def test_a_place_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    """Before anything is analyzed."""
    (tmp_path / "out").write_text("mine")
    with pytest.raises(UsageError, match="can't store the ranks"):
        Store(tmp_path / "out", [], {})
    assert (tmp_path / "out").read_text() == "mine"
