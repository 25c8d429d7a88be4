"""Advice, word for word: what a reader is told to do first, for steps whose answer is plain."""

from __future__ import annotations

import re

import pytest

from syncscan.api import analyze_trace
from tests.builder import TraceBuilder
from tests.whatif.story import Item, analysed, profiled


def advice(plan: list[Item]) -> tuple[str, ...]:
    return profiled(analysed(plan)).step.advice


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (
            [("launch", 5000.0), ("read", 0.0), ("work", 400.0)],
            (
                "Move the read-back in `read1` (aten::item) after the launches of the next step: that saves about N"
                " (8% of the step).",
                "Without it the device is the limit: it works 100% of the step then.",
            ),
        ),
        (
            [("launch", 500.0), ("wait", 0.0), ("work", 4000.0)],
            (
                "Remove the sync in `wait1` (cudaDeviceSynchronize): that saves about N (11% of the step).",
                "Without it the host is the limit: N of its own work a step; launch less next.",
            ),
        ),
    ],
)
def test_what_to_do_first(plan: list[Item], said: tuple[str, ...]) -> None:
    """The place, what it saves (N), its share, and what the limit is then."""
    assert tuple(re.sub(r"[\d.]+ (µs|ms)", "N", sentence) for sentence in advice(plan)) == said


def test_waits_that_pass_on_are_named_together() -> None:
    """Two places, with `and` between them; three, with a comma before."""
    for reads, places in ((1, "`read1` (aten::item) and `wait2` (cudaDeviceSynchronize)"), (2, ", ")):
        plan: list[Item] = [("launch", 500.0), *[("read", 0.0)] * reads, ("wait", 0.0), ("work", 400.0)]
        first = advice(plan)[0]
        assert first.startswith("Remove `")
        assert places in first.partition(" together: ")[0]
        assert first.partition(" together: ")[0].count(" and ") == 1


def test_a_step_without_syncs_that_waits_for_its_host_is_told_so() -> None:
    """There is no sync to blame."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=1000):
        t.launch("kernel", at=start + 10, lasts=300)
        for k in range(100):
            t.op("aten::add", start + 20 + 9 * k, start + 27 + 9 * k)
    assert profiled(analyze_trace(t.trace())).step.advice == (
        "The host is the limit: it launches too slowly for the device (CUDA graphs, torch.compile, a fused optimizer).",
    )


def test_a_step_that_waits_for_its_loader_is_told_so() -> None:
    """Its syncs don't matter."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=1000):
        t.scope("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", start, start + 600)
        t.launch("kernel", at=start + 610, lasts=300)
        t.synchronize(at=start + 612)
    assert profiled(analyze_trace(t.trace())).step.advice == (
        "The input is the limit, not syncs: give the DataLoader more workers, or make a batch cheaper.",
    )
