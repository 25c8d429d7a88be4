"""Facts about single rules, on traces built for them."""

from __future__ import annotations

import pytest

from syncscan import api, habits
from syncscan.habits.rules import RULES
from syncscan.rules.pages import habit_page
from tests.builder import TraceBuilder
from tests.each import each

OWN_TIME = {"syncscan": {"unprofiled_step_us": 900.0}}


def rules(builder, major=None):
    if major is not None:
        builder.metadata["deviceProperties"] = [{"name": "chip", "computeMajor": major, "computeMinor": 0}]
    analysis = api.analyze_trace(builder.trace())
    result, warnings = habits.find(analysis.trace, analysis.findings, analysis.step)
    assert warnings == ()
    return {h.rule: h for h in result}


def many_launches(**metadata):
    """Three steps of 100 launches, 9 µs apart, of kernels of 4 µs."""
    t = TraceBuilder(**metadata)
    for start in t.steps(3, lasts=1000):
        for k in range(100):
            t.launch("tiny", at=start + 9 * k, lasts=4)
    return t


def test_launches_are_blamed_only_with_an_unprofiled_time():
    """Recording stretches the host, so a profiled step proves nothing."""
    assert "launch-bound" not in rules(many_launches())
    assert "launch-bound" in rules(many_launches(**OWN_TIME))


def test_launches_without_such_a_time_are_blamed_for_their_number():
    """At 3 µs each, the least that a launch can take, 300 of them already need longer than the device's 300 µs."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=2000):
        for k in range(300):
            t.launch("tiny", at=start + 6 * k, lasts=1)
    assert "launch-bound" in rules(t)


def test_launches_are_not_blamed_for_what_the_host_computes():
    """The device idles as long, but behind a few launches and much else: no graph would help."""
    t = TraceBuilder(**OWN_TIME)
    for start in t.steps(3, lasts=1000):
        for k in range(60):
            t.launch("tiny", at=start + k, lasts=1)
    assert "launch-bound" not in rules(t)


def launching(parts, between, pause=500, kernels=("tiny",)):
    """Steps of parts of 150 launches each, 12 µs apart, with a pause (µs) behind each, in which `between` happens."""
    length = 1800 + pause
    t = TraceBuilder(syncscan={"unprofiled_step_us": float(length * parts)})
    for number, start in enumerate(t.steps(3, lasts=length * parts)):
        for part in range(parts):
            begin = start + length * part
            for k in range(150):
                t.launch(kernels[number % len(kernels)], at=begin + 12 * k, lasts=1)
            between(t, begin + 1795)
    return t


def saved_us(builder, rule="launch-bound"):
    analysis = api.analyze_trace(builder.trace())
    return {h.rule: h.recoverable_us for h in analysis.habits if h.basis}.get(rule, 0.0)


def test_only_what_lies_between_launches_is_spared_by_a_graph():
    """150 launches 12 µs apart take 1,790 of 2,300 µs: a graph leaves the host's work before and after them."""
    whole = launching(1, lambda t, at: None)
    assert saved_us(whole) == pytest.approx(1790, abs=100)
    assert rules(whole)["launch-bound"].fix.startswith('torch.compile(mode="reduce-overhead") or a CUDA graph')


LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


@pytest.mark.parametrize(
    ("between", "pause"),
    [
        (lambda t, at: None, 500),
        (lambda t, at: t.synchronize(at=at), 50),
        (lambda t, at: t.scope(LOADER, at, at + 20), 50),
    ],
    ids=["Python", "a sync", "a loader"],
)
def test_what_no_graph_holds_stands_in_the_way(between, pause):
    """Between two parts: each is compiled alone, and a call takes as long as some ops; a sync waits for its work."""
    apart = launching(2, between, pause)
    habit = rules(apart)["launch-bound"]
    assert "reduce-overhead" in habit.fix
    assert "CUDA graph" not in habit.fix
    assert "one graph can't hold the step's 300 launches" in habit.evidence[-1]
    assert saved_us(apart) == pytest.approx(2 * (1790 - 55), abs=2 * 225)


def test_a_pause_of_50_us_is_python_on_its_way_to_the_next_op():
    """One graph holds both parts: of 3,700 µs the device's 300 kernels stay, with a pause of 1 µs between two."""
    assert saved_us(launching(2, lambda t, at: None, 50)) == pytest.approx(3700 - 600, abs=60)


