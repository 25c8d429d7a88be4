"""Projections of steps with an obvious answer are right."""

from __future__ import annotations

import time

import pytest

from syncscan import api
from syncscan.model.analysis import Analysis
from syncscan.model.finding import Severity
from syncscan.model.step import Bound
from syncscan.model.trace import NONE
from syncscan.whatif import replay
from tests.builder import TraceBuilder
from tests.whatif.story import Item, analyzed, profiled, real, told

HELD: list[Item] = [("launch", 500.0), ("read", 0.0), ("work", 400.0)]
"""The device is busy 500 µs, then the host 400 µs, in turn; without the read-back they work at the same time."""
CHAIN: list[Item] = [("launch", 500.0), ("read", 0.0), ("wait", 0.0), ("work", 400.0)]
"""The steps with a second wait behind the first: either alone still blocks the host."""


def alone(analysis: Analysis) -> list[float]:
    """Return the saving of each finding alone, in µs."""
    return [-1.0 if f.recoverable_us is None else f.recoverable_us for f in real(analysis)]


def test_a_wait_that_keeps_the_device_idle_is_worth_what_the_step_gains() -> None:
    """Host and device work in turn, 900 µs a step; together they take the device's 500 µs, and that bounds it.

    The read-back's own copies go with it: 2 µs stay of the 8 that it keeps the device busy.
    """
    p = profiled(analyzed(HELD)).whatif("all")
    assert p.baseline_us == pytest.approx(912, abs=5)
    assert p.predicted_us == pytest.approx(502, abs=3)
    assert p.bound_after is Bound.DEVICE


def test_a_wait_that_only_passes_on_saves_nothing() -> None:
    """Without the first of two waits the second takes over all of it: nothing is recovered, all is moved."""
    analysis = profiled(analyzed(CHAIN))
    assert max(alone(analysis)) < 15
    reads = next(f for f in real(analysis) if f.rule == "item")
    assert reads.recoverable_us is not None
    assert reads.moved_us == pytest.approx(reads.wait_us, rel=0.02)
    assert analysis.whatif("all").saving_us == pytest.approx(400, abs=15)


def test_a_device_bound_step_has_nothing_to_gain() -> None:
    """A wait of nearly the whole step is worth nothing where the device is busy all along, and its severity is low."""
    analysis = profiled(analyzed([("launch", 50.0), ("launch", 5000.0), ("read", 0.0), ("work", 20.0)]))
    (finding,) = real(analysis)
    assert finding.wait_us > 4900
    assert finding.recoverable_us is not None
    assert finding.recoverable_us < 0.01 * analysis.step.observed_us
    assert finding.severity is Severity.LOW


def test_findings_are_sorted_by_what_they_recover() -> None:
    """The finding that saves the most comes first, whichever waits longer."""
    plan: list[Item] = [
        ("launch", 100.0),
        ("read", 0.0),
        ("work", 2000.0),
        ("launch", 900.0),
        ("wait", 0.0),
        ("work", 850.0),
    ]
    gains = alone(profiled(analyzed(plan)))
    assert gains == sorted(gains, reverse=True)
    assert gains[0] > 500


def test_backward_on_another_thread_is_one_sequence_with_the_step() -> None:
    """While the autograd thread works the main thread waits for it: the host's own time is the sum of the two."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=1000):
        t.launch("forward", at=start + 300, lasts=20)
        with t.thread("pt_autograd_0"):
            for k in range(6):
                with t.op("MmBackward0", start + 400 + 50 * k, start + 440 + 50 * k):
                    t.launch("backward", at=start + 410 + 50 * k, lasts=20)
        t.launch("optimizer", at=start + 900, lasts=20)
    p = api.analyze_trace(t.trace(), step_ms=1.0).whatif()
    assert p.host_limit_us == pytest.approx(1000, rel=0.01)


def test_a_loader_thread_that_copies_beside_the_step_adds_no_host_time() -> None:
    """A thread that launches in between, all along, is a sequence of its own."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=1000):
        for k in range(9):
            t.launch("kernel", at=start + 100 * k + 10, lasts=20)
            with t.thread("loader", tid=300):
                t.copy("Memcpy HtoD (Pinned -> Device)", at=start + 100 * k + 60, lasts=5, stream=20)
    p = api.analyze_trace(t.trace(), step_ms=1.0).whatif()
    assert p.baseline_us == pytest.approx(1000, rel=0.01)
    assert p.host_limit_us == pytest.approx(1000, rel=0.01)


