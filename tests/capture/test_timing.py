"""Facts about timing a call: agreement with torch's own benchmark, one-offs kept apart, mistakes shown, errors said."""

from __future__ import annotations

import time

import pytest

from syncscan.capture.timing import time_step
from syncscan.errors import UsageError
from syncscan.model.timing import Clock

torch = pytest.importorskip("torch")
benchmark = pytest.importorskip("torch.utils.benchmark")
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")


def agreement(call, device):
    """Our time of a call over torch.utils.benchmark's: each the least of five medians, taken in turn.

    The least, because on a shared machine a neighbour's load only ever adds, for longer than one median takes.
    """
    ours, theirs = [], []
    for _ in range(5):
        timer = benchmark.Timer("call()", globals={"call": call}, num_threads=torch.get_num_threads())
        theirs.append(timer.blocked_autorange(min_run_time=0.3).median * 1e6)
        ours.append(time_step(call, device=device, seconds=0.3).median_us)
    return min(ours) / min(theirs)


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.bench
@pytest.mark.parametrize("size", [64, 400])
def test_it_agrees_with_torch_benchmark_on_the_cpu(size):
    """Within 3 %, for a call of some µs and for one of about a ms."""
    x = torch.randn(size, size)
    assert agreement(lambda: x @ x, "cpu") == pytest.approx(1.0, abs=0.03)


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("size", [64, 4096])
def test_it_agrees_with_torch_benchmark_on_the_gpu(size):
    """Within 3 %, for a call bound by its launch and for one bound by the device."""
    x = torch.randn(size, size, device="cuda")
    assert agreement(lambda: x @ x, "cuda") == pytest.approx(1.0, abs=0.03)


@pytest.mark.bench
def test_the_time_of_a_call_is_what_it_takes():
    """A call that spins for 2 ms takes 2 ms: at the 5th percentile, since others may use this machine."""

    def spin():
        until = time.perf_counter() + 0.002
        while time.perf_counter() < until:
            pass

    timing = time_step(spin, device="cpu", repetitions=20, seconds=0)
    assert timing.percentile(5) == pytest.approx(2000, rel=0.02)
    assert timing.clock is Clock.HOST
    assert timing.block == 1
    assert any("host's clock" in note for note in timing.notes)


def test_what_is_paid_once_is_in_no_sample():
    """The first call sleeps 200 ms; the report keeps that apart, and only the naive single call would report it."""
    calls = []

    def lazy():
        calls.append(1)
        time.sleep(0.2 if len(calls) == 1 else 0.001)

    timing = time_step(lazy, device="cpu", repetitions=5, seconds=0, compare_naive=True)
    once = {o.name: o.us for o in timing.one_offs}
    assert once["first call"] >= 200_000
    assert max(timing.samples_us) < 100_000
    assert [n.mistake for n in timing.naive] == ["a single call, no warm-up"]
    assert timing.naive[0].us == once["first call"]


def test_inputs_may_be_a_function_of_the_batch_size():
    """`inputs` is called with 1 for the timing itself."""
    seen = []

    def inputs(batch):
        seen.append(batch)
        return torch.zeros(batch, 4)

    time_step(torch.nn.Linear(4, 4), inputs, device="cpu", repetitions=2, seconds=0)
    assert seen == [1]


@pytest.mark.parametrize(
    ("fn", "options", "words"),
    [
        (lambda x, y: None, {}, "can't be called with nothing"),
        (lambda: None, {"throughput": True}, "can't be called with a batch size"),
        (lambda: None, {"device": "toaster"}, "isn't a device"),
        (lambda: None, {"device": "meta"}, "no device 'meta' here"),
    ],
)
def test_a_call_that_can_mean_nothing_is_refused(fn, options, words):
    """Before anything runs, with what to do instead."""
    with pytest.raises(UsageError, match=words) as caught:
        time_step(fn, **{"device": "cpu", **options})
    assert caught.value.hint


@pytest.mark.gpu
@needs_gpu
def test_on_a_device_a_missing_synchronize_measures_the_launch():
    """A product of 8192² matrices takes ms; time.time() without synchronizing says µs."""
    x = torch.randn(8192, 8192, device="cuda")
    timing = time_step(lambda: x @ x, compare_naive=True, seconds=0.2)
    naive = {n.mistake: n.us for n in timing.naive}
    assert timing.clock is Clock.DEVICE
    assert naive["time.time() without synchronizing"] < 0.2 * timing.median_us
