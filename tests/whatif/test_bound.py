"""The bound of a step is decided once, from the calibrated step, and is the same in every sentence and format."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from syncscan import report
from syncscan.api import analyze, analyze_trace
from syncscan.errors import UsageError
from syncscan.model.analysis import Analysis
from syncscan.model.step import Bound, DeviceTime
from syncscan.report.front import front_of
from syncscan.whatif import Projector
from syncscan.whatif.bound import unsettled, without_replay
from tests.builder import TraceBuilder
from tests.each import each
from tests.whatif.story import Item, analyzed, profiled

SAMPLES = Path(__file__).parents[2] / "sample_traces"
FORMATS = ("text", "json", "markdown", "html", "sarif", "github", "junit", "fragment")
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def with_collectives(compute: float, collective: float, name: str = NCCL, stream: int = 13) -> TraceBuilder:
    """Steps of 1000 µs: kernels, behind them a collective, and a read-back that waits for both."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=1000):
        done = t.launch(at=start + 1, lasts=compute)
        begin = start + 3 if stream == 7 else done + 1
        end = t.launch(name, at=begin, lasts=collective, stream=stream)
        t.sync("aten::item", at=max(begin + 2, end - 50), stream=stream)
    return t


def words(analysis: Analysis, form: str) -> str:
    """A report on one line, as its reader sees it."""
    text = report.render(analysis, form).replace("&#39;", "'").replace("%25", "%")
    return " ".join(re.sub(r'<span class="whole">([^<]*)</span>', r"\1", text).split())


def analysis_of(t: TraceBuilder) -> Analysis:
    return analyze_trace(t.trace())


def test_a_step_that_waits_for_ranks_is_bound_by_communication() -> None:
    """300 µs of kernels and 600 of a collective that nothing runs beside: it isn't the device's work."""
    step = analysis_of(with_collectives(300, 600)).step
    assert (step.bound, step.device_busy_us, step.communication_us) == (Bound.COMMUNICATION, 302, 600)
    assert "waits for other ranks or the network for 6" in step.reason


@each(
    "name",
    [
        NCCL,
        "ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)",
        "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)",
        "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)",
        "rcclGenericKernel",
        "void mscclKernel_Sum_half_LL(ncclDevComm*, mscclAlgo*)",
        "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*, int)",
        "void sglang::cross_device_reduce_2stage<__hip_bfloat16, 8, false>(sglang::RankData*)",
        "one_shot_all_reduce_kernel",
        "multimem_all_reduce_kernel",
        "oneccl_allreduce_kernel",
    ],
)
def test_every_backends_collectives_are_distinguished_from_work(name: str) -> None:
    """By the kernel's name: NCCL's old and new ones, RCCL's, MSCCL's, oneCCL's, vLLM's, SGLang's, torch's own."""
    assert analysis_of(with_collectives(300, 600, name)).step.bound is Bound.COMMUNICATION


@pytest.mark.parametrize("name", ["gemm", "ncclTestVectorAdd", "void at::native::reduce_kernel<512, 1>", "Memcpy PtoP"])
def test_work_is_no_collective(name: str) -> None:
    """Though it reduces, or its name has a library's in it."""
    step = analysis_of(with_collectives(300, 600, name)).step
    assert step.communication_us == 0


@pytest.mark.parametrize("name", ["gloo:all_reduce", "mpi:all_reduce", "ucc:all_reduce"])
def test_a_backend_on_the_host_communicates_while_the_device_stands_idle(name: str) -> None:
    """It leaves no device work; its own record lasts until it is done."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=1000):
        t.launch(at=start + 1, lasts=300)
        with t.thread("pt_gloo_runner", 300):
            t.scope(name, start + 310, start + 910)
    step = analysis_of(t).step
    assert (step.communication_us, step.bound) == (600, Bound.COMMUNICATION)


def test_what_the_host_launches_meanwhile_is_no_waiting_for_ranks() -> None:
    """A device that stands idle beside a collective of the host's, while the host launches, waits for the host."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=1000):
        for k in range(9):
            t.launch(at=start + 1 + 100 * k, lasts=20)
        with t.thread("pt_gloo_runner", 300):
            t.scope("gloo:all_reduce", start + 5, start + 715)
    step = analysis_of(t).step
    assert (step.communication_us, step.bound) == (0, Bound.HOST)