def test_the_launch_queue_holds_a_host_that_runs_ahead() -> None:
    """2,000 launches of 10 µs each, then 15 ms of host time: 1,024 wait in the queue (10.2 ms), so the device runs dry
    for 4.8 ms; with an endless queue the step would take the device's 20 ms.
    """
    plan: list[Item] = [*[("launch", 10.0)] * 2000, ("work", 1.0), ("read", 0.0), ("work", 15000.0)]
    p = profiled(analyzed(plan, steps=2)).whatif("all")
    assert p.predicted_us == pytest.approx(24_400, abs=100)


def test_kernels_of_a_graph_launch_follow_one_another() -> None:
    """All kernels of one CUDA graph launch count, though only one call launched them."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=1000):
        end = t.launch("first", at=start + 10, lasts=300)
        call = t.events[-1]["args"]["correlation"]
        for k in range(2):
            t.event(
                ph="X", cat="kernel", name="node", pid=0, tid=7, ts=end + 1 + 151 * k, dur=150,
                args={"device": 0, "stream": 7, "correlation": call},
            )  # fmt: skip
        t.call("cudaDeviceSynchronize", start + 20, end + 310)
    p = api.analyze_trace(t.trace(), step_ms=1.0).whatif("all")
    assert p.device_limit_us == pytest.approx(600, rel=0.02)


def test_an_event_edge_keeps_streams_in_order() -> None:
    """Work that a stream may only begin after another stream's event stays behind it when the sync is gone."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=1300):
        t.launch("produce", at=start + 10, lasts=500, stream=7)
        t.call("cudaEventRecord", start + 12, start + 13)
        t.call("cudaStreamWaitEvent", start + 14, start + 15)
        t._free[0, 13] = t.free_at(7)
        t.launch("consume", at=start + 16, lasts=500, stream=13)
        t.call("cudaEventRecord", start + 18, start + 19)
        t.call("cudaStreamWaitEvent", start + 20, start + 21)
        t._free[0, 7] = t.free_at(13)
        t.launch("finish", at=start + 22, lasts=20, stream=7)
        t.synchronize(at=start + 30)
    p = api.analyze_trace(t.trace(), step_ms=1.3).whatif("all")
    assert p.predicted_us > 1000


def test_a_known_step_time_calibrates_the_replay() -> None:
    """With the unprofiled step's time the replay of the step as it was takes just that: the host is scaled."""
    p = analyzed([("work", 1000.0), ("launch", 50.0), ("read", 0.0)], step_ms=0.6).whatif()
    assert p.baseline_us == pytest.approx(600, rel=0.001)
    assert p.observed_us == 600
    assert p.profiled_us == pytest.approx(1060, rel=0.02)
    assert p.calibrated
    assert p.host_scale == pytest.approx(0.54, abs=0.03)


def test_without_a_step_time_the_projection_says_whose_time_it_is() -> None:
    """Without the unprofiled step's time the numbers stay those of the profiled step, and a note says so."""
    p = analyzed(HELD).whatif("all")
    assert p.baseline_us == pytest.approx(p.profiled_us, rel=0.02)
    assert not p.calibrated
    assert "hold for the profiled step" in p.notes[0]


