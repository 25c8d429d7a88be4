"""Each kind of missing data is detected, names the withheld numbers, and isn't reported where nothing is missing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from syncscan.api import analyze, analyze_trace
from syncscan.errors import UsageError
from syncscan.facts.integrity import integrity_of
from syncscan.model.step import SOUND, Bound
from tests.builder import TraceBuilder


def whole(launches: int = 20, **metadata: object) -> TraceBuilder:
    """Three steps of 1000 µs with some kernels and a read-back: nothing is missing."""
    t = TraceBuilder(**metadata)  # type: ignore[arg-type]
    for start in t.steps(3, lasts=1000):
        for k in range(launches):
            t.launch(at=start + 5 * k, lasts=4)
        t.sync("aten::item", at=start + 200)
    return t


def sentences(t: TraceBuilder) -> tuple[str, ...]:
    return integrity_of(t.trace()).sentences()


def test_a_whole_trace_lacks_nothing() -> None:
    """Every launch has its work, the clocks agree, and each stream does one thing after the other."""
    assert integrity_of(whole().trace()) == SOUND


def test_without_device_work_no_wait_is_measured() -> None:
    """A wait is what the host spends while work runs that isn't there."""
    t = TraceBuilder()
    with t.step(0, 1000):
        t.call("cudaStreamSynchronize", 10, 900)
    analysis = analyze_trace(t.trace())
    assert "no device work: the work that the host waited for is missing" in analysis.step.reason
    assert (analysis.step.bound, analysis.step.waits_withheld, analysis.step.wait_us) == (Bound.UNKNOWN, True, 0.0)


def test_a_trace_of_a_cpu_is_called_one() -> None:
    """Nothing of a device was recorded, so nothing says that anything waited."""
    t = TraceBuilder()
    with t.step(0, 1000):
        t.op("aten::mm", 10, 900)
    assert sentences(t)[0].startswith(
        "The trace contains no device work: it was recorded on a CPU, or without its device."
    )


def test_without_the_host_no_verdict() -> None:
    """Kernels alone don't say what they waited for."""
    t = whole()
    t.events = [e for e in t.events if e.get("cat") in ("kernel", "gpu_memcpy")]
    integrity = integrity_of(t.trace())
    assert (integrity.verdict, integrity.waits) == (False, True)


def test_a_file_cut_short_gets_no_verdict(tmp_path: Path) -> None:
    """A crash leaves only a part of a step."""
    path = tmp_path / "cut.json"
    path.write_bytes(whole().json()[:-30])
    assert analyze(path).step.reason.startswith("The trace is truncated")


@pytest.mark.parametrize(("lost", "verdict"), [(1, True), (5, False)])
def test_launches_without_work_are_counted(lost: int, verdict: bool) -> None:
    """With twenty launches per step, up to a tenth is reported and spoils no verdict."""
    t = whole(20 - lost)
    for start in (0, 1000, 2000):
        for k in range(lost):
            t.call("cudaLaunchKernel", start + 300 + k, start + 300 + k)
    integrity = integrity_of(t.trace())
    # the read-back's kernel is a launch too
    assert integrity.sentences()[0].startswith(f"Only {(21 - lost) / 21:.0%} of the launches")
    assert integrity.verdict is verdict


@pytest.mark.parametrize(
    ("lost", "expected", "verdict"),
    [(18, False, True), (22, True, True), (95, True, True), (105, True, False)],
)
def test_a_trace_without_a_fiftieth_of_its_work_says_so(lost: int, expected: bool, verdict: bool) -> None:
    """With a thousand launches; a trace without a tenth of its work can't tell what bounds the step."""
    t = TraceBuilder()
    with t.step(0, 10_000):
        for k in range(1000):
            if k < lost:
                t.call("cudaLaunchKernel", 5 * k, 5 * k + 1)
            else:
                t.launch(at=5 * k, lasts=4)
    integrity = integrity_of(t.trace())
    assert (bool(integrity.lacks), integrity.verdict) == (expected, verdict)


@pytest.mark.parametrize(("bare", "text"), [(0, ""), (3, "3 of 3 graph launches have no kernels")])
def test_a_graph_that_was_replayed_without_its_kernels_is_missed(bare: int, text: str) -> None:
    """The device may be busy where it looks idle."""
    t = whole()
    for start in (0, 1000, 2000):
        t.call("cudaGraphLaunch", start + 500, start + 505)
        if not bare:
            t._work("kernel", "node", start + 506, 10, 7, 0)
    integrity = integrity_of(t.trace())
    assert (text in " ".join(integrity.sentences()), integrity.verdict) == (True, not bare)


