"""The outlook says, word for word, what limits a step once its syncs are gone, or why that gains nothing."""

from __future__ import annotations

import re

import pytest

from syncscan.api import analyze_trace
from tests.builder import TraceBuilder
from tests.whatif.story import Item, analyzed, profiled


def outlook(plan: list[Item]) -> str:
    result = profiled(analyzed(plan)).step.outlook
    return result.sentence if result else ""


def test_a_busy_device_leaves_nothing_to_gain() -> None:
    """A device without pauses leaves none to be gained."""
    text = outlook([("launch", 3000.0), ("read", 0.0), ("work", 30.0)])
    assert text == "Nothing to gain from removing syncs: the device is busy 99% of the step."


def copying(size: int, memory: str = "Pageable") -> str:
    """Return the outlook of steps of 3 ms with 2 ms of copies to the host."""
    t = TraceBuilder()
    for start in t.steps(6, lasts=3000):
        t.launch("gemm", at=start + 10, lasts=980)
        with t.op("aten::copy_", start + 20, start + 2999):
            t.copy(f"Memcpy DtoH (Device -> {memory})", at=start + 21, lasts=2000, blocks=True)
            t.events[-1]["args"]["bytes"] = size
    result = analyze_trace(t.trace()).step.outlook
    return result.sentence if result else ""


def test_a_step_of_pageable_copies_has_something_to_gain() -> None:
    """Without their size nobody knows how much; with it, the sync that they belong to says it."""
    assert copying(size=0) == (
        "Nothing to gain from removing syncs alone: the device is busy 99% of the step. But 67% of the step is copies "
        "of pageable memory: pinned memory is copied faster (by how much is unknown, since the trace doesn't record "
        "their size)."
    )
    assert "pageable" not in copying(size=8_000_000)
    assert "pageable" not in copying(size=0, memory="Pinned")


def test_a_host_bound_step_is_advised_to_launch_less() -> None:
    """Where the host never waits, syncs aren't the problem."""
    text = outlook([("work", 3000.0), ("launch", 50.0), ("work", 100.0), ("read", 0.0)])
    assert text == (
        "The host is the limit: the problem is launches, not syncs (CUDA graphs, torch.compile, a fused optimizer)."
    )


@pytest.mark.parametrize(
    ("plan", "text"),
    [
        (
            [("launch", 5000.0), ("read", 0.0), ("work", 400.0)],
            "Without it the device is the limit: it would be busy 100% of the step.",
        ),
        (
            [("launch", 500.0), ("wait", 0.0), ("work", 4000.0)],
            "Without it the host is the limit: N of host work per step; then reduce launches.",
        ),
        (
            [("launch", 500.0), ("read", 0.0), ("wait", 0.0), ("work", 400.0)],
            "Without both syncs the device is the limit: it would be busy 100% of the step.",
        ),
        (
            [("launch", 500.0), ("read", 0.0), ("read", 0.0), ("wait", 0.0), ("work", 400.0)],
            "Without all 3 syncs the device is the limit: it would be busy 100% of the step.",
        ),
    ],
)
def test_what_limits_the_step_then(plan: list[Item], text: str) -> None:
    """How many syncs go, and how much device or host works then (N)."""
    assert re.sub(r"[\d.]+ (µs|ms)", "N", outlook(plan)) == text


def test_a_step_without_syncs_that_waits_for_its_host_is_reported() -> None:
    """There is no sync to blame."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=1000):
        t.launch("kernel", at=start + 10, lasts=300)
        for k in range(100):
            t.op("aten::add", start + 20 + 9 * k, start + 27 + 9 * k)
    step = profiled(analyze_trace(t.trace())).step
    assert step.outlook
    assert step.outlook.sentence == (
        "The host is the limit: it launches work too slowly for the device "
        "(CUDA graphs, torch.compile, a fused optimizer)."
    )


def test_a_step_that_waits_for_its_loader_is_reported() -> None:
    """Its syncs don't matter."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=1000):
        t.scope("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", start, start + 600)
        t.launch("kernel", at=start + 610, lasts=300)
        t.synchronize(at=start + 612)
    step = profiled(analyze_trace(t.trace())).step
    assert step.outlook
    assert step.outlook.sentence == (
        "The input is the limit, not syncs: it takes 600 µs of the step. Give the DataLoader more workers, or make a "
        "batch cheaper."
    )
