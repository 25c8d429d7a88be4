"""Each number that a projection rests on, from both sides: a trace whose answer it decides.

A change of a number by more than it is known to (`python -m benchmarks.mutants constants`) makes one of these fail.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from msgspec.structs import replace

from syncscan.api import analyze_trace
from syncscan.errors import UsageError
from syncscan.model.analysis import Analysis
from syncscan.model.habit import Change
from syncscan.model.projection import Projection
from syncscan.model.step import Bound
from syncscan.whatif import Projector, project_habits
from syncscan.whatif.calibrated_step import slowdown
from syncscan.whatif.groups import worth_removing
from tests.builder import TraceBuilder
from tests.report.example import LAUNCHES
from tests.whatif.story import Item, profiled, real, told

COOL = {"clocks": {"calibrated": {"power_w": 150, "power_limit_w": 700}}}
"""Capture's table of a chip with so much power to spare that it keeps its clock."""
IN_TURN: list[Item] = [("launch", 500.0), ("wait", 0.0), ("work", 400.0)]
"""The device is busy 500 µs, then the host 400 µs."""


def known(t: TraceBuilder, cool: bool = True) -> Analysis:
    """Its analysis as if the step took without the profiler what it took with it, on a device that keeps its clock."""
    if cool:
        t.metadata["syncscan"] = COOL
    return profiled(analyze_trace(t.trace()))


def edges(p: Projection) -> tuple[float, float]:
    """The range as parts of the step."""
    return p.range_us[0] / p.baseline_us, p.range_us[1] / p.baseline_us


# ------------------------------------------------------------------ how wide a range is


def test_a_step_is_measured_to_1_percent() -> None:
    """With nothing removed and nothing else open, the range is 1 % to both sides."""
    assert edges(known(told(IN_TURN)).whatif()) == pytest.approx((0.99, 1.01), abs=0.001)


def test_the_model_leaves_a_tenth_of_a_saving_open() -> None:
    """1 % of the step and 10 % of what the projection saves, to both sides."""
    p = known(told(IN_TURN)).whatif("all")
    ratio = p.predicted_us / p.baseline_us
    slack = 0.01 + 0.10 * (1.0 - ratio)
    assert ratio == pytest.approx(0.55, abs=0.01)
    assert edges(p) == pytest.approx((ratio - slack, ratio + slack), abs=0.001)


def test_a_chip_of_unknown_power_may_lose_15_percent() -> None:
    """A device that loses all its pauses may run 15 % longer, where the trace says nothing of its power."""
    cool, unknown = known(told(IN_TURN)).whatif("all"), known(told(IN_TURN), cool=False).whatif("all")
    assert (unknown.range_us[1] - cool.range_us[1]) / cool.predicted_us == pytest.approx(0.15, abs=0.005)
    assert unknown.range_us[0] == cool.range_us[0]


@pytest.mark.parametrize(
    ("drawn", "limit", "busy", "expected"),
    [
        (600, 700, 0.7, 0.0612),
        (690, 700, 0.9, 0.0307),
        (100, 700, 0.1, 0.0),
        (700, 700, 0.3, 0.25),
        (0, 700, 0.5, 0.15),
    ],
)
def test_power_slows_a_chip_by_its_0_4th_power(drawn: float, limit: float, busy: float, expected: float) -> None:
    """((0.15 limit + (drawn - 0.15 limit) / busy) / limit) ** 0.4, at most a quarter; 15 % where nothing is known."""
    t = TraceBuilder(syncscan={"clocks": {"calibrated": {"power_w": drawn, "power_limit_w": limit}}})
    t.op("aten::add", 0, 1)
    assert slowdown(t.trace(), busy) == pytest.approx(expected, abs=0.0005)


def test_the_ranges_of_25_findings_are_sought_with_all_replays() -> None:
    """They are the findings that cost the most: only their ranges allow for a replacement without the op's own host
    time.
    """
    t = TraceBuilder()
    for start in t.steps(3, lasts=30 * 200):
        for k in range(30):
            at = start + 200 * k
            with t.scope(f"part {k}", at, at + 190), t.op("aten::repeat_interleave", at + 1, at + 185):
                t.sync("aten::item > aten::_local_scalar_dense", at=at + 10, wait=40 - k)
    matches = sorted(real(known(t)), key=lambda f: -(f.wait_us + f.bubble_us))
    most = [f.recoverable_range_us[1] - f.recoverable_us for f in matches if f.recoverable_us is not None]
    assert len(most) == 30
    assert min(most[:25]) > 70 + max(most[25:])