def test_a_collective_beside_work_costs_nothing() -> None:
    """On a stream of its own, while kernels run: only what sticks out is waiting."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=1000):
        t.launch(at=start + 1, lasts=950)
        t.launch(NCCL, at=start + 3, lasts=960, stream=13)
    step = analysis_of(t).step
    assert (step.bound, step.device_busy_us, step.communication_us) == (Bound.DEVICE, 950, 12)


def test_a_sync_behind_a_collective_gains_nothing_that_one_rank_can_tell() -> None:
    """Its range reaches from nothing to what the replay says, and the finding says who can tell."""
    analysis = analysis_of(with_collectives(300, 600))
    (finding,) = analysis.findings
    assert finding.recoverable_us is not None
    assert (finding.recoverable_us, finding.recoverable_range_us[0]) == (0, 0)
    assert "only the traces of all ranks show" in finding.untold
    for form in ("text", "markdown", "html", "sarif", "json", "fragment"):
        if form in ("text", "markdown"):
            assert "traces of all ranks" in " ".join(report.render(analysis, form, verbose=1).split())
        else:
            assert "only the traces of all ranks show" in report.render(analysis, form)


def test_a_sync_before_the_collectives_of_a_host_bound_step_keeps_its_gain() -> None:
    """A fifth of the step is communication: the gain is the replay's, and its range reaches down to nothing."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=1000):
        t.launch(at=start + 1, lasts=300)
        end = t.sync("aten::item", at=start + 5)
        done = t.launch(at=end + 250, lasts=100)
        t.launch(NCCL, at=done, lasts=200, stream=13)
    (finding,) = analysis_of(t).findings
    assert finding.recoverable_us is not None
    assert finding.recoverable_us > 100
    assert (finding.recoverable_range_us[0], finding.untold) == (0, "")


@pytest.mark.parametrize(
    ("idle", "collective", "bound"),
    [("loads", 140, Bound.INPUT), ("works", 140, Bound.HOST), ("loads", 560, Bound.COMMUNICATION)],
)
def test_communication_limits_a_step_only_as_its_largest_part(idle: str, collective: float, bound: Bound) -> None:
    """Its kernels take 90 of 1000 µs, and less than its collectives, but the loader or ops take more still."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=1000):
        begin = start + 980 - collective - 90
        if idle == "loads":
            t.scope("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", start + 1, begin - 10)
        else:
            t.op("aten::add", start + 1, begin - 10)
        done = t.launch(at=begin - 8, lasts=90)
        t.launch(NCCL, at=begin - 6, lasts=collective, begins=done, stream=13)
        t.sync("aten::item", at=begin - 4, stream=13)
    assert analysis_of(t).step.bound is bound


def test_of_several_devices_each_has_its_own_shares() -> None:
    """Two that work in turn are each half idle, however busy they are together."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=1000):
        done = t.launch(at=start + 1, lasts=480)
        t.launch(at=done + 1, lasts=450, device=1)
        t.sync("aten::item", at=done + 10, device=1)
    step = analysis_of(t).step
    assert step.devices == (DeviceTime(0, 480, 0), DeviceTime(1, 452, 0))
    assert step.device_busy_us == 480
    assert step.bound is not Bound.DEVICE
    assert step.reason.startswith("The busiest of 2 devices is busy 4")


def test_an_estimate_is_reported_with_the_verdict() -> None:
    """Nobody timed the step without the profiler: the part that is taken to be its own is in the sentence."""
    plan = [("launch", 300.0), ("work", 500.0)]
    estimated = analyzed(plan)
    assert estimated.step.guessed_overhead is not None
    assert f"Estimate: {estimated.step.guessed_overhead:.0%} of host time is profiler overhead" in estimated.step.reason
    known = profiled(estimated)
    assert (known.step.guessed_overhead, "Estimate" in known.step.reason) == (None, False)


def test_an_overhead_that_rounds_to_nothing_is_called_less_than_one_percent() -> None:
    """Two calls in a step of 10 ms: the estimate isn't that there is no overhead."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=10_000):
        t.launch(at=start + 1, lasts=300)
    analysis = analyze_trace(t.trace())
    assert "Estimate: less than 1% of host time is profiler overhead" in analysis.step.reason
    assert "with less than 1% of its host time" in " ".join(analysis.whatif().notes)


def many_ops(work: float) -> TraceBuilder:
    """Steps in which as much of the host's time may be the profiler's as that the device sets the pace without it."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=1000):
        t.launch(at=start + 1, lasts=work)
        for k in range(200):
            t.op("aten::add", start + 10 + 4 * k, start + 13 + 4 * k)
    return t


def test_both_ends_of_an_estimate_are_reported_where_they_differ() -> None:
    """As recorded the host is the limit; with what the estimate takes for the profiler's, the device."""
    step = analysis_of(many_ops(700)).step
    assert step.bound is Bound.DEVICE
    assert step.reason.endswith("At 0% overhead, the host would be the limit.")


def test_ends_that_agree_need_no_word() -> None:
    """A device that works a tenth of the step isn't its limit at either end."""
    assert "would be" not in analysis_of(many_ops(100)).step.reason


@each("form", FORMATS)
def test_every_format_says_the_verdict_and_its_estimate(form: str) -> None:
    """They have the same verdict, and say that the step's share is an estimate, in the first thing that is read."""
    analysis = analysis_of(many_ops(700))
    front = front_of(analysis)
    assert front.verdict.partition(":")[0] in words(analysis, form)
    assert "estimate" in front.why_sure


