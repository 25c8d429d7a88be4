"""The functions of the host's time in view: those of the steps' thread, from the program's first one on, bounded."""

from __future__ import annotations

from typing import Any

import pytest

from syncscan import api
from syncscan.model.analysis import Analysis
from syncscan.report import html, timeline_frames
from syncscan.report.timeline import timeline
from tests.builder import TraceBuilder
from tests.report.test_timeline import origin_of, unpack

ITEM = "<built-in method item of Tensor object at {}>"


def functions(analysis: Analysis, budget: int = 100_000) -> list[tuple[Any, ...]]:
    """Return start and length in µs, name, place and owner of each function in the page's data."""
    python = timeline(analysis, budget)["python"]
    columns = unpack(python["start"], delta=True), unpack(python["dur"]), unpack(python["name"])
    return [(a / 1e3, d / 1e3, *python["texts"][n]) for a, d, n in zip(*columns, strict=True)]


def recorded(outside: str = "runpy.py(9): run_path") -> Analysis:
    """Two steps of a program that `outside` starts: a library's function, a module and an op in a function of it."""
    t = TraceBuilder(with_stack=1)
    with t.frame(outside, -90, 3000), t.frame("train.py(3): main", -80, 2990):
        for number, start in enumerate(t.steps(2, lasts=1000)):
            with t.frame("train.py(7): loss", start + 100, start + 900):
                with t.frame("torch/nn/modules/module.py(9): _call_impl", start + 110, start + 300):
                    t.frame("nn.Module: Net_0", start + 120, start + 290)
                with t.frame(ITEM.format(hex(7 + number)), start + 400, start + 500):
                    t.op("aten::item", start + 410, start + 490)
    with t.thread("reader"):
        t.frame("train.py(99): read", 20, 2000)
    return api.analyze_trace(t.trace())


def test_they_begin_with_the_programs_first_function() -> None:
    """The starter and another thread's functions are left out; a built-in method is one over all its objects."""
    analysis = recorded()
    step = analysis.trace.steps[0].ts / 1e3
    origin = origin_of(analysis.trace) / 1e3
    first, *inner = functions(analysis)
    assert first[2:] == ("main", "train.py:3", timeline_frames.PROGRAM)
    assert [(round(a + origin - step), d, *texts) for a, d, *texts in inner[:4]] == [
        (100, 800, "loss", "train.py:7", timeline_frames.PROGRAM),
        (110, 190, "_call_impl", "torch/nn/modules/module.py:9", timeline_frames.LIBRARY),
        (120, 170, "Net_0", "nn.Module", timeline_frames.LIBRARY),
        (400, 100, "item", "built-in method of Tensor object", timeline_frames.LIBRARY),
    ]
    assert len(inner) == 8
    assert len(timeline(analysis)["python"]["texts"]) == 5


@pytest.mark.parametrize(
    "outside", ["threading.py(1): run", "syncscan/capture/runner.py(3): run", "<frozen runpy>(8): _run"]
)
def test_whatever_starts_the_program_is_left_out(outside: str) -> None:
    """A thread's, this profiler's and Python's own functions."""
    assert functions(recorded(outside))[0][2] == "main"


def test_a_library_that_leads_to_nothing_of_the_program_stays() -> None:
    """It would be left out only for what it starts; without a function of the program all is there."""
    t = TraceBuilder(with_stack=1)
    for start in t.steps(2, lasts=1000):
        t.frame("torch/optim/sgd.py(9): step", start + 100, start + 900)
        t.op("aten::add_", start + 200, start + 300)
    assert [name for _, _, name, *_ in functions(api.analyze_trace(t.trace()))] == ["step", "step"]


def test_a_function_that_began_before_the_recording_is_drawn_from_its_begin() -> None:
    """It neither moves the timeline's begin nor lasts beyond its end."""
    analysis = recorded()
    drawn = timeline(analysis)
    start, length, *_ = functions(analysis)[0]
    assert (start, length) == (0, drawn["length"] / 1e3)
    assert drawn["length"] / 1e3 < 2980


def test_a_recording_without_stacks_has_none() -> None:
    """And its page speaks of scopes, ops and calls alone."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=1000):
        t.op("aten::add_", start + 200, start + 300)
    analysis = api.analyze_trace(t.trace())
    assert timeline(analysis)["python"] is None
    assert "by scope, op and call." in html.render(analysis)
    assert "by Python function, scope, op and call." in html.render(recorded())


def test_only_the_longest_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever calls a drawn function is drawn, and the page says from which length on none is missing."""
    monkeypatch.setattr(timeline_frames, "MAX_FRAMES", 4)
    analysis = recorded()
    assert [name for _, _, name, *_ in functions(analysis)] == ["main", "loss", "_call_impl", "loss"]
    assert timeline(analysis)["python"]["least"] == 190_000


def test_only_those_near_the_findings_of_a_big_trace_are_drawn() -> None:
    """As the slices: what reaches into an interval that is drawn."""
    t = TraceBuilder(with_stack=1)
    with t.frame("train.py(3): main", -80, 60_000):
        for start in t.steps(40, lasts=1000):
            with t.frame("train.py(7): loss", start + 100, start + 900):
                t.launch("gemm", at=start + 120, lasts=60)
                t.op("aten::item", start + 410, start + 490)
    analysis = api.analyze_trace(t.trace())
    drawn = timeline(analysis, budget=30)
    inside = [
        any(a < (start + length) * 1e3 and start * 1e3 < b for a, b in drawn["intervals"])
        for start, length, *_ in functions(analysis, budget=30)
    ]
    assert not drawn["whole"]
    assert all(inside)
    assert 2 <= len(inside) < 20


def test_names_are_shown_safely_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hostile name has neither direction marks nor any length."""
    t = TraceBuilder(with_stack=1)
    for start in t.steps(2, lasts=1000):
        t.frame("train.py(3): \u202e" + "x" * 10_000, start + 100, start + 900)
        t.op("aten::add_", start + 200, start + 300)
    name = functions(api.analyze_trace(t.trace()))[0][2]
    assert "\u202e" not in name
    assert len(name) == 200