# ------------------------------------------------------------------ what bounds a step


def in_turn(device: float, host: float = 0.0, loader: float = 0.0) -> TraceBuilder:
    """Steps of 1,000 µs: the host launches, waits for so much device work, computes, loads, and idles in the rest."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=1000):
        if loader:
            name = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
            t.scope(name, start + 1000 - loader, start + 1000)
        t.launch("kernel", at=start + host, lasts=device)
        t.synchronize(at=start + host + 1)
    return t


@pytest.mark.parametrize(("device", "bound"), [(912, Bound.DEVICE), (888, Bound.SYNC)])
def test_a_device_that_works_nine_tenths_of_a_projected_step_bounds_it(device: float, bound: Bound) -> None:
    """With its sync kept, a step goes at the device's pace from 90 % on; below, host and device take turns."""
    assert known(in_turn(device)).whatif().bound_after is bound


@pytest.mark.parametrize(("device", "bound"), [(80, Bound.HOST), (115, Bound.SYNC)])
def test_a_host_that_waits_for_less_than_a_tenth_bounds_a_projected_step(device: float, bound: Bound) -> None:
    """With its sync kept, a step is the host's where it waits less than a tenth of it."""
    assert known(in_turn(device, host=500)).whatif().bound_after is bound


@pytest.mark.parametrize(("loader", "paced"), [(56, True), (44, False)])
def test_a_step_that_waits_a_twentieth_for_its_loader_goes_at_its_pace(loader: float, paced: bool) -> None:
    """With 5 % of the step or more, removing syncs gains nothing: the workers set the pace."""
    p = known(in_turn(400, loader=loader)).whatif("all")
    assert (p.bound_after is Bound.INPUT) is paced
    assert (p.saving_us == 0) is paced


# ------------------------------------------------------------------ the profiler's own time


def recorded(slices: int, **metadata: Any) -> Projection:
    """Steps of 1,000 µs of host time, in which so many ops are recorded, projected without a known step time."""
    t = TraceBuilder(**metadata)
    for start in t.steps(4, lasts=1000):
        t.launch("kernel", at=start + 1, lasts=20)
        for k in range(slices - 2):
            t.op("aten::add", start + 5 + 990 * k / slices, start + 5 + 990 * (k + 0.9) / slices)
    return analyze_trace(t.trace()).whatif()


def test_recording_a_slice_costs_2_5_us() -> None:
    """100 slices in 1,000 µs of host time: a quarter of it is the profiler's."""
    assert recorded(100).host_scale == pytest.approx(0.75, abs=0.01)


def test_only_what_the_replayed_threads_recorded_cost_them_time() -> None:
    """Counters of a network card, written as slices of no length of another process, don't raise the estimate."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=1000):
        for k in range(100):
            t.op("aten::add", start + 10 * k, start + 10 * k + 5)
            t.event(ph="X", cat="privateuse1_runtime", name="rx", pid=9, tid=9, ts=start + 10 * k, dur=0, args={})
        t.launch(at=start + 990, lasts=5)
    assert analyze_trace(t.trace()).whatif().host_scale == pytest.approx(0.75, abs=0.01)


def test_recording_python_frames_too_costs_1_8_times_that() -> None:
    """100 slices in 1,000 µs of host time, with stacks: 45 % of it is the profiler's."""
    assert recorded(100, with_stack=1).host_scale == pytest.approx(0.55, abs=0.01)


def test_an_estimate_leaves_the_program_a_third_of_its_time() -> None:
    """However many slices were recorded, 35 % is taken to be the program's."""
    assert recorded(600).host_scale == pytest.approx(0.35)