def test_a_pause_on_the_way_to_the_next_launch_is_python():
    """100 µs at most; or where backward begins, on a thread of its own, 400."""

    def paused(us, backward):
        t = TraceBuilder(syncscan={"unprofiled_step_us": 4000.0})
        for start in t.steps(3, lasts=4000):
            for k in range(120):
                t.launch("forward", at=start + 12 * k, lasts=1)
            with t.thread("pt_autograd_0" if backward else "main", 101 if backward else 100):
                for k in range(120):
                    t.launch("backward", at=start + 12 * 119 + 2 + us + 12 * k, lasts=1)
        return "can't hold" in "".join(rules(t)["launch-bound"].evidence)

    assert [paused(us, backward) for us, backward in ((95, False), (110, False), (390, True), (410, True))] == [
        False,
        True,
        False,
        True,
    ]


def test_few_launches_between_two_waits_are_worth_no_graph():
    """A read-back behind each 40 launches: what is left in the way is all there is."""
    t = TraceBuilder(syncscan={"unprofiled_step_us": 5000.0})
    for start in t.steps(3, lasts=5000):
        for part in range(9):
            for k in range(40):
                t.launch("tiny", at=start + 540 * part + 12 * k, lasts=1)
            t.synchronize(at=start + 540 * part + 490)
    assert "launch-bound" not in rules(t)


@pytest.mark.parametrize(("launches", "worth"), [(90, False), (110, True)])
def test_a_part_is_worth_a_compile_from_1_2_ms_on(launches, worth):
    """12 µs a launch synchronously between two such parts: 1.08 and 1.32 ms."""
    t = TraceBuilder(syncscan={"unprofiled_step_us": 3000.0})
    for start in t.steps(3, lasts=3000):
        for part in range(2):
            for k in range(launches):
                t.launch("tiny", at=start + 1500 * part + 12 * k, lasts=1)
            t.synchronize(at=start + 1500 * part + 1450)
    assert ("launch-bound" in rules(t)) is worth


def test_a_trainers_step_inside_of_its_optimizer_is_no_launch():
    """A closure: what the trainer does in it between two launches isn't the optimizer's own time."""

    def step(closure):
        t = TraceBuilder(syncscan={"unprofiled_step_us": 5000.0})
        for start in t.steps(3, lasts=5000):
            t.scope("Optimizer.step#Adam.step", start + 5, start + 4900)
            for k in range(95):
                t.launch("forward", at=start + 10 + 14 * k, lasts=1)
            with t.thread("pt_autograd_0" if closure else "main", 101 if closure else 100):
                t.launch("backward", at=start + 1400, lasts=1)
            for k in range(95):
                t.launch("update", at=start + 3000 + 14 * k, lasts=1)
        return "can't hold" in "".join(rules(t)["launch-bound"].evidence)

    assert step(closure=True)
    assert not step(closure=False)


def test_steps_that_launch_other_kernels_are_no_graph():
    """Shapes or control flow change."""
    assert saved_us(launching(1, lambda t, at: None, kernels=("one", "two"))) == 0.0


def loading(iterator, at=0, lasts=600):
    t = TraceBuilder()
    for start in t.steps(3, lasts=1000):
        t.scope(f"enumerate(DataLoader)#{iterator}.__next__", start + at, start + at + lasts)
        t.launch("train", at=start + 700, lasts=200)
    return t


def test_no_workers_are_distinguished_from_too_few():
    """By the class of the loader's iterator."""
    assert set(rules(loading("_SingleProcessDataLoaderIter"))) == {"loader-no-workers"}
    assert set(rules(loading("_MultiProcessingDataLoaderIter"))) == {"loader-few-workers"}


def test_a_loader_that_works_while_the_device_does_costs_nothing():
    """600 µs in the loader, during which the device is busy with the step before."""
    t = TraceBuilder()
    for start in t.steps(3, lasts=1000):
        t.launch("train", at=start, lasts=950)
        t.scope("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", start + 100, start + 700)
    assert rules(t) == {}


def test_a_synchronize_at_the_end_of_a_step_alone_times_nothing():
    """A server that hands over an answer ends its step so too; only the two queries are proof of a clock."""
    t = TraceBuilder()
    for start in t.steps(3, lasts=1000):
        t.copy("Memcpy HtoD (Pinned -> Device)", at=start + 5, lasts=50)
        t.launch("infer", at=start + 100, lasts=300)
        t.synchronize(at=start + 120)
    assert rules(t) == {}


def test_timers_that_are_read_behind_other_work_time_no_repetition():
    """DDP reads the events of its forward and backward pass a step later."""
    t = TraceBuilder()
    for start in t.steps(3, lasts=1000):
        t.call("cudaEventRecordWithFlags", start + 10, start + 11)
        t.launch("forward", at=start + 20, lasts=100)
        t.call("cudaEventRecordWithFlags", start + 30, start + 31)
        t.launch("more", at=start + 40, lasts=100)
        end = t.synchronize(at=start + 50)
        t.call("cudaEventQuery", end + 2, end + 3)
        t.call("cudaEventQuery", end + 4, end + 5)
    assert rules(t) == {}


PRODUCT = "sm80_xmma_gemm_f32f32_{}_f32_nn_n_tilesize128x128x8"


