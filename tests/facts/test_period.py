"""A step's observed time, the intervals that it is the mean of, and the phases of a served trace."""

from __future__ import annotations

import pytest

from syncscan.facts.period import PhaseSummary, earlier_work, later_work, phases_of, step_intervals, step_period
from syncscan.load import with_steps
from syncscan.model.interval import Interval
from syncscan.model.step_marks import ServingPhase
from tests.builder import TraceBuilder


def test_a_window_reaches_to_the_next_steps_begin() -> None:
    """A pause between steps belongs to the step before it; the last gets the usual pause."""
    t = TraceBuilder()
    for k in range(3):
        t.step(1000 * k, 1000 * k + 900)
    assert step_intervals(t.trace()) == ((0, 1_000_000), (1_000_000, 2_000_000), (2_000_000, 3_000_000))


def test_a_step_whose_next_was_not_recorded_ends_with_its_own_end() -> None:
    """Steps 2 and 5 aren't neighbours: what lies between them is no pause."""
    t = TraceBuilder()
    t.step(0, 900, number=2)
    t.step(50_000, 50_900, number=5)
    assert step_intervals(t.trace()) == ((0, 900_000), (50_000_000, 50_900_000))


def test_without_steps_the_whole_trace_is_one_window() -> None:
    """It spans the first slice's begin to the last one's end."""
    t = TraceBuilder()
    t.op("aten::add", 10, 20)
    t.op("aten::mul", 30, 50)
    assert step_intervals(t.trace()) == ((10_000, 50_000),)
    assert step_intervals(TraceBuilder().trace()) == ()


def test_a_step_that_waits_takes_the_hosts_time() -> None:
    """Host and device both done: 1,000 µs."""
    t = TraceBuilder()
    for start in t.steps(3, lasts=1000):
        t.launch("kernel", at=start + 10, lasts=300)
        t.synchronize(at=start + 20)
    assert step_period(t.trace()) == pytest.approx(1_000_000)


def test_a_host_that_runs_ahead_doesnt_shorten_the_step() -> None:
    """The host launches 800 µs of work in 100 µs and doesn't wait: a step takes the device's 800 µs."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=100):
        t.launch("kernel", at=start + 10, lasts=800)
    assert step_period(t.trace()) == pytest.approx(800_000, rel=0.01)


def test_one_long_step_is_not_the_devices_pace() -> None:
    """A host-bound step that takes longer than its neighbours moves the mean, and the device's own times don't."""
    t = TraceBuilder()
    for begin, end in ((0, 1000), (1000, 2000), (2000, 3600)):
        with t.step(begin, end):
            t.launch("kernel", at=end - 100, lasts=50)
    assert step_period(t.trace()) == pytest.approx(1_200_000)


# what was launched before the first step


def ahead(t: TraceBuilder, held: float, count: int = 100) -> None:
    """Launches from 10 µs on, 20 µs apart, whose work of 100 µs each begins at `held`."""
    for k in range(count):
        t.launch("decode", at=10 + 20 * k, lasts=100, begins=held)


def test_a_device_held_by_work_that_isnt_recorded() -> None:
    """The host is done after 2.4 ms; the device comes to its work after 8.4 ms and is done with it 10 ms later."""
    t = TraceBuilder()
    with t.step(0, 2400):
        ahead(t, held=8400)
    trace = t.trace()
    assert earlier_work(trace) == Interval(0, 8_400_000)
    assert step_period(trace) == pytest.approx(10_000_000)


def test_the_same_without_a_mark() -> None:
    """The window is the host's part, to its last launch; the device's pace counts from where it took it up."""
    t = TraceBuilder()
    ahead(t, held=8400)
    trace = with_steps(t.trace(), as_one_step=True)
    assert step_intervals(trace) == (Interval(10_000, 1_991_000),)
    assert step_period(trace) == pytest.approx(10_000_000)


@pytest.mark.parametrize(("lag", "earlier"), [(400, None), (600, Interval(0, 611_000))])
def test_work_that_begins_late_was_held(lag: float, earlier: Interval | None) -> None:
    """Up to 0.5 ms are an idle device's own."""
    t = TraceBuilder()
    with t.step(0, 2000):
        t.launch("kernel", at=10, lasts=100, begins=11 + lag)
    assert earlier_work(t.trace()) == earlier