@pytest.mark.parametrize(("step_ms", "scale"), [(0.22, 0.21), (0.18, None), (0.5, 0.5), (1.45, 1.46), (1.6, None)])
def test_a_host_is_scaled_within_what_is_plausible(step_ms: float, scale: float | None) -> None:
    """A host-bound step explains a known time by its host, from 0.2 to 1.5 times; beyond that by nothing."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=1000):
        t.op("aten::add", start + 10, start + 15)
        t.launch("kernel", at=start + 20, lasts=4)
        t.synchronize(at=start + 22)
    analysis = analyze_trace(t.trace(), step_ms=step_ms)
    step = analysis.projector.calibrated()
    assert step.replay.scale == pytest.approx(1.0 if scale is None else scale, abs=0.02)
    assert (step.before.period == pytest.approx(1e6 * step_ms, rel=0.002)) is (scale is not None)
    if scale is None:
        with pytest.raises(UsageError, match=r"can't be projected\. The replay accounts for"):
            analysis.whatif()


@pytest.mark.parametrize(("step_ms", "replayed_ms"), [(1.5, 1.5), (1.2, 1.4), (2.9, 2.9), (3.3, 3.0)])
def test_a_device_is_stretched_within_what_clocks_explain(step_ms: float, replayed_ms: float) -> None:
    """A step of 2 ms of device work explains a known time by other clocks, from 0.7 to 1.5 times."""
    plan: list[Item] = [("launch", 2000.0), ("work", 5.0), ("read", 0.0)]
    p = analyze_trace(told(plan).trace(), step_ms=step_ms).whatif()
    assert p.baseline_us == pytest.approx(1000 * replayed_ms, rel=0.01)


@pytest.mark.parametrize(("step_ms", "expected"), [(2.05, True), (2.035, False), (1.96, True), (1.97, False)])
def test_clocks_that_differ_by_2_percent_are_noted(step_ms: float, expected: bool) -> None:
    """A step of 2,000 µs of device work, with its wait about 2,005, that took 1.5 % more or less has no note yet."""
    t = told([("launch", 2000.0), ("work", 5.0), ("read", 0.0)])
    notes = analyze_trace(t.trace(), step_ms=step_ms).whatif().notes
    assert any("clocks" in note for note in notes) is expected


@pytest.mark.parametrize(
    ("host", "off", "expected"), [(42, 1.003, False), (68, 1.003, True), (20, 1.0085, False), (20, 1.012, True)]
)
def test_a_host_that_moves_a_step_by_less_than_1_percent_is_not_sought(host: float, off: float, expected: bool) -> None:
    """Where half of what is estimated to be the profiler's (0.65 of this host's time) makes less of the step than that,
    and the estimate explains the known time as well: then the estimate stays.
    """
    t = TraceBuilder()
    for start in t.steps(4, lasts=2000 + host):
        t.launch("kernel", at=start, lasts=1990)
        t.synchronize(at=start + 3)
        for k in range(60):
            t.op("aten::add", start + 1995 + 0.05 * k, start + 1995.04 + 0.05 * k)
    p = analyze_trace(t.trace(), step_ms=(1.99415 + 0.35 * host / 1000) * off).whatif()
    assert (p.host_scale != pytest.approx(0.35)) is expected


# ------------------------------------------------------------------ which sets are worth removing


def removed(gains: Iterable[float]) -> list[tuple[int, ...]]:
    """The sets worth removing where each finding saves so many percent, by itself."""
    gains = list(gains)
    return [
        members
        for members, _, _ in worth_removing(lambda absent: 100.0 - sum(gains[n] for n in absent), range(len(gains)))
    ]


def together(*members: int, of: int) -> list[tuple[int, ...]]:
    """The sets worth removing where only these findings together save anything: half of the step."""

    def period(absent: frozenset[int]) -> float:
        return 50.0 if absent.issuperset(members) else 100.0

    return [tuple(sorted(members)) for members, _, _ in worth_removing(period, range(of))]


def test_a_set_must_save_a_hundredth() -> None:
    """1.1 % is worth a change, 0.9 % isn't."""
    assert removed([1.1]) == [(0,)]
    assert removed([0.9]) == []


def test_five_sets_are_sought() -> None:
    """Five of seven findings that save 10 % each are named."""
    assert len(removed([10.0] * 7)) == 5


