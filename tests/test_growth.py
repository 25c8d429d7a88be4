"""Twice as much of anything in a trace costs at most little more than twice the operations; counted, not timed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from syncscan import api
from syncscan.fleet import document
from syncscan.fleet.join import join
from syncscan.model.rank import RankAnalysis
from syncscan.whatif import gains, groups
from tests.builder import MAIN, TraceBuilder
from tests.fleet.jobs import Step, analyses, traces

pytestmark = pytest.mark.slow

MOST = 2.1
"""Most operations that twice the size may cost, as a factor."""


def of_steps(n: int) -> TraceBuilder:
    """More steps with two syncs of the same places each."""
    t = TraceBuilder()
    for start in t.steps(n, lasts=1000):
        with t.scope("loss", start + 10, start + 800), t.frame("train.py(3): loss", start + 11, start + 790):
            t.launch("gemm", at=start + 12, lasts=300)
            t.sync("aten::nonzero", at=start + 20)
            t.launch("gemm", at=start + 400, lasts=100)
            t.sync("aten::item", at=start + 410)
    return t


def of_places(n: int) -> TraceBuilder:
    """More syncs in two steps, each in a scope and at a line of its own."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=100 * n + 100):
        for k in range(n):
            at = start + 100 * k
            with t.scope(f"scope {k}", at + 5, at + 95), t.frame(f"train.py({k + 1}): f{k}", at + 6, at + 94):
                t.launch("gemm", at=at + 10, lasts=30)
                t.sync("aten::item", at=at + 15)
    return t


def of_launches(n: int) -> TraceBuilder:
    """More launches in each of three steps that end in one sync."""
    t = TraceBuilder()
    for start in t.steps(3, lasts=10 * n + 200):
        for k in range(n):
            with t.op("aten::mm", start + 10 * k + 1, start + 10 * k + 9):
                t.launch(f"gemm {k % 7}", at=start + 10 * k + 2, lasts=5)
        t.sync("aten::item", at=start + 10 * n + 10)
    return t


def of_streams(n: int) -> TraceBuilder:
    """More streams, each with work of its own in every step, and a wait for the device."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=20 * n + 200):
        for k in range(n):
            t.launch("gemm", at=start + 20 * k + 1, lasts=15, stream=7 + k)
        t.sync("aten::item", at=start + 20 * n + 10)
    return t


def of_threads(n: int) -> TraceBuilder:
    """More host threads, each of which launches and waits."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=1000):
        t.launch("gemm", at=start + 1, lasts=50)
        t.sync("aten::item", at=start + 100)
        for k in range(n):
            with t.thread(f"worker {k}", MAIN + 1 + k):
                t.launch("gemm", at=start + 300 + k, lasts=5)
                t.sync("aten::item", at=start + 400 + k)
    return t


def of_events(n: int) -> TraceBuilder:
    """More events that are recorded behind work on streams of their own, and waited for by a stream and by the host."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=100 * n + 100):
        for k in range(n):
            at = start + 100 * k
            t.launch("gemm", at=at + 1, lasts=15, stream=20 + k)
            t.call("cudaEventRecord", at + 10, at + 11)
            t.call("cudaStreamWaitEvent", at + 12, at + 13)
            t.launch("gemm", at=at + 20, lasts=15)
            t.call("cudaEventRecord", at + 30, at + 31)
            t.call("cudaEventSynchronize", at + 32, at + 37)
    return t


SHAPES: dict[Callable[[int], TraceBuilder], int] = {
    of_steps: 24,
    of_places: 16,
    of_launches: 150,
    of_streams: 12,
    of_threads: 12,
    of_events: 24,
}
"""Traces by what doubles, with the count of what doesn't: enough that the fixed work for each trace is a small part."""


def operations(work: Callable[[], object]) -> int:
    """How many functions, Python's and C's, some work calls."""
    count = 0

    def counted(frame: Any, event: str, arg: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


@pytest.fixture(autouse=True)
def few_replays(monkeypatch: pytest.MonkeyPatch) -> None:
    """The numbers of findings up to which each is replayed are lower, so that a small trace is beyond them.

    Up to them replays cost what the square of the number of findings does; from there on no more of them are made.
    """
    monkeypatch.setattr(gains, "WEIGHED", 2)
    monkeypatch.setattr(gains, "REPLAYED", 4)
    monkeypatch.setattr(groups, "WEIGHED", 4)
    monkeypatch.setattr(groups, "PAIRED", 2)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_twice_as_much_costs_little_more_than_twice(shape: Callable[[int], TraceBuilder], tmp_path: Path) -> None:
    """Steps, places that wait, launches, streams, threads, and events on as many streams."""
    few, many = (shape(n).write(tmp_path / f"{n}.json") for n in (SHAPES[shape], 2 * SHAPES[shape]))

    def told(path: Path) -> int:
        return operations(lambda: api.analyze(path).to_json())

    told(few)  # what is imported and remembered of names is so for both
    assert told(many) <= MOST * told(few)


def test_twice_the_ranks_cost_little_more_than_twice() -> None:
    """To be joined, replayed and told as JSON; one of them delays the others."""
    few, many = (analyses(traces([Step(item=True, host=300), *[Step()] * (n - 1)])) for n in (8, 16))

    def told(ranks: list[RankAnalysis]) -> int:
        return operations(lambda: document.render(join(ranks)))

    told(few)
    assert told(many) <= MOST * told(few)