@pytest.mark.parametrize(
    ("call", "lasts", "held"),
    [("cudaStreamSynchronize", 0, True), ("cudaFree", 0, False), ("cudaMemcpyAsync", 1, True)],
)
def test_a_call_that_waits_before_all_work_was_held(call: str, lasts: float, held: bool) -> None:
    """By work that isn't recorded: only calls that take long just because they wait show it."""
    t = TraceBuilder()
    with t.step(0, 8000):
        t.call(call, 100, 5000, correlation=77)
        if lasts:
            copy = {"device": 0, "stream": 7, "correlation": 77}
            t.event(ph="X", cat="gpu_memcpy", name="Memcpy HtoD", pid=0, tid=7, ts=4990, dur=lasts, args=copy)
        t.launch("kernel", at=6000, lasts=1000)
    assert (earlier_work(t.trace()) is not None) is held
    assert step_period(t.trace()) == pytest.approx(3_100_000 if held else 8_000_000, rel=0.01)


@pytest.mark.parametrize(("until", "held"), [(300, True), (5000, False)])
def test_another_stream_may_have_been_free_meanwhile(until: float, held: bool) -> None:
    """A small kernel ran on one stream; another's first work begins late, unless work held it that is recorded."""
    t = TraceBuilder()
    with t.step(0, 8000):
        t.launch("small", at=10, lasts=until - 11, stream=9)
        t.launch("kernel", at=100, lasts=1000, begins=5000)
    assert (earlier_work(t.trace()) is not None) is held


def test_a_large_copy_that_is_staged_first_was_not_held() -> None:
    """Its own length says how long that may take: 4 ms before a copy of 1 ms."""
    t = TraceBuilder()
    with t.step(0, 8000):
        t.call("cudaMemcpyAsync", 100, 5000, correlation=77)
        copy = {"device": 0, "stream": 7, "correlation": 77}
        t.event(ph="X", cat="gpu_memcpy", name="Memcpy HtoD", pid=0, tid=7, ts=4000, dur=1000, args=copy)
        t.launch("kernel", at=6000, lasts=1000)
    assert earlier_work(t.trace()) is None


def test_a_wait_for_the_step_before_is_no_time_of_this_one() -> None:
    """The host waits 5 ms for the step before, then takes 3 ms; the device is done 4 ms after it took this one up."""
    t = TraceBuilder()
    t.event(ph="X", cat="kernel", name="before", pid=0, tid=7, ts=0, dur=5000, args={"device": 0, "stream": 7})
    with t.step(0, 8000):
        t.call("cudaStreamSynchronize", 0, 5000)
        t.launch("kernel", at=5000, lasts=3000)
        t.launch("kernel", at=7000, lasts=999)
    trace = t.trace()
    assert earlier_work(trace) == Interval(0, 5_000_000)
    assert step_period(trace) == pytest.approx(4_000_000)


def test_a_host_that_doesnt_wait_takes_its_time_all_the_same() -> None:
    """The device works off the step before for 5 of the host's 8 ms, and is done 0.1 ms behind it."""
    t = TraceBuilder()
    t.event(ph="X", cat="kernel", name="before", pid=0, tid=7, ts=0, dur=5000, args={"device": 0, "stream": 7})
    with t.step(0, 8000):
        t.launch("kernel", at=7900, lasts=200)
    assert step_period(t.trace()) == pytest.approx(8_000_000)


