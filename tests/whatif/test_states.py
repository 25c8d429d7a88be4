"""Which steps have states, and what is said of each."""

from __future__ import annotations

from pathlib import Path

import pytest

from syncscan import api
from syncscan.model.analysis import Analysis
from syncscan.model.habit import Basis
from syncscan.model.states import COMPILE, EAGER, REDUCE_OVERHEAD
from syncscan.model.step import Bound
from syncscan.whatif.states import WEIGHED
from tests.builder import TraceBuilder
from tests.networks import launch_bound as step
from tests.networks import ops, read
from tests.recordings import analyzed

LAYER = ("aten::addmm", "aten::gelu")
STEP = 2000


def test_a_step_with_syncs_has_five_states_beside_itself() -> None:
    """Compiled two ways as it is, and three ways without its syncs."""
    states = step(reads=10).states
    assert states is not None
    assert [(s.launches, s.removed) for s in states.each] == [
        (EAGER, True),
        (COMPILE, False),
        (COMPILE, True),
        (REDUCE_OVERHEAD, False),
        (REDUCE_OVERHEAD, True),
    ]
    assert states.baseline_us == pytest.approx(STEP)
    assert states.state(EAGER, False) is None


def test_without_syncs_two_states_are_left() -> None:
    """Nothing is removed, and there is no pair."""
    states = step().states
    assert states is not None
    assert [(s.launches, s.removed) for s in states.each] == [(COMPILE, False), (REDUCE_OVERHEAD, False)]
    assert (states.breaking, states.pair, states.eager_frames) == ((), None, False)


def test_syncs_within_the_network_and_a_compile_are_a_pair() -> None:
    """Both together gain most of the step; either alone nearly nothing, since the frame stays eager in the loop."""
    analysis = step(reads=10)
    states = analysis.states
    assert states is not None
    assert states.pair is not None
    assert states.breaking == tuple(f.id for f in analysis.findings)
    assert states.eager_frames
    assert states.baseline_us - states.pair.us > 0.5 * STEP
    assert max(states.alone_us) < 0.15 * STEP


def test_syncs_outside_of_the_network_are_no_part_of_the_pair() -> None:
    """They break no graph."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=STEP):
        at = read(t, ops(t, LAYER * 25, start + 10)) + 1
        at = ops(t, LAYER * 25, at)
        read(t, at, line=90, function="train", module="")
    analysis = api.analyze_trace(t.trace(), step_ms=STEP / 1e3)
    states = analysis.states
    assert states is not None
    (breaking,) = (f for f in analysis.findings if f.id in states.breaking)
    assert breaking.source is not None
    assert breaking.source.function == "forward"


@pytest.mark.parametrize("kernel_us", [5, 1500])
def test_only_a_step_that_its_launches_hold_has_states(kernel_us: float) -> None:
    """A device that works most of the step leaves little to launches."""
    assert (step(kernel_us=kernel_us).states is None) is (kernel_us > 5)


def test_a_step_that_no_replay_takes_has_no_states() -> None:
    """Where the timed steps are others than the recorded ones nothing is projected, a compile no more than a sync."""

    def timed(part: float) -> Analysis:
        t = TraceBuilder(syncscan={"unprofiled_step_us": part * STEP})
        for start in t.steps(4, lasts=STEP):
            ops(t, LAYER * 25, read(t, ops(t, LAYER * 25, start + 10)) + 1)
        return api.analyze_trace(t.trace())

    settled, other = timed(1.0), timed(3.5)
    assert (settled.step.bound is Bound.UNKNOWN, settled.states is None) == (False, False)
    assert (other.step.bound, other.states) == (Bound.UNKNOWN, None)
    assert all(remedy.basis is not Basis.REPLAY for remedy in other.remedies)


def test_a_step_that_another_thread_s_lock_stalls_has_no_states() -> None:
    """Its ops take so long for another reason than launching: compiled, they would take as long."""
    samples = Path(__file__).parents[2] / "sample_traces" / "stalls"
    held, logged = (analyzed(samples / f"{name}.json.gz") for name in ("lock_busy", "logging"))
    assert held.states is None
    assert logged.states is not None


def test_few_launches_are_not_worth_a_compile() -> None:
    """Ten in a step of two milliseconds: something else takes the time."""
    assert step(layers=5).states is None


def test_steps_whose_kernels_change_have_no_states() -> None:
    """A compile holds one shape and one path; where each step launches others it is made anew."""
    t = TraceBuilder()
    for number, start in enumerate(t.steps(4, lasts=STEP)):
        at = start + 10.0
        for layer in range(50):
            with t.op("aten::addmm", at, at + 8):
                t.launch(f"gemm_{number}_{layer}", at=at + 2, lasts=5)
            at += 20
    assert api.analyze_trace(t.trace(), step_ms=STEP / 1e3).states is None


def test_a_finding_s_gain_once_compiled_is_its_cost_beside_no_other() -> None:
    """The wait delays the compiled step by more than it costs today."""
    (finding,) = step(reads=10).findings
    assert finding.recoverable_us is not None
    assert finding.once_compiled_us is not None
    assert finding.once_compiled_us > 3 * finding.recoverable_us


def test_the_costliest_few_are_projected_once_compiled() -> None:
    """A replay each: others have no such gain."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=2 * STEP):
        at = start + 10.0
        for line in range(WEIGHED + 2):
            at = ops(t, LAYER * 10, read(t, at, line=10 * line + 5) + 1)
    findings = api.analyze_trace(t.trace(), step_ms=2 * STEP / 1e3).findings
    known = [f for f in findings if f.once_compiled_us is not None]
    assert (len(findings), len(known)) == (WEIGHED + 2, WEIGHED)


def test_launch_bound_gains_only_what_a_compile_reaches() -> None:
    """Nothing where a sync in a loop keeps the network eager; without that sync a good part of the step."""

    def gain(analysis: Analysis) -> float:
        (habit,) = (h for h in analysis.habits if h.rule == "launch-bound")
        assert habit.recoverable_us is not None
        return habit.recoverable_us

    assert gain(step(reads=2, layers=200)) == 0.0
    assert gain(step(layers=200)) > 0.4 * 4 * STEP


def test_launch_bound_gains_what_its_state_does() -> None:
    """Also beyond the time of the launches that it counts: one state has one range."""
    analysis = step(reads=1, layers=200)
    (habit,) = (h for h in analysis.habits if h.rule == "launch-bound")
    assert habit.recoverable_us is not None
    assert habit.recoverable_range_us is not None
    assert habit.cost_us is not None
    assert analysis.states is not None
    state = analysis.states.state(REDUCE_OVERHEAD, False)
    assert state is not None
    low, high = habit.recoverable_range_us
    assert habit.cost_us < high
    assert [analysis.states.baseline_us - us for us in (habit.recoverable_us, high, low)] == pytest.approx(
        [state.us, *state.range_us]
    )
