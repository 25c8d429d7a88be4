"""No report promises that launching another way saves what the projected states don't: every format, every recording.

What a report may promise is projected once more here, by `Analysis.whatif`, which a user can ask.
"""

from __future__ import annotations

import html
import json
import re
import tarfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import pytest

from syncscan import api
from syncscan.errors import UsageError
from syncscan.model.analysis import Analysis
from syncscan.model.duration import duration, range_of, within
from syncscan.model.states import COMPILE, EAGER, REDUCE_OVERHEAD
from syncscan.report import render
from syncscan.report.states import LOSES
from syncscan.report.units import time_and_range
from tests.builder import TraceBuilder
from tests.each import each
from tests.networks import launch_bound, ops, read
from tests.recordings import RECORDINGS, analyzed, large, rendered

ROOT = Path(__file__).parents[2]
TARS = (
    *(ROOT / "benchmarks" / "joint" / "recorded").glob("*.tar"),
    ROOT / "benchmarks" / "pull_requests" / "recorded" / "recordings.tar",
)
ROUNDING = 1.0
"""Two projections of one thing differ by no more, µs."""
_TIME = r"[\d.,]+ (?:ns|µs|ms|s)"
_RANGE = r"[\d.,]+ to [\d.,]+ (?:ns|µs|ms|s)"
_PAIR = re.compile(rf"the step takes ({_TIME}) \(({_RANGE})\) instead of ({_TIME})")
_ALONE = re.compile(rf"(removing them|compiling) alone (?:saves ({_TIME})|gains nothing)")
_STATE = re.compile(
    r"(with its syncs, |syncs removed, |)(as it is|compiled \(reduce-overhead\)|compiled)[ :|]+"
    rf"({_TIME})[ (|]+([\d.,]+ to [\d.,]+)"
)
_ONCE = re.compile(rf"({_TIME}) \([\d.]+%\) if the network is compiled")
_WAYS = {"as it is": "eager", "compiled": "compile", "compiled (reduce-overhead)": "reduce-overhead"}
_LAYER = ("aten::addmm", "aten::gelu")


@dataclass
class Allowed:
    """Savings that a report may promise, as `whatif` projects them; times in µs."""

    analysis: Analysis
    _known: dict[Any, Any] = field(default_factory=dict)

    @cached_property
    def program(self) -> tuple[str, ...]:
        """The ids of the program's own syncs."""
        return tuple(f.id for f in self.analysis.findings if not f.intended)

    @cached_property
    def breaking(self) -> tuple[str, ...]:
        """The ids of those within the network."""
        return self.analysis.states.breaking if self.analysis.states else ()

    def projected(self, launches: str, removed: tuple[str, ...]) -> tuple[float, float, float]:
        """The step without these syncs, launched so, with its range; as it is where no such launch can be had."""
        if (launches, removed) not in self._known:
            try:
                projection = self.analysis.whatif(*(f"id:{name}" for name in removed), launches=launches)
            except UsageError:
                return self.baseline_us, self.baseline_us, self.baseline_us
            self._known[launches, removed] = (projection.predicted_us, *projection.range_us)
        predicted, low, high = self._known[launches, removed]
        return predicted, low, high

    def saved(self, launches: str, removed: tuple[str, ...] = ()) -> float:
        """Return the saving of a step so launched."""
        return self.baseline_us - self.projected(launches, removed)[0]

    @cached_property
    def baseline_us(self) -> float:
        """The step as it is."""
        return self.analysis.whatif(launches="eager").baseline_us

    @cached_property
    def removed_us(self) -> float:
        """Saving of removing the syncs within the network, as every report states it for a sync alone."""
        return self.analysis.whatif(*(f"id:{name}" for name in self.breaking)).saving_us if self.breaking else 0.0

    def best_way(self, removed: bool) -> str:
        """The way with the least launches that the states offer, with the syncs or without."""
        states = self.analysis.states
        assert states is not None
        return next((way for way in (REDUCE_OVERHEAD, COMPILE) if states.state(way, removed)), EAGER)

    @cached_property
    def compiled_us(self) -> float:
        """Saving of compiling the network alone, as well as that can be had."""
        return self.saved(self.best_way(False))

    @cached_property
    def at_once(self) -> float:
        """The most that one of the ways to launch at once saves of the step as it is."""
        return max(0.0, self.compiled_us, self.saved("graph"))