@each(
    ("kernel", "major", "fires"),
    [
        (PRODUCT.format("f32f32"), 9, True),
        ("cutlass_80_simt_sgemm_128x256_8x4_nt_align1", 8, True),
        ("volta_sgemm_128x64_nn", 7, True),
        ("maxwell_sgemm_128x64_nn", 5, False),
        (PRODUCT.format("tf32f32"), 9, False),
        ("cutlass_80_tensorop_s1688gemm_64x64_16x6_nn_align4", 9, False),
        ("nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT", 9, False),
    ],
)
def test_fp32_products_are_recognized_by_their_kernels(kernel, major, fires):
    """On a chip with tensor cores, by the names that cuBLAS gives the plain kernels."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=1000):
        with t.op("aten::mm", start + 5, start + 20):
            t.launch(kernel, at=start + 10, lasts=500)
    assert ("fp32-matmul" in rules(t, major)) is fires


def product_on(name, major, minor, vendor="cuda"):
    t = TraceBuilder(vendor)
    t.metadata["deviceProperties"] = [{"id": 0, "name": name, "computeMajor": major, "computeMinor": minor}]
    for start in t.steps(2, lasts=1000):
        with t.op("aten::mm", start + 5, start + 20):
            t.launch("volta_sgemm_128x64_nn", at=start + 10, lasts=1500)
    return {h.rule: h for h in api.analyze_trace(t.trace()).habits}.get("fp32-matmul")


@pytest.mark.parametrize(
    ("name", "major", "minor", "advised"),
    [
        ("Tesla V100-SXM2-16GB", 7, 0, "float16"),
        ("Tesla T4", 7, 5, "float16"),
        ("NVIDIA A100-SXM4-40GB", 8, 0, "for tf32"),
        ("NVIDIA GeForce RTX 3090", 8, 6, "tf32 gains little"),
        ("NVIDIA H200", 9, 0, "for tf32"),
    ],
)
def test_what_is_advised_is_what_the_chip_can_do(name, major, minor, advised):
    """tf32 and bf16 came with 8.0; on a GeForce tf32 is hardly faster than fp32."""
    habit = product_on(name, major, minor)
    assert advised in habit.fix
    assert f"{name} (compute capability {major}.{minor}) has tensor cores" in habit.evidence


@pytest.mark.parametrize(
    ("name", "major", "minor", "vendor"),
    [
        ("NVIDIA GeForce GTX 1650", 7, 5, "cuda"),
        ("NVIDIA GeForce GTX 1080", 6, 1, "cuda"),
        ("AMD Instinct MI300X", 9, 4, "rocm"),
        ("one of the future", 99, 0, "cuda"),
    ],
)
def test_a_chip_without_tensor_cores_or_an_unknown_one_is_let_alone(name, major, minor, vendor):
    """AMD's numbers mean another thing."""
    assert product_on(name, major, minor, vendor) is None


def test_fp32_convolutions_are_not_blamed():
    """For odd channel counts cuDNN picks plain kernels even where tf32 is allowed: that proves no habit."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=1000):
        with t.op("aten::cudnn_convolution", start + 5, start + 20):
            t.launch(PRODUCT.format("f32f32"), at=start + 10, lasts=500)
    assert rules(t, 9) == {}


def test_without_steps_nothing_is_reported():
    """A habit is something of a step."""
    t = TraceBuilder()
    t.launch("k", at=10, lasts=100)
    assert rules(t) == {}


def test_of_steps_that_take_no_time_nothing_is_reported():
    """No rule fails for want of a part of it, as those of a trace whose times are damaged."""
    t = TraceBuilder()
    with t.step(0, 0):
        pass
    t.launch("k", at=0, lasts=0)
    analysis = api.analyze_trace(t.trace())
    assert habits.find(analysis.trace, analysis.findings, analysis.step) == ((), ())


def test_a_rule_that_raises_is_named_and_skipped(monkeypatch):
    """The others still speak."""

    def broken(context):
        raise ZeroDivisionError("nothing to divide")

    monkeypatch.setitem(RULES, "op-setup", broken)
    analysis = api.analyze_trace(many_launches(**OWN_TIME).trace())
    result, warnings = habits.find(analysis.trace, analysis.findings, analysis.step)
    assert [h.rule for h in result] == ["launch-bound"]
    assert warnings == ("The rule op-setup failed (ZeroDivisionError: nothing to divide) and was skipped.",)


@each("rule", RULES)
def test_every_rule_says_why_and_what_to_do(rule):
    """Each in whole sentences, and with the case in which to leave it alone."""
    page = habit_page(rule)
    assert not page.name.endswith(".")
    for text in (page.why, *page.fixes.values(), page.when_fine):
        assert text.endswith("."), text