@pytest.mark.parametrize(("early", "lacks"), [(40, 0), (60, 1)])
def test_work_before_its_launch_says_that_the_clocks_disagree(early: float, lacks: int) -> None:
    """By 60 µs, with no read-back to bound it: no wait is worth its number. By 40 it is what clocks are aligned to."""
    t = whole()
    t.events = [event for event in t.events if "Sync" not in event["name"] and "Memcpy" not in event["name"]]
    for event in t.events:
        if event.get("cat") in ("kernel", "gpu_memcpy"):
            event["ts"] -= early + 10
    integrity = integrity_of(t.trace())
    assert (len(integrity.lacks), integrity.waits) == (lacks, not lacks)


@pytest.mark.parametrize(("early", "lacks"), [(48, 0), (52, 1)])
def test_clocks_disagree_where_a_twentieth_of_the_work_begins_too_early(early: int, lacks: int) -> None:
    """So many of a thousand kernels begin a tenth of a millisecond early: profilers get single ones wrong."""
    t = TraceBuilder()
    with t.step(0, 10_000):
        for k in range(1000):
            t.launch(at=500 + 5 * k, lasts=1)
            t.events[-1]["ts"] -= 100 if k < early else 0
    assert len(integrity_of(t.trace()).lacks) == lacks


@pytest.mark.parametrize(("late", "lacks"), [(20, 0), (21, 1)])
def test_another_process_on_the_device_shows_by_work_that_begins_late(late: int, lacks: int) -> None:
    """Over a fifth of the work that finds the device idle begins 0.6 ms after its launch; no number is withheld."""
    t = TraceBuilder()
    with t.step(0, 101_000):
        t.launch(at=500, lasts=1)
        for k in range(100):
            t.launch(at=1000 * (k + 1), lasts=1)
            t.events[-1]["ts"] += 600 if k < late else 0
    integrity = integrity_of(t.trace())
    assert [s.startswith("21% of the work that finds the device idle") for s in integrity.sentences()] == [True] * lacks
    assert (integrity.waits, integrity.verdict) == (True, True)


def test_work_that_names_no_launch_gets_no_verdict_and_no_waits() -> None:
    """The device's delays have an unknown cause, and so have the host's waits."""
    t = whole()
    for event in t.events:
        if event.get("cat") in ("kernel", "gpu_memcpy"):
            event["args"].pop("correlation")
    integrity = integrity_of(t.trace())
    assert (integrity.verdict, integrity.waits) == (False, False)


@pytest.mark.parametrize(("log", "lost"), [("WARNING", True), ("ERROR", True), ("INFO", False)])
def test_the_profilers_own_warning_of_full_buffers_is_heard(log: str, lost: bool) -> None:
    """Kineto logs it, and its log stands in the trace."""
    line = "WARNING:2026-01-08 08:51:50 865:3386 CuptiActivityApi.cpp:211] Dropped 517 activity records"
    integrity = integrity_of(whole(**{log: [line, 7]}).trace())
    assert ("it dropped 517 device records" in " ".join(integrity.sentences())) is lost
    assert integrity.verdict is not lost


def test_more_work_of_a_stream_than_there_is_time_is_no_measurement() -> None:
    """A stream does one thing after the other: kernels that lie over one another were clocked wrongly."""
    t = whole()
    for event in t.events:
        if event.get("cat") == "kernel":
            event["dur"] *= 2
    integrity = integrity_of(t.trace())
    assert re.match(r"Stream 7 of device 0 reports [\d.]+ µs of work in [\d.]+ µs, but", integrity.sentences()[0])
    assert (integrity.verdict, integrity.waits) == (False, False)


@pytest.mark.parametrize(("twice", "lacks"), [(48, 0), (52, 1)])
def test_a_stream_may_take_a_twentieth_of_its_time_twice(twice: int, lacks: int) -> None:
    """Two kernels that share so much of a millisecond: less is how clocks are rounded."""
    t = TraceBuilder()
    with t.step(0, 2000):
        t.launch(at=100, lasts=500)
        t.launch(at=200, lasts=500 + twice)
        t.events[-1]["ts"] = t.events[-3]["ts"] + 500 - twice
    assert len(integrity_of(t.trace()).lacks) == lacks


def overlapping(capability: int, *, share: float = 0.2, graph: bool = False) -> TraceBuilder:
    """Steps of 60 kernels of 12 µs on one stream, of which each begins before the one before it ends; and a read-back.

    Args:
        capability: the device's compute capability, 0 for an AMD device.
        share: the part of a kernel in which the one behind it works too.
        graph: one launch of a graph makes them all.
    """
    t = TraceBuilder("cuda" if capability else "rocm")
    if capability:
        t.metadata["deviceProperties"] = [{"id": 0, "name": "Test Device", "computeMajor": capability}]
    for start in t.steps(3, lasts=2000):
        at = start + 30.0
        for k in range(60):
            if not k or not graph:
                t.call("cudaGraphLaunch" if graph else "cudaLaunchKernel", start + 10 + 2 * k, start + 11 + 2 * k)
            t._free[0, 7] = at
            t._work("kernel", "node", at, 12, 7, 0)
            at += 12 * (1 - share)
        t._free[0, 7] = at + 12
        t.sync("aten::item", at=start + 200)
    return t