def test_pairs_are_sought_among_the_first_ten() -> None:
    """The last two of ten are tried together, the eleventh and twelfth of twelve aren't."""
    requests: list[frozenset[int]] = []

    def period(absent: frozenset[int]) -> float:
        requests.append(absent)
        return 100.0 - len(absent)

    list(worth_removing(period, range(12)))
    pairs = {tuple(sorted(absent)) for absent in requests if len(absent) == 2}
    assert (8, 9) in pairs
    assert not [pair for pair in pairs if max(pair) > 9 and min(pair) > 0]


def test_forty_findings_are_weighed() -> None:
    """A saving of the fortieth is seen, one of the forty-first isn't."""
    assert removed([0.0] * 39 + [5.0]) == [(39,)]
    assert removed([0.0] * 40 + [5.0]) == []


@pytest.mark.parametrize(("third", "members"), [(0.8, (0, 1, 2)), (1.2, (0, 1, 2, 3))])
def test_a_finding_stays_out_of_a_set_that_it_adds_less_than_a_fiftieth_to(
    third: float, members: tuple[int, ...]
) -> None:
    """Three save 50 % together and nothing alone; a fourth with them adds 0.8 or 1.2 % of the step."""

    def period(absent: frozenset[int]) -> float:
        three = absent.issuperset({0, 1, 2})
        return 100.0 - 50.0 * three - third * (three and 3 in absent)

    (result,) = [found for found, _, _ in worth_removing(period, range(4)) if len(found) > 1]
    assert tuple(sorted(result)) == members


# ------------------------------------------------------------------ what is advised


@pytest.mark.parametrize(("work", "advised"), [(28.0, True), (24.0, False)])
def test_a_fiftieth_of_the_step_is_a_gain(work: float, advised: bool) -> None:
    """A sync that keeps the device idle for 2.2 % of the step is a gain; of 1.8 % it is none."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=1003 + work):
        t.launch("kernel", at=start + work, lasts=1000)
        t.synchronize(at=start + work + 1)
    analysis = known(t)
    assert analysis.step.outlook
    assert analysis.step.outlook.gains is advised


# ------------------------------------------------------------------ which steps are replayed


def test_six_steps_at_even_ranks_of_length_are_replayed() -> None:
    """Steps of rank 1, 3, 5, 7, 9 and 11 of thirteen are replayed, and the result is their mean."""
    lengths = [1000 * 1.3**rank for rank in range(13)]
    t, now = TraceBuilder(), 0.0
    for rank in (6, 0, 12, 3, 9, 1, 11, 5, 7, 2, 10, 4, 8):
        with t.step(now, now + lengths[rank]):
            t.launch("kernel", at=now + 10, lasts=10)
        now += lengths[rank]
    expected = sum(lengths[rank] for rank in (1, 3, 5, 7, 9, 11)) / 6
    assert analyze_trace(t.trace()).whatif().baseline_us == pytest.approx(expected, rel=0.002)


# ------------------------------------------------------------------ what the device does by itself


def test_the_device_pauses_1_us_between_kernels_that_it_never_had_queued() -> None:
    """Twenty kernels of 20 µs, each waited for; without the waits they follow one another, 1 µs apart."""
    plan: list[Item] = [item for k in range(20) for item in (("launch", 20.0 + k / 100), ("wait", 0.0))]
    work = sum(amount for _, amount in plan)
    assert known(told(plan)).whatif("all").predicted_us == pytest.approx(work + 20, abs=3)


@pytest.mark.parametrize(("gap", "replayed"), [(18, 18), (22, 1)])
def test_a_pause_of_20_us_between_queued_kernels_is_not_the_devices_own(gap: float, replayed: float) -> None:
    """Shorter ones are its own, and it makes them too where it had to wait for a launch in the trace."""
    t = TraceBuilder()
    for start in t.steps(3, lasts=1400):
        t.launch("first", at=start, lasts=50)
        t._free[0, 7] += gap
        t.launch("second", at=start + 2, lasts=50)
        for k in range(20):
            at = start + 150 + 55 * k
            t.launch(("first", "second")[k % 2], at=at, lasts=50)
            t.synchronize(at=at + 2)
    p = known(t).whatif("all")
    assert p.predicted_us == pytest.approx(22 * 50 + gap + 10 * replayed + 11, abs=12)


# ------------------------------------------------------------------ what a wait is made of


def own_us(p: Projection) -> float:
    """The host's own work in a projected step, on the recorded clock: the profiler's part counted in."""
    return p.host_limit_us / p.host_scale


def waiting(returns: float, api: str = "cudaDeviceSynchronize") -> TraceBuilder:
    """Steps of 1,000 µs: 500 µs of device work and a synchronize that returns so long after it."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=1000):
        done = t.launch("kernel", at=start, lasts=500)
        t.call(api, start + 10, done + returns)
    return t