def test_a_device_that_was_slower_without_the_profiler_is_stretched() -> None:
    """Where the device sets the pace, no host explains another step time: the device's work is scaled."""
    p = analyzed([("launch", 2000.0), ("work", 20.0), ("read", 0.0)], step_ms=2.6).whatif()
    assert p.baseline_us == pytest.approx(2600, rel=0.01)
    assert any("clocks" in note for note in p.notes)


def test_timing_synchronizes_are_kept_on_request() -> None:
    """With keep_timing an explicit synchronize stays, though `all` names it."""
    analysis = profiled(analyzed([("launch", 500.0), ("wait", 0.0), ("work", 400.0)]))
    assert analysis.whatif("all").saving_us > 300
    assert analysis.whatif("all", keep_timing=True).removed == ()


def test_a_trace_without_steps_is_one_step() -> None:
    """Without marks the whole trace is replayed."""
    t = TraceBuilder()
    t.launch("kernel", at=10, lasts=500)
    t.sync("aten::nonzero", at=20)
    t.launch("kernel", at=900, lasts=100)
    p = api.analyze_trace(t.trace()).whatif()
    assert p.baseline_us == pytest.approx(991, rel=0.02)


def test_a_trace_without_syncs_projects_to_itself() -> None:
    """Nothing to remove is no error: the projection is the observed time."""
    p = analyzed([("launch", 100.0), ("work", 300.0)]).whatif("all")
    assert p.removed == ()
    assert p.predicted_us == p.baseline_us


def test_a_step_of_3000_launches_is_replayed_by_its_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Launches between two waits are one node, so that a projection takes little time."""
    nodes: list[int] = []
    step = replay.ReplayState.step

    def counted(state: replay.ReplayState, program: replay.Scaled, removed: frozenset[int]) -> None:
        nodes.append(len(program.program.nodes))
        step(state, program, removed)

    monkeypatch.setattr(replay.ReplayState, "step", counted)
    plan: list[Item] = [*[("launch", 3.0)] * 500, ("read", 0.0)] * 6
    analysis = api.analyze_trace(told(plan, steps=1, warm_up=0).trace())
    nodes.clear()
    analysis.whatif("all", step_ms=10.0)
    assert 6 < len(nodes) < 60
    assert 12 < max(nodes) < 36


def test_a_removal_that_changes_none_of_the_replayed_steps_is_not_replayed() -> None:
    """Most of hundreds of findings wait in steps that aren't replayed: removing one of those changes nothing."""
    step = analyzed([("launch", 100.0), ("work", 300.0), ("read", 0.0)], step_ms=0.5).projector.calibrated()
    waiting, elsewhere = frozenset({NONE, *range(9)}), frozenset({10_000})
    before = replay.steady(step.replay)
    assert replay.steady(step.replay, elsewhere) is before
    assert replay.steady(step.replay, elsewhere, with_ops=True) is before
    assert replay.steady(step.replay, waiting) is not before


@pytest.mark.bench
def test_a_step_of_20000_events_replays_in_half_a_second() -> None:
    """Projecting a step with 10,000 launches, their kernels and 20 syncs takes less than 0.5 s."""
    plan: list[Item] = [*[("launch", 3.0)] * 500, ("read", 0.0)] * 6
    analysis = api.analyze_trace(told(plan, steps=1, warm_up=0).trace())
    begin = time.process_time()
    analysis.whatif("all", step_ms=10.0)
    assert time.process_time() - begin < 0.5


def test_the_stream_of_a_synchronize_is_found_by_when_it_returned() -> None:
    """A synchronize of another stream than the one last launched on returned with that stream: removing it frees the
    host of it.
    """
    t = TraceBuilder()
    for start in t.steps(4, lasts=1500):
        done = t.launch("copy", at=start + 10, lasts=900, stream=13)
        t.launch("kernel", at=start + 20, lasts=50, stream=7)
        t.call("cudaStreamSynchronize", start + 30, done + 2)
    p = api.analyze_trace(t.trace(), step_ms=1.5).whatif("all")
    assert p.saving_us > 500
