"""A CUDA graph can hold parts of each phase of a step, up to what breaks it."""

from __future__ import annotations

import pytest

from syncscan import api
from tests.builder import TraceBuilder

STEP = 6000


def habit(builder, rule="launch-bound"):
    """The habit of this rule that the trace shows."""
    return {h.rule: h for h in api.analyze_trace(builder.trace()).habits}[rule]


def training(behind_forward=lambda t, at: None, pause=0, closure=False):
    """Steps of 110 launches forward, 130 backward on autograd's thread and 60 of the optimizer, each 12 µs apart."""
    t = TraceBuilder(syncscan={"unprofiled_step_us": float(STEP)})
    for start in t.steps(3, lasts=STEP):
        if closure:
            t.scope("Optimizer.step#Adam.step", start + 2, start + STEP - 100)
        for k in range(110):
            t.launch("forward", at=start + 5 + 12 * k, lasts=1)
        behind_forward(t, start + 1325)
        begin = start + 1340 + pause
        with t.thread("pt_autograd_0", 101):
            t.op("autograd::engine::evaluate_function: AddBackward0", begin, begin + 12 * 130)
            for k in range(130):
                t.launch("backward", at=begin + 1 + 12 * k, lasts=1)
        begin += 12 * 130 + 20
        if not closure:
            t.scope("Optimizer.step#Adam.step", begin, begin + 12 * 60)
        for k in range(60):
            t.launch("update", at=begin + 1 + 12 * k, lasts=1)
    return t


def test_a_pause_in_one_step_of_three_is_the_machines():
    """The system took the thread off its processor: nothing of the program stands in the way of a graph."""
    t = TraceBuilder(syncscan={"unprofiled_step_us": 3000.0})
    for number, start in enumerate(t.steps(3, lasts=3000)):
        for k in range(200):
            t.launch("tiny", at=start + 5 + 12 * k + (300 if number == 1 and k >= 120 else 0), lasts=1)
    flagged = habit(t)
    assert flagged.splits == ()
    assert flagged.evidence[0].startswith("200 launches")


def test_a_sync_between_forward_and_backward_is_named_with_its_finding():
    """It counts once per step, though it has two calls, and points to the finding."""

    def read(t, at):
        t.op("aten::item", at, at + 14)
        t.copy("Memcpy DtoH (Device -> Pinned)", at=at + 1)
        t.call("cudaStreamSynchronize", at + 8, at + 13)

    builder = training(read)
    analysis = api.analyze_trace(builder.trace())
    flagged = habit(builder)
    (split,) = flagged.splits
    assert (split.finding, split.per_step) == (analysis.findings[0].id, 1)
    assert split.what == analysis.findings[0].title


@pytest.mark.parametrize(
    ("between", "pause", "splitter", "us"),
    [
        (
            lambda t, at: t.scope("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at, at + 5),
            0,
            "the loader",
            0,
        ),
        (lambda t, at: None, 600, "other work of the host, before autograd::engine", 600),
    ],
    ids=["a loader", "Python"],
)
def test_a_loader_and_other_work_split_a_step(between, pause, splitter, us):
    """Neither is a launch, and both have to run between two graphs."""
    (split,) = habit(training(between, pause)).splits
    assert split.what.startswith(splitter)
    assert split.us == pytest.approx(us, abs=40)
    assert (split.per_step, split.finding, split.source) == (1, "", None)


def test_what_the_optimizers_loop_launches_is_reported_once():
    """250 launches of an optimizer that goes through its parameters are a habit of its own, no graph's."""
    t = TraceBuilder(syncscan={"unprofiled_step_us": 6000.0})
    for start in t.steps(3, lasts=6000):
        for k in range(150):
            t.launch("forward", at=start + 5 + 12 * k, lasts=1)
        t.scope("Optimizer.step#Adam.step", start + 1810, start + 4900)
        for k in range(250):
            t.launch("update", at=start + 1815 + 12 * k, lasts=1)
    analysis = api.analyze_trace(t.trace())
    habits = {h.rule: h for h in analysis.habits}
    assert habits["launch-bound"].evidence[0].startswith("150 launches")
    assert habits["optimizer-loop"].evidence[0].startswith("250 kernels")
    gains = [habits[rule].recoverable_us for rule in ("launch-bound", "optimizer-loop")]
    assert sum(gains) <= 6000


def test_a_closure_is_no_optimizer_that_loops():
    """Lightning's step lies within `Optimizer.step`: its 400 launches are the network's."""
    t = TraceBuilder(syncscan={"unprofiled_step_us": 6000.0})
    for start in t.steps(3, lasts=6000):
        t.scope("Optimizer.step#Adam.step", start + 2, start + 5900)
        for k in range(200):
            t.launch("forward", at=start + 5 + 12 * k, lasts=1)
        with t.thread("pt_autograd_0", 101):
            for k in range(200):
                t.launch("backward", at=start + 2410 + 12 * k, lasts=1)
    assert "optimizer-loop" not in {h.rule for h in api.analyze_trace(t.trace()).habits}