def plain(report: str, kind: str) -> str:
    """The report's words in one line, without markup."""
    if kind == "html":
        report = re.sub(r"<(script|style)\b.*?</\1>", "", report, flags=re.DOTALL)
        report = html.unescape(re.sub(r"<[^>]+>", " ", report))
    if kind == "markdown":
        report = html.unescape(re.sub(r"\\(\W)", r"\1", report))
    return re.sub(r"\s+", " ", report)


def in_words(projected: tuple[float, float, float]) -> tuple[str, str]:
    """Return a projected step and its range as reports write them."""
    us, *limits = projected
    return within(us, (limits[0], limits[1])), range_of((limits[0], limits[1]))


def words_promise_no_more(text: str, allowed: Allowed) -> None:
    """Hold the sentences and tables of one format to the projections."""
    states = allowed.analysis.states
    assert states is not None
    for found in _PAIR.findall(text):
        times = in_words(allowed.projected(allowed.best_way(bool(allowed.program)), allowed.breaking))
        assert found == (*times, duration(allowed.baseline_us))
    for syncs, way, *times in _STATE.findall(text):
        removed = allowed.program if "removed" in syncs else ()
        us, *limits = allowed.projected(_WAYS[way], removed)
        assert tuple(times) == time_and_range(us, (limits[0], limits[1]), allowed.baseline_us)
    for name, promised in _ALONE.findall(text):
        us = allowed.removed_us if name == "removing them" else allowed.compiled_us
        assert promised == (duration(us) if us >= LOSES * allowed.baseline_us else "")
    if "either alone gains nothing" in text:
        assert max(allowed.removed_us, allowed.compiled_us) < LOSES * allowed.baseline_us
    way = allowed.best_way(bool(allowed.program))
    compiled = {
        duration(max(0.0, allowed.saved(way, allowed.program) - allowed.saved(way, others)))
        for others in (tuple(i for i in allowed.program if i != f) for f in allowed.program)
    }
    assert {*_ONCE.findall(text)} <= compiled


def numbers_promise_no_more(document: dict[str, Any], allowed: Allowed) -> None:
    """Hold the JSON report's numbers to the projections."""
    for habit in (h for h in document["habits"] if h["rule"] == "launch-bound" and h["basis"] == "replay"):
        assert habit["recoverable_us"] <= allowed.at_once + ROUNDING
    for remedy in document["remedies"]:
        if remedy["habit"] and remedy["habit"].startswith("launch-bound") and remedy["basis"] == "replay":
            assert remedy["alone_us"] <= allowed.at_once + ROUNDING
        if remedy["launches"]:
            saved = allowed.saved(remedy["launches"], tuple(remedy["findings"]))
            assert remedy["alone_us"] == pytest.approx(saved, abs=ROUNDING)
            assert saved > max(allowed.removed_us, allowed.compiled_us)


def no_promise(document: dict[str, Any], texts: dict[str, str]) -> None:
    """Hold each format of a step without projected states to silence about launching another way."""
    assert {h["basis"] for h in document["habits"] if h["rule"] == "launch-bound"} <= {"upper bound"}
    assert [r for r in document["remedies"] if r["launches"]] == []
    assert [f["id"] for f in document["findings"] if f["once_compiled_us"] is not None] == []
    for text in texts.values():
        assert [p.pattern for p in (_PAIR, _ALONE, _STATE, _ONCE) if p.search(text)] == []


def promises_no_more(analysis: Analysis, report: Callable[[str], str]) -> None:
    """Hold all formats of a report to what is projected."""
    document = json.loads(report("json"))
    texts = {"text": plain(render(analysis, "text", verbose=True), "text")}
    texts |= {kind: plain(report(kind), kind) for kind in ("markdown", "html")}
    if analysis.states is None:
        no_promise(document, texts)
        return
    allowed = Allowed(analysis)
    numbers_promise_no_more(document, allowed)
    compiled = [state for state in analysis.states.each if state.launches != EAGER]
    assert len(_STATE.findall(texts["html"])) == len(compiled)
    for text in texts.values():
        words_promise_no_more(text, allowed)