@each("form", FORMATS)
def test_every_format_says_what_the_trace_lacks(form: str) -> None:
    """And shows no number that is withheld for it."""
    t = with_collectives(300, 600)
    for event in t.events:
        if event.get("cat") in ("kernel", "gpu_memcpy"):
            event["ts"] -= 500
    analysis = analysis_of(t)
    (sentence,) = analysis.integrity.sentences()
    text = words(analysis, form)
    assert sentence in text
    assert "µs (" not in text.replace(sentence, "")


def test_a_step_in_trace_view_says_what_bounds_it() -> None:
    """A click on a step of the annotated copy shows the verdict."""
    tracks = pytest.importorskip("syncscan.viewers.annotate.tracks")
    analysis = analysis_of(many_ops(700))
    drawn = [json.loads(text) for text in tracks.added_events(analysis)]
    (messages,) = {event["args"]["verdict"] for event in drawn if event.get("cat") == "syncscan_step"}
    assert messages == front_of(analysis).verdict


def test_the_frame_withholds_waits_that_cant_be_measured() -> None:
    """Its columns are there, and empty."""
    t = with_collectives(300, 600)
    for event in t.events:
        if event.get("cat") in ("kernel", "gpu_memcpy"):
            event["ts"] -= 500
    frame = analysis_of(t).to_frame()
    assert frame[["wait_us", "bubble_us", "recoverable_us"]].isna().all(axis=None)


@pytest.mark.parametrize(("part", "settled"), [(0.89, False), (0.91, True), (1.09, True), (1.11, False)])
def test_a_replay_that_is_off_by_a_tenth_explains_nothing(part: float, settled: bool) -> None:
    """The tenth is of the step's own time, in both directions."""
    analysis = profiled(analyzed([("launch", 300.0), ("wait", 0.0), ("work", 400.0)]))
    step = Projector(analysis.trace, analysis.findings, analysis.step.observed_us).calibrated()
    took = step.before.period * step.unit * 1e3
    step.calibration = replace(step.calibration, observed_ns=took / part)
    assert (unsettled(step) == "") is settled


def test_whatif_withholds_what_the_analysis_withholds() -> None:
    """A replay that doesn't take the step's time projects nothing, for the same reason."""
    t = TraceBuilder(syncscan={"unprofiled_step_us": 100.0})
    for start in t.steps(4, lasts=1000):
        t.launch(at=start + 20, lasts=4)
        t.synchronize(at=start + 22)
    analysis = analysis_of(t)
    assert (analysis.step.bound, analysis.replayable) == (Bound.UNKNOWN, False)
    with pytest.raises(UsageError) as refused:
        analysis.whatif("all")
    assert refused.value.message.endswith(analysis.step.reason)


@pytest.mark.parametrize(("busy", "bound", "text"), [(90.0, Bound.DEVICE, "90%"), (89.0, Bound.UNKNOWN, "no reason")])
def test_without_a_replay_a_device_that_fills_the_step_bounds_it(busy: float, bound: Bound, text: str) -> None:
    """The profiler slows the host, not the device: what is seen to be full is full without it."""
    step = replace(analysis_of(TraceBuilder()).step, observed_us=100.0, device_busy_us=busy)
    verdict = without_replay(step, "no reason")
    assert (verdict.bound, text in verdict.reason) == (bound, True)


def test_syncs_limit_a_step_that_the_device_nearly_fills() -> None:
    """The device leaves a tenth of this one, and most of that goes with its `.item()`: launches aren't the limit."""
    step = analyze(SAMPLES / "log_item.pt.trace.json.gz").step
    assert step.recoverable_us is not None
    assert step.unprofiled_us is not None
    assert (step.bound, 0.05 < step.recoverable_us / step.unprofiled_us < 0.1) == (Bound.SYNC, True)


def limit_without_syncs(plan: list[Item]) -> Bound | None:
    result = profiled(analyzed(plan)).step.outlook
    return result.after if result else None


def test_where_removing_syncs_gains_nothing_there_is_no_limit_after_it() -> None:
    """A device without pauses leaves nothing to be gained; nor does a host that never waits."""
    assert limit_without_syncs([("launch", 3000.0), ("read", 0.0), ("work", 30.0)]) is None
    assert limit_without_syncs([("work", 3000.0), ("launch", 50.0), ("work", 100.0), ("read", 0.0)]) is None


def test_the_limit_without_syncs() -> None:
    """The device, or the host's own work."""
    device = [("launch", 5000.0), ("read", 0.0), ("work", 400.0)]
    host = [("launch", 500.0), ("wait", 0.0), ("work", 4000.0)]
    both = [("launch", 500.0), ("read", 0.0), ("wait", 0.0), ("work", 400.0)]
    assert [limit_without_syncs(plan) for plan in (device, host, both)] == [Bound.DEVICE, Bound.HOST, Bound.DEVICE]
