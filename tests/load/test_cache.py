"""A trace that is kept beside its file is read instead of it, as long as it is the same file, and never otherwise."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from syncscan import api, load
from syncscan.integrations import annotated_copy
from syncscan.load import cache
from syncscan.model.stage_clock import StageClock
from tests.builder import TraceBuilder


def trace(kernel: str = "gemm") -> TraceBuilder:
    """Two steps with a read-back, frames and a kernel of this name."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=1000):
        with t.scope("mask", start + 10, start + 800), t.frame("train.py(3): loss", start + 11, start + 790):
            t.launch(kernel, at=start + 12, lasts=400)
            t.sync("aten::nonzero", at=start + 20)
    return t


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A trace of which one analysis has kept what it read."""
    api.analyze(trace().write(tmp_path / "t.json"), cache=True)
    return tmp_path / "t.json"


def kept(path: Path) -> Path:
    return path.with_name(f".{path.name}.syncscan-cache")


def refuse(*_: object, **__: object) -> None:
    raise AssertionError("the trace is read")


def test_the_second_time_the_trace_is_not_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """JSON and text are the same; other steps and another scope can be asked for."""
    plain = api.analyze(path)
    scoped = api.analyze(path, step_scope="mask")
    monkeypatch.setattr(load, "load", refuse)
    again = api.analyze(path, cache=True)
    assert (again.to_json(), str(again)) == (plain.to_json(), str(plain))
    assert api.analyze(path, cache=True, step_scope="mask").to_json() == scoped.to_json()


def test_unasked_nothing_is_kept_or_used(tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only who asks for it gets it."""
    other = trace().write(tmp_path / "other.json")
    api.analyze(other)
    assert not kept(other).exists()
    monkeypatch.setattr(load, "load", refuse)
    with pytest.raises(AssertionError, match="is read"):
        api.analyze(path)


def test_a_trace_written_anew_is_read_anew(path: Path) -> None:
    """Also where size and time are what they were: all bytes count."""
    before = path.stat()
    trace("mmeg").write(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    assert "mmeg" in api.analyze(path, cache=True).trace.strings
    assert "mmeg" in api.analyze(path, cache=True).trace.strings


@pytest.mark.parametrize("damage", [b"", b"{}\n{}", b"\xff" * 99, None])
def test_a_damaged_cache_is_none(path: Path, damage: bytes | None) -> None:
    """It is written again, whatever stands there; None cuts it short."""
    intact = kept(path).read_bytes()
    kept(path).write_bytes(intact[:-9] if damage is None else damage)
    assert len(api.analyze(path, cache=True).findings) == 1
    assert kept(path).read_bytes() == intact


def test_another_version_reads_anew(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may read a trace otherwise."""
    monkeypatch.setattr(cache, "__version__", "0.0.1")
    before = kept(path).read_bytes()
    api.analyze(path, cache=True)
    assert kept(path).read_bytes() != before


def test_a_folder_that_nothing_can_be_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The analysis is the same, and says so."""
    path = trace().write(tmp_path / "t.json")
    kept(path).mkdir()
    analysis = api.analyze(path, cache=True)
    assert len(analysis.findings) == 1
    assert "The trace couldn't be cached" in analysis.warnings[0]


def test_a_folder_of_traces_has_no_more_of_them(path: Path) -> None:
    """Cache files are no traces."""
    assert api.find([str(path.parent)]) == [str(path)]


def test_a_clock_is_reported_of_every_stage(path: Path) -> None:
    """In their order, each with the time since the one before."""
    clock = StageClock()
    api.analyze(path, clock=clock)
    stages = ["load", "detect", "attribute", "cost", "whatif", "host", "habits", "states", "remedies"]
    assert [cost.name for cost in clock.costs] == stages
    assert min(cost.seconds for cost in clock.costs) >= 0


def test_what_is_kept_of_an_annotated_copy_says_that_it_is_one(path: Path, tmp_path: Path) -> None:
    """Or the copy's copy would have everything twice."""
    copy = tmp_path / "copy.json"
    copy.write_bytes(b"".join(annotated_copy.annotated(api.analyze(path), str(path))))
    for _ in range(2):
        analysis = api.analyze(copy, cache=True)
        assert b"".join(annotated_copy.annotated(analysis, str(copy))).count(b"syncscan_finding") == 2