@each("recording", RECORDINGS, lambda path: path.name, large)
def test_no_report_of_a_recording_promises_more_than_its_states(recording: Path) -> None:
    """Text, JSON, Markdown and HTML, wherever they speak of launches, a compile or a graph."""
    promises_no_more(analyzed(recording), partial(rendered, recording))


@pytest.mark.slow
@pytest.mark.parametrize("archive", TARS, ids=lambda path: path.stem)
def test_nor_does_one_of_the_benchmarks_recordings(archive: Path, tmp_path: Path, subtests: pytest.Subtests) -> None:
    """The promises are of pairs of programs before and after a change, which lie in archives."""
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path, filter="data")
    members = sorted(path for path in tmp_path.rglob("*.gz") if path.is_file())
    assert members
    for member in members:
        with subtests.test(member.name):
            analysis = api.analyze(member)
            promises_no_more(analysis, partial(render, analysis))


def straight() -> Analysis:
    """A network that reads once, between two halves of its layers."""
    return step_of(lambda t, at: ops(t, _LAYER * 75, read(t, ops(t, _LAYER * 75, at)) + 1), lasts=4000)


def outside() -> Analysis:
    """A training step that reads its loss behind the network."""
    return step_of(lambda t, at: read(t, ops(t, _LAYER * 50, at), line=90, function="train", module=""))


def shapes() -> Analysis:
    """A network whose loop asks for the number of matches, so that shapes depend on data."""

    def step(t: TraceBuilder, at: float) -> None:
        for _ in range(10):
            t.exact(at + 4.5, ("net.py", 7, "forward"), module="Net")
            at = ops(t, _LAYER * 5, t.sync("aten::nonzero", at=at) + 1)

    return step_of(step)


def called() -> Analysis:
    """A network whose `forward` calls a function that reads, in a loop."""
    call = ("site-packages/torch/nn/modules/module.py", 1790, "_call_impl")

    def step(t: TraceBuilder, at: float) -> None:
        for _ in range(10):
            t.exact(at + 4.5, ("net.py", 3, "read"), ("net.py", 12, "forward"), call, module="Net")
            at = ops(t, _LAYER * 5, t.sync("aten::item > aten::_local_scalar_dense", at=at) + 1)
        lines = t.metadata["syncscan"]["lines"]
        lines["looped"] = [number for number, frame in enumerate(lines["frames"]) if frame[2] == "forward"]

    return step_of(step)


def compiled() -> Analysis:
    """A step whose network is compiled already."""

    def step(t: TraceBuilder, at: float) -> None:
        with t.op("Torch-Compiled Region: 0/0", at, at + 1500):
            ops(t, _LAYER * 50, at + 1)

    return step_of(step)


def step_of(step: Callable[[TraceBuilder, float], object], lasts: float = 2000) -> Analysis:
    """Four steps that take so many µs each."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=lasts):
        step(t, start + 10.0)
    return api.analyze_trace(t.trace(), step_ms=lasts / 1e3)


@each(
    ("analysis", "compile_alone", "pair"),
    [
        (launch_bound, True, False),
        (lambda: launch_bound(reads=10), False, True),
        (straight, True, True),
        (outside, True, False),
        (shapes, False, True),
        (called, False, True),
        (lambda: launch_bound(kernel_us=1500), False, False),
        (lambda: launch_bound(layers=5), False, False),
        (compiled, False, False),
    ],
    ids=["no_sync", "loop", "straight", "outside", "shapes", "called", "device_bound", "few_launches", "compiled"],
)
def test_a_compile_alone_is_promised_only_where_nothing_keeps_the_network_eager(
    analysis: Callable[[], Analysis], compile_alone: bool, pair: bool
) -> None:
    """A break in a loop leaves nothing to a compile, and removing the sync with it everything."""
    made = analysis()
    promises_no_more(made, partial(render, made))
    document = json.loads(render(made, "json"))
    bound = [h for h in document["habits"] if h["rule"] == "launch-bound"]
    gains = [h["recoverable_us"] for h in bound if h["basis"] == "replay"]
    assert (sum(gains) > 0, any(r["launches"] for r in document["remedies"])) == (compile_alone, pair)