def test_a_call_that_always_waited_would_cost_10_us_without() -> None:
    """The wait and its end take 499 of the step's 1,000 µs; 10 count as the call's own."""
    assert own_us(known(waiting(returns=8)).whatif()) == pytest.approx(1000 - 499 + 10, abs=2)


def test_a_call_that_waited_would_cost_what_the_shortest_tenth_of_its_name_do() -> None:
    """Sixteen that didn't wait take 3, 6, 9 … µs, four waited: the second to third shortest, 8.7 µs, is their own."""
    t = TraceBuilder()
    for number, start in enumerate(t.steps(4, lasts=1000)):
        done = t.launch("kernel", at=start, lasts=500)
        t.call("cudaDeviceSynchronize", start + 10, done + 2)
        for k in range(4):
            lasts = 3 * (4 * number + k + 1)
            t.call("cudaDeviceSynchronize", start + 550 + 60 * k, start + 550 + 60 * k + lasts)
    assert own_us(known(t).whatif()) == pytest.approx(1000 - 493 + 8.7, abs=0.5)


@pytest.mark.parametrize(("returns", "own"), [(150, 0), (240, 40)])
def test_a_host_that_goes_on_200_us_late_was_held_by_something_else(returns: float, own: float) -> None:
    """The part of a synchronize beyond that, after the device's end, stays when it is removed."""
    p = known(waiting(returns)).whatif("all")
    assert own_us(p) == pytest.approx(1000 - 491 - returns + own, abs=2)


def test_a_wait_that_only_a_row_shows_is_its_threads() -> None:
    """The row lies among the kernels of its stream, without a runtime call: 490 µs of the host's step go with it."""
    t = waiting(returns=1)
    for e in t.events:
        if e["name"] == "cudaDeviceSynchronize":
            e.update(name="Stream Sync", cat="cuda_sync", pid=0, tid=7)
            e["args"] = {"correlation": 99_999, "device": 0, "stream": 7}
    assert own_us(known(t).whatif()) == pytest.approx(1000 - 492 + 10, abs=2)


def test_the_op_that_asks_for_memory_stays_when_the_allocators_call_goes() -> None:
    """The 100 µs of cudaFree would be saved of the host's 1,000, not the 400 of the convolution around it."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=1000):
        t.launch("kernel", at=start, lasts=20)
        with t.op("aten::convolution", start + 100, start + 500):
            t.call("cudaMalloc", start + 110, start + 111)
            t.call("cudaFree", start + 120, start + 220)
    assert own_us(known(t).whatif("rule:allocator")) == pytest.approx(1000 - 100, abs=12)


@pytest.mark.parametrize("early", [4.5, 50])
def test_clocks_of_host_and_device_differ(early: float) -> None:
    """A synchronize that returned before the work's end waited for it, as nothing else can have held it."""
    assert own_us(known(waiting(-early)).whatif()) < 600


@pytest.mark.parametrize(("lasts", "expected"), [(56, True), (44, False)])
def test_the_stream_of_a_synchronize_of_50_us_is_sought(lasts: float, expected: bool) -> None:
    """One that lasts that long and isn't explained by the stream it is said to wait for, waited for another."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=1000):
        done = t.launch("copy", at=start, lasts=900, stream=13)
        t.launch("kernel", at=start + 5, lasts=20, stream=7)
        t.call("cudaStreamSynchronize", done + 2 - lasts, done + 2)
    rest = 1000 - lasts
    assert own_us(known(t).whatif()) == pytest.approx(rest + (10 if expected else lasts), abs=3)


def test_a_host_goes_on_10_us_after_the_device_where_no_wait_was_seen() -> None:
    """300 µs of work are done before the host asks; a host of half that speed-up waits for it, and 10 µs more."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=1000):
        t.launch("kernel", at=start, lasts=300)
        t.call("cudaDeviceSynchronize", start + 400, start + 401)
        for k in range(20):
            t.op("aten::add", start + 410 + k, start + 410.5 + k)
    p = analyze_trace(t.trace(), step_ms=0.6).whatif()
    assert p.host_scale == pytest.approx((600 - 301 - 10) / 600, abs=0.004)


