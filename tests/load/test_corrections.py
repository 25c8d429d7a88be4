"""Errors that writers are known to make are corrected."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import pytest

from syncscan import api
from syncscan.api import analyze_trace
from syncscan.load import reader
from syncscan.load.corrections import with_backslashes
from syncscan.load.valid_json import ValidText
from syncscan.model.step import Bound
from syncscan.model.trace import Category, Trace
from tests.builder import MAIN, TraceBuilder
from tests.each import each
from tests.load import reference
from tests.load.reference import parse

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
    assert [(f.id, f.scope, f.per_step) for f in then.findings] == [(f.id, f.scope, f.per_step) for f in today.findings]
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


def told(begin: float, end: float, *, op: int = 2, tid: int = MAIN, correlation: int = 7) -> Trace:
    """An op from 100 to 200 µs in an outer one, and a call that names one of them by its id."""
    t = TraceBuilder()
    t.op("aten::item", 98, 202)
    t.op("aten::_local_scalar_dense", 100, 200)
    args = {"External id": op, "correlation": correlation}
    t.event(
        ph="X", cat="cuda_runtime", name="hipMemcpyWithStream", pid=MAIN, tid=tid, ts=begin, dur=end - begin, args=args
    )
    return t.trace()


def call(trace: Trace) -> tuple[float, float, list[str]]:
    """When the call begins and ends, µs, and what is around it."""
    s = trace.slices
    row = trace.where(lambda name: name == "hipMemcpyWithStream", *range(4)).item()
    return s.ts.item(row) / 1e3, s.end.item(row) / 1e3, [trace.name(r) for r in trace.ancestors(row)]


INSIDE = ["aten::item", "aten::_local_scalar_dense"]


@pytest.mark.parametrize(
    ("begin", "end", "moved"),
    [
        (110, 190, (110, 190)),
        (110, 203, (110, 200)),
        (97, 190, (100, 190)),
        (95, 205, (100, 200)),
        (110, 220, (110, 200)),
    ],
)
def test_a_call_a_few_us_outside_is_cut_to_its_op(begin: float, end: float, moved: tuple[float, float]) -> None:
    """At either end or both."""
    assert call(told(begin, end)) == (*moved, INSIDE)


@pytest.mark.parametrize(
    ("begin", "end", "args"),
    [
        (110, 221, {}),
        (79, 190, {}),
        (110, 203, {"op": 9}),
        (110, 203, {"tid": MAIN + 1}),
        (110, 203, {"correlation": 2}),
    ],
)
def test_what_isnt_surely_the_ops_stays_where_it_is(begin: float, end: float, args: dict[str, int]) -> None:
    """Beside it or far outside, of another op or thread, or with its correlation for an id, as before torch 2.6."""
    assert call(told(begin, end, **args))[:2] == (begin, end)


@pytest.mark.parametrize("late", [-3.0, 0.0, 3.0])
def test_a_read_back_is_one_wherever_its_call_lies(late: float) -> None:
    """The rule is one, and the host's parts add up to the step."""
    t = TraceBuilder(vendor="rocm")
    for start in t.steps(4, lasts=2000):
        for k in range(20):
            with t.op("aten::linear", start + 10 + 25 * k, start + 30 + 25 * k):
                t.launch("gemm", at=start + 12 + 25 * k, lasts=75)
        end = t.free_at() + 10
        t.op("aten::item", start + 520, end + 4)
        t.op("aten::_local_scalar_dense", start + 522, end + 2)
        t.call("hipMemcpyWithStream", start + 522 + late, end + 2 + late, kind="2", bytes=8)
        t.events[-1]["args"]["External id"] = t._external
        t._work("gpu_memcpy", "Memcpy DtoH (Device -> Host)", end - 8, 2, 7, 0, bytes=8)
    analysis = api.analyze_trace(t.trace())
    assert [f.rule for f in analysis.findings] == ["item"]
    counted = analysis.host_time.counted
    assert counted is not None
    assert counted.step_us == pytest.approx(analysis.step.observed_us, rel=0.01)


FILES = [
    r"D:\work\train.py",
    r"D:\tools\net\run.py",
    r"C:\new\readme\backup\fit.py",
    r"C:\Users\me\project\utils\train.py",
    r"torch\nn\modules\module.py",
    r"\\server\share\train.py",
]


def written(file: str, quoted: str) -> bytes:
    """A trace with one frame of that file around a wait, its name as it stands in the text."""
    t = TraceBuilder(with_stack=1)
    for start in t.steps(2, lasts=1000):
        with t.frame("PLACE(12): train_step", start + 1, start + 900):
            t.launch("gemm", at=start + 2, lasts=300)
            t.sync("aten::item", at=start + 10)
    return t.json().replace(b"PLACE", quoted.encode())