@pytest.mark.parametrize(
    ("capability", "share", "graph", "sound"),
    [
        (9, 0.2, False, True),
        (10, 0.45, False, True),
        (9, 0.7, False, False),
        (8, 0.2, False, False),
        (0, 0.2, False, False),
        (8, 0.2, True, True),
    ],
)
def test_kernels_of_a_stream_may_overlap_where_the_device_allows_it(
    capability: int, share: float, graph: bool, sound: bool
) -> None:
    """Dependent launches do so from Hopper on, and branches of a graph on any device: but not several all the time."""
    assert (integrity_of(overlapping(capability, share=share, graph=graph).trace()) == SOUND) is sound


def test_what_overlaps_counts_once() -> None:
    """The device's time is the union: 60 kernels that begin every 9.6 µs, and what is read back."""
    step = analyze_trace(overlapping(9).trace()).step
    assert step.device_busy_us == pytest.approx(59 * 9.6 + 12 + 2, abs=2)
    assert step.bound is not Bound.UNKNOWN


@pytest.mark.parametrize("by", ["copy", "synchronize"])
@pytest.mark.parametrize(("hidden", "sound"), [(200, True), (300, False), (9000, False)])
def test_a_graph_of_which_a_part_is_recorded_withholds_what_rests_on_it(by: str, hidden: float, sound: bool) -> None:
    """Work after its kernels begins or returns long after them, and nothing in the trace explains the delay."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=10_000):
        t.call("cudaGraphLaunch", start + 10, start + 20)
        for k in range(3):
            t._work("kernel", "node", start + 30 + 8 * k, 8, 7, 0)
        t._free[0, 7] = start + 54 + hidden
        if by == "copy":
            t.sync("aten::item", at=start + 30)
        else:
            t.synchronize(at=start + 30, api="cudaStreamSynchronize")
    integrity = integrity_of(t.trace())
    assert ("some of their kernels are missing from the trace" in " ".join(integrity.sentences())) is not sound
    assert (integrity.verdict, integrity.waits) == (sound, sound)
    assert (analyze_trace(t.trace()).step.bound is Bound.UNKNOWN) is not sound


def test_another_stream_explains_what_is_behind_a_graph() -> None:
    """The copy waits for its work."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=10_000):
        t.launch("side", at=start, lasts=5000, stream=20)
        t.call("cudaGraphLaunch", start + 10, start + 20)
        t._work("kernel", "node", start + 30, 8, 7, 0)
        t._free[0, 7] = start + 5002
        t.sync("aten::item", at=start + 30)
    assert "some of their kernels" not in " ".join(integrity_of(t.trace()).sentences())


def test_streams_side_by_side_are_no_contradiction() -> None:
    """Each of two may work all of the time."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=1000):
        t.launch(at=start, lasts=900)
        t.launch(at=start + 1, lasts=900, stream=13)
    assert integrity_of(t.trace()) == SOUND


@pytest.mark.parametrize(("record", "lacks"), [(-1, 1), (1002, 0)])
def test_an_event_wait_that_names_no_record_was_inferred(record: int, lacks: int) -> None:
    """CUDA 12.9 and later leave the field at -1: said, and nothing withheld for it."""
    t = whole()
    t.call("cudaStreamWaitEvent", 10, 11)
    args = {"device": 0, "stream": 7, "correlation": t._correlation, "wait_on_cuda_event_record_corr_id": record}
    row = {"ph": "X", "cat": "cuda_sync", "name": "Stream Wait Event", "pid": 0, "tid": 7, "ts": 11, "dur": 1}
    t.event(**row, args=args)
    integrity = integrity_of(t.trace())
    assert (len(integrity.lacks), integrity.verdict, integrity.waits) == (lacks, True, True)


def test_nothing_is_projected_from_a_trace_that_lacks_too_much() -> None:
    """No gains, no habits with numbers, and what-if says why."""
    t = whole(1)
    for k in range(20):
        t.call("cudaLaunchKernel", 300 + k, 300 + k)
    analysis = analyze_trace(t.trace())
    assert [f.recoverable_us for f in analysis.findings] == [None]
    assert [h for h in analysis.habits if h.basis] == []
    assert (analysis.step.recoverable_us, analysis.step.outlook, analysis.schedule()) == (None, None, None)
    with pytest.raises(UsageError, match=r"can't be replayed\. Only"):
        analysis.whatif("all")