def test_a_window_without_steps_is_the_hosts_part() -> None:
    """It spans its first launch until the op of its last one is over: work before and after is left out."""
    t = TraceBuilder()
    t.op("aten::randn", 0, 4000)
    t.launch("kernel", at=5000, lasts=100)
    with t.op("aten::mul", 5500, 5600):
        t.launch("kernel", at=5510, lasts=300)
    t.op("aten::add", 6000, 7000)
    trace = t.trace()
    assert step_intervals(trace) == (Interval(5_000_000, 5_600_000),)
    assert later_work(trace) == Interval(5_600_000, 5_811_000)
    assert step_period(trace) == pytest.approx(811_000)


def test_the_profilers_own_synchronize_is_in_no_window() -> None:
    """The program's last one is."""
    t = TraceBuilder()
    t.launch("kernel", at=0, lasts=500)
    t.synchronize(at=100, api="cudaStreamSynchronize")
    t.synchronize(at=900)
    assert step_intervals(t.trace()) == (Interval(0, 502_000),)


def test_a_window_begins_with_the_loader_before_its_first_launch() -> None:
    """With the last of several."""
    t = TraceBuilder()
    for begin in (0, 100):
        t.scope("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", begin, begin + 90)
    t.launch("kernel", at=200, lasts=10)
    assert step_intervals(t.trace()) == (Interval(100_000, 201_000),)


def test_work_that_lost_its_launch_is_not_earlier() -> None:
    """On a stream that had work of the step's before it: its launch isn't recorded, but it can't be older."""
    t = TraceBuilder()
    with t.step(0, 1000):
        t.launch("kernel", at=10, lasts=100)
    lost = {"device": 0, "stream": 7}
    t.event(ph="X", cat="kernel", name="lost", pid=0, tid=7, ts=500, dur=100, args=lost)
    t.event(ph="X", cat="kernel", name="lost", pid=0, tid=8, ts=500, dur=100, args={**lost, "stream": 8})
    assert earlier_work(t.trace()) is None


def test_what_the_device_does_behind_the_last_step_is_reported() -> None:
    """It spans the host's end to the device's."""
    t = TraceBuilder()
    with t.step(0, 1000):
        t.launch("kernel", at=10, lasts=3000)
    assert later_work(t.trace()) == Interval(1_000_000, 3_011_000)
    assert later_work(with_steps(t.trace(), as_one_step=True)) == Interval(11_000, 3_011_000)


def served(*steps: tuple[str, float]) -> TraceBuilder:
    """Ranges of these names and lengths, one behind the other, with a launch in each."""
    t, at = TraceBuilder(), 0.0
    for name, lasts in steps:
        with t.scope(name, at, at + lasts):
            t.launch(at=at + 1, lasts=10)
        at += lasts
    return t


def test_steps_are_grouped_by_phase_and_batch() -> None:
    """Prefill first; of one phase what takes the most time in all."""
    t = served(
        ("step[EXTEND bs=2 toks=900]", 5000),
        ("step[DECODE bs=1]", 700),
        ("step[DECODE bs=2]", 1000),
        ("step[DECODE bs=2]", 1200),
        ("step[DECODE bs=2]", 4000),
    )
    assert phases_of(t.trace()) == (
        PhaseSummary(ServingPhase.PREFILL, 2, 1, 5000.0),
        PhaseSummary(ServingPhase.DECODE, 2, 3, 1200.0),
        PhaseSummary(ServingPhase.DECODE, 1, 1, 700.0),
    )


def test_steps_of_one_phase_need_no_table() -> None:
    """The step's own numbers say all; so they do where no framework marks the steps."""
    assert phases_of(served(("step[DECODE bs=2]", 1000), ("step[DECODE bs=4]", 1000)).trace()) == ()
    t = TraceBuilder()
    for start in t.steps(2, lasts=100):
        t.launch(at=start + 1, lasts=10)
    assert phases_of(t.trace()) == ()