def frames(trace: Trace) -> set[str]:
    return {trace.strings[number] for number in trace.frames.name.tolist()}


@pytest.mark.parametrize("file", FILES)
@each("piece", [1 << 20, 300])
def test_a_path_written_unescaped_is_whole(file: str, piece: int) -> None:
    """Whether JSON knows what stands behind its backslashes, or only some of it, or nothing."""
    trace = reader.read(io.BytesIO(written(file, file)), "t.json", piece)
    assert frames(trace) == {f"{file}(12): train_step"}


@pytest.mark.parametrize("file", FILES)
def test_a_path_written_escaped_stays_as_it_is(file: str) -> None:
    """Torch of today writes it so, if not with slashes."""
    text = written(file, file.replace("\\", "\\\\"))
    assert frames(reader.read(io.BytesIO(text), "t.json")) == frames(parse(text)) == {f"{file}(12): train_step"}


def test_both_readers_read_a_path_whose_escapes_are_all_valid() -> None:
    """Its text is valid JSON: a tab, a newline and a carriage return stand where backslashes were."""
    text = written("", r"D:\tools\net\run.py")
    assert (
        frames(reader.read(io.BytesIO(text), "t.json"))
        == frames(parse(text))
        == {r"D:\tools\net\run.py(12): train_step"}
    )


def test_a_repaired_trace_has_the_path() -> None:
    """Other readers, which know nothing of such paths, see it then."""
    text = b"".join(ValidText(io.BytesIO(written("", r"D:\work\train.py"))).document())
    assert rb'"D:\\work\\train.py(12): train_step"' in text


def test_other_names_stay_as_they_are() -> None:
    """Only a frame's file has lost backslashes."""
    for name in ("a\tb", "<built-in method x>", "f.py(3): a\tb", "nn.Module: Net_0"):
        assert with_backslashes(name) == name


def launching(kernels: int = 40, steps: int = 6) -> TraceBuilder:
    """Steps of 1 ms whose kernels take 800 µs, one after the other."""
    t = TraceBuilder()
    for start in t.steps(steps, lasts=1000):
        for k in range(kernels):
            t.launch("gemm", at=start + 10 + 20 * k, lasts=800 / kernels)
    return t


def kernels_of(t: TraceBuilder) -> Iterator[dict[str, Any]]:
    return (event for event in t.events if event.get("cat") == "kernel")


def noted(trace: Trace, text: str) -> bool:
    return any(text in warning for warning in trace.info.warnings)


def test_work_that_covers_many_later_ones_ends_where_the_next_one_begins() -> None:
    """Two of 240 kernels last 1.6 s: the steps, their bound and the device's end stay those of the others."""
    t = launching()
    for number, event in enumerate(kernels_of(t)):
        event["dur"] = 1_600_000 if number in (50, 150) else event["dur"]
    trace = t.trace()
    assert noted(trace, "2 device records have a duration (up to 1.60 s) that covers many later ones")
    usual, analysis = analyze_trace(launching().trace()), analyze_trace(trace)
    assert analysis.step.bound is usual.step.bound is Bound.HOST
    assert analysis.step.observed_us == pytest.approx(usual.step.observed_us, rel=0.01)


@pytest.mark.parametrize("few", [False, True])
def test_a_stream_whose_work_often_overlaps_is_left_as_it_is(few: bool) -> None:
    """Another backend may run it so: that is reported, not repaired. Nor is an overlap with the next few."""
    t = launching()
    for number, event in enumerate(kernels_of(t)):
        event["dur"] = (100 if number % 40 == 0 else 20) if few else 400
    assert not noted(t.trace(), "later ones")


def test_branches_of_one_graph_launch_may_run_beside_each_other() -> None:
    """Its kernels share the launch's number."""
    t = launching()
    for number, event in enumerate(kernels_of(t)):
        event["args"]["correlation"] = 5000 + number // 40
        event["dur"] = 600 if number == 40 else event["dur"]
    assert not noted(t.trace(), "later ones")


def test_work_without_times_is_left_out() -> None:
    """It begins at 0 and lasts 0, long before its launch; then the clocks aren't to blame."""
    t = launching()
    with t.step(6000, 7000):
        t.launch("gemm", at=6100, lasts=10)
    for number, event in enumerate(kernels_of(t)):
        if number >= 40:
            event.update(ts=0, dur=0)
    trace = t.trace()
    assert noted(trace, "201 device records have no times (begin and length 0): left out.")
    reason = " ".join(analyze_trace(trace).integrity.sentences())
    assert "clocks" not in reason
    assert "launches have device work in the trace" in reason


def test_work_of_no_length_at_the_begin_of_all_is_work() -> None:
    """A copy too short for the profiler's clock may begin with the trace."""
    t = launching(steps=2)
    first = next(kernels_of(t))
    first.update(ts=0, dur=0)
    assert not noted(t.trace(), "no times")