@pytest.mark.parametrize(
    ("queued", "lasts", "launch_us"), [(930, 500, 0), (870, 500, 500), (930, 60, 0), (930, 40, 40)]
)
def test_a_launch_of_50_us_with_900_in_flight_met_a_full_queue(queued: int, lasts: float, launch_us: float) -> None:
    """Such a launch is no work of the host's; with fewer in flight, or shorter, it is."""
    t = TraceBuilder()
    with t.step(0, 100_000):
        for k in range(queued):
            t.launch("kernel", at=2 * k, lasts=100)
        t.launch("last", at=2000, lasts=100)
        t.events[-2]["dur"] = lasts
        t.launch("after", at=99_000, lasts=10)
    assert own_us(known(t).whatif()) == pytest.approx(100_000 - lasts + launch_us, abs=5)


@pytest.mark.parametrize(
    ("name", "slices", "is_one"), [("worker", 10, True), ("worker", 8, False), ("pt_autograd_0", 8, True)]
)
def test_a_thread_that_takes_turns_for_a_tenth_of_its_slices_goes_its_own_way(
    name: str, slices: int, is_one: bool
) -> None:
    """Twelve turns with the step's thread in 120 slices: the step goes on there; in 96 it is a thread beside it, unless
    it is autograd's, for which the step always waits.
    """
    t = TraceBuilder()
    for start in t.steps(12, lasts=1000):
        t.launch("first", at=start + 10, lasts=20)
        with t.thread(name, tid=300):
            for k in range(slices - 2):
                t.op("aten::add", start + 50 + 2 * k, start + 51 + 2 * k)
            t.launch("second", at=start + 100, lasts=400)
            t.synchronize(at=start + 102)
        t.launch("third", at=start + 900, lasts=20)
    assert (known(t).whatif("all").saving_us > 300) is is_one


# ------------------------------------------------------------------ what else may change


def test_a_habits_range_leaves_half_of_what_the_replay_leaves() -> None:
    """A step of 1,000 µs of which 900 go: 100 stay, so at most 50 more are gained, though 10 % of 900 are open."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=1000):
        t.launch("kernel", at=start + 2, lasts=20)
        for k in range(40):
            t.op("aten::add", start + 5 + 2 * k, start + 6 + 2 * k)
        t.scope("compute", start + 95, start + 995)
    analysis = known(t)
    trace = analysis.trace
    rows = [row for row in range(len(trace.slices)) if trace.name(row) == "compute"]
    host = tuple((int(trace.slices.track[r]), int(trace.slices.ts[r]), int(trace.slices.end[r])) for r in rows)
    habit = replace(LAUNCHES, cost_us=900.0, changes=(Change(host=host),))
    projector = Projector(trace, analysis.findings, analysis.step.unprofiled_us)
    (result,) = project_habits(projector, [habit])
    assert result.recoverable_us is not None
    saved = result.recoverable_us
    assert saved == pytest.approx(900, abs=5)
    assert result.recoverable_range_us[1] == pytest.approx(saved + 0.5 * (1000 - saved), abs=2)
    assert result.recoverable_range_us[0] == pytest.approx(saved - 0.01 * 1000 - 0.1 * saved, abs=2)


def test_a_step_that_the_host_bounds_doesnt_stretch_its_device() -> None:
    """885 µs of kernels in a host step of 1,000 µs: timed at 1,005 it is still the host that sets the pace."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=1000):
        t.launch("kernel", at=start + 2, lasts=885)
    projection = analyze_trace(t.trace(), step_ms=1.005).whatif()
    assert projection.device_limit_us == pytest.approx(885, rel=0.005)
    assert projection.bound_after is Bound.HOST
