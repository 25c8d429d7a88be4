"""The whole pipeline on built traces: what goes in as a story comes out as a verdict."""

from __future__ import annotations

import gc
import json as stdlib
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import to_builtins

import syncscan
from syncscan import api
from syncscan.api import analyze, analyze_trace
from syncscan.errors import TraceEmpty, TraceNotFound, TraceUnreadable, UsageError
from syncscan.report import json
from tests import registers
from tests.builder import TraceBuilder


def story() -> TraceBuilder:
    """A training step with a read-back that costs, a boolean mask with its backward, and an explicit synchronize."""
    t = TraceBuilder(with_stack=1)
    for at in t.steps(3, lasts=2000):
        t.frame("train.py(20): step", at + 1, at + 1990)
        t.frame("train.py(5): loss", at + 300, at + 700)
        with t.scope("forward", at + 5, at + 290):
            t.launch("gemm", at=at + 10, lasts=400)
        with t.scope("mask", at + 300, at + 700), t.op("aten::index", at + 305, at + 695, sequence=at + 7):
            t.sync("aten::nonzero", at=at + 310, wait=200)
        with t.thread("pt_autograd_0"), t.backward("IndexBackward0", at + 800, at + 1100, sequence=at + 7):
            t.launch("index backward", at=at + 810, lasts=50)
            t.sync("aten::nonzero", at=at + 815)
        with t.scope("log", at + 1200, at + 1600):
            t.launch("loss", at=at + 1201, lasts=100)
            t.sync("aten::item > aten::_local_scalar_dense", at=at + 1210)
        t.synchronize(at=at + 1800)
    return t


def test_golden(golden: Callable[[str, str], None]):
    """The measured part of the story equals the golden file, whatever words the rules use."""
    analysis = analyze_trace(story().trace())
    matches = [to_builtins(f.without_evidence) for f in analysis.findings]
    measured = "op_stack call scope source phase thread count per_step wait_us bubble_us".split()
    stored = sorted(({k: f[k] for k in measured} for f in matches), key=lambda f: (f["wait_us"], f["bubble_us"]))
    s = analysis.step
    step = {"observed_us": s.observed_us, "wait_us": s.wait_us, "device_busy_us": s.device_busy_us, "bound": s.bound}
    golden("analysis.json", stdlib.dumps({"step": step, "findings": stored}, indent=2) + "\n")


def test_the_story_is_reported():
    """Each sync is found once, in its scope and phase; nothing else is."""
    findings = analyze_trace(story().trace()).findings
    messages = {(f.op, f.scope, f.phase.value) for f in findings}
    assert messages == {
        ("aten::index", ("mask",), "forward"),
        ("IndexBackward0", ("mask",), "backward"),
        ("aten::item", ("log",), "other"),
        ("", (), "other"),
    }
    assert all(f.per_step == 1 for f in findings)


def test_analyzing_twice_gives_the_same():
    """No hidden state, no dependence on order."""
    trace = story().trace()
    assert json.render(analyze_trace(trace)) == json.render(analyze_trace(trace))


def test_the_package_has_it(tmp_path: Path):
    """`syncscan.analyze(path)` is the same pipeline."""
    path = story().write(tmp_path / "a.pt.trace.json.gz")
    assert [f.id for f in syncscan.analyze(path).findings] == [f.id for f in analyze_trace(story().trace()).findings]


@pytest.mark.usefixtures("clear_registers")
def test_the_thread_that_asked_runs_as_before(tmp_path: Path):
    """isal, which unpacks a trace, leaves wide registers in use; what comes after it has cleared them."""
    analyze(story().write(tmp_path / "a.pt.trace.json.gz"))
    assert registers.upper_in_use() == 0


@pytest.mark.parametrize("before", [True, False])
def test_no_garbage_is_collected_meanwhile_and_as_before_afterwards(before: bool, monkeypatch: pytest.MonkeyPatch):
    """However it was set, and if an analysis fails too."""
    seen = []

    def fails(*_: object) -> None:
        seen.append(gc.isenabled())
        raise UsageError("no")

    monkeypatch.setattr(api, "detect", fails)
    (gc.enable if before else gc.disable)()
    try:
        with pytest.raises(UsageError):
            analyze_trace(TraceBuilder().trace())
        assert (seen, gc.isenabled()) == ([False], before)
    finally:
        gc.enable()


def test_what_cannot_be_read(tmp_path: Path):
    """Missing, empty and foreign files raise errors that name the file."""
    empty, foreign = tmp_path / "empty.json", tmp_path / "foreign.json"
    empty.write_bytes(b"")
    foreign.write_bytes(b"this is no trace")
    for path, error in ((tmp_path / "none.json", TraceNotFound), (empty, TraceEmpty), (foreign, TraceUnreadable)):
        with pytest.raises(error, match=path.name):
            analyze(path)


@pytest.mark.parametrize(
    ("built", "text"),
    [
        (TraceBuilder(vendor="none"), "No device events"),
        (TraceBuilder(), "No steps"),
    ],
)
def test_what_a_trace_lacks_is_reported(built: TraceBuilder, text: str):
    """A result with a warning, not an error."""
    built.op("aten::add", 0, 5)
    if built.vendor != "none":
        built.launch(at=1, lasts=5)
    assert any(text in w for w in analyze_trace(built.trace()).warnings)


@pytest.mark.parametrize(("vendor", "expected"), [("cuda", 1), ("none", 0)])
def test_what_a_capture_noted_is_reported(vendor: str, expected: int) -> None:
    """Whoever reads the report needn't have seen the capture. Of a step without a device there is nothing to note."""
    t = TraceBuilder(vendor=vendor, syncscan={"notes": ["CUPTI stays attached."]})
    for start in t.steps(2, lasts=1000):
        t.op("aten::add", start, start + 5)
        if vendor != "none":
            t.launch(at=start + 1, lasts=500)
    assert analyze_trace(t.trace()).warnings.count("CUPTI stays attached.") == expected
