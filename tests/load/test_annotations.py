"""The name and place of a range tell its kind where its category doesn't."""

from __future__ import annotations

import json

import pytest

from syncscan import api
from syncscan.model.trace import Category, Trace
from tests.builder import TraceBuilder
from tests.load import reference

BEFORE_1_10 = {
    "cpu_op": "Operator",
    "user_annotation": "Operator",
    "cuda_runtime": "Runtime",
    "kernel": "Kernel",
    "gpu_memcpy": "Memcpy",
}
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def training() -> TraceBuilder:
    """Three steps with a loader, a scope, a read-back and an optimizer."""
    t = TraceBuilder()
    for start in t.steps(3, lasts=10_000):
        t.scope(LOADER, start + 10, start + 4_000)
        with t.scope("loss", start + 4_100, start + 9_000):
            t.launch("gemm", at=start + 4_200, lasts=3_000)
            t.sync("aten::item > aten::_local_scalar_dense", at=start + 4_300)
        with (
            t.scope("Optimizer.step#Adam.step", start + 9_100, start + 9_900),
            t.op("aten::add_", start + 9_200, start + 9_300),
        ):
            t.launch("adam", at=start + 9_210, lasts=10)
    return t


def written_before_annotations(t: TraceBuilder) -> Trace:
    """The trace with the categories of torch 1.8 and 1.9."""
    events = [{**event, "cat": BEFORE_1_10.get(event.get("cat", ""), event.get("cat"))} for event in t.events]
    return reference.parse(json.dumps({**t.dict(), "traceEvents": events}).encode(), "old.json")


def scopes(trace: Trace) -> list[str]:
    """The names of all annotations, each once."""
    return sorted({trace.name(row) for row in trace.rows_of(Category.ANNOTATION)[0].tolist()})


def test_torch_1_9_gives_the_same_findings_ids_and_habits() -> None:
    """It calls steps, loaders, optimizers and the program's own scopes ops."""
    today, then = api.analyze_trace(training().trace()), api.analyze_trace(written_before_annotations(training()))
    assert [(f.id, f.where.scope, f.per_step) for f in then.findings] == [
        (f.id, f.where.scope, f.per_step) for f in today.findings
    ]
    assert [h.rule for h in then.habits] == [h.rule for h in today.habits]
    assert then.step == today.step
    assert scopes(then.trace) == scopes(today.trace)


@pytest.mark.parametrize(
    ("name", "sequence", "inside"),
    [
        ("detach", None, ""),
        ("Swish", 7, ""),
        ("SwishBackward", None, ""),
        ("custom::op", None, ""),
        ("part", None, "aten::add"),
    ],
)
def test_what_is_named_or_placed_like_an_op_stays_one(name: str, sequence: int | None, inside: str) -> None:
    """A node of autograd's graph is followed by it, and no scope of a program lies in one of torch's own ops."""
    t = training()
    if inside:
        t.op(inside, 40_000, 40_100)
    t.op(name, 40_010, 40_090, sequence)
    assert name not in scopes(written_before_annotations(t))


def test_today_s_categories_count_but_for_torch_s_own_names() -> None:
    """A step's mark is one, whatever a writer calls it; an op without a namespace stays an op."""
    t = training()
    t.op("mine", 40_000, 40_100)
    t.op("ProfilerStep#9", 41_000, 42_000)
    trace = t.trace()
    assert "mine" not in scopes(trace)
    assert "ProfilerStep#9" in scopes(trace)
    assert [step.number for step in trace.steps] == [2, 3, 4, 9]
