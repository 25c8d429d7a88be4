"""Gains are projected for more findings than can be replayed one by one."""

from __future__ import annotations

import random
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncscan import api
from syncscan.model.analysis import Analysis
from syncscan.whatif import gains
from syncscan.whatif.gains import REPLAYED, WEIGHED
from syncscan.whatif.replay import STEADY
from tests.builder import TraceBuilder
from tests.whatif.story import Item, analyzed, real, told

kinds = st.sampled_from(["launch", "side", "work", "read", "wait"])
plans = st.lists(st.tuples(kinds, st.floats(1, 300)), min_size=4, max_size=24)


@given(plans, st.randoms(use_true_random=False))
def test_nothing_saves_more_than_it_could_at_most(plan: list[Item], rng: random.Random) -> None:
    """A finding never saves more than its waits, its calls with their ops, and its copies last.

    Neither alone nor beside others that are gone.
    """
    analysis = analyzed(plan)
    step = analysis.projector.calibrated() if analysis.replayable else None
    for finding in real(analysis) if step else ():
        alone = analysis.whatif(f"id:{finding.id}", fix=True).saving_us
        assert alone <= step.most(step.number[finding.id]) + 1e-6 * analysis.step.observed_us
    numbers = [step.number[finding.id] for finding in real(analysis)] if step else []
    for number in numbers:
        absent = frozenset(n for n in numbers if n != number and rng.random() < 0.5)
        before, after = (step.after(removed).period for removed in (absent, absent | {number}))
        assert (before - after) * step.unit <= step.most(number, absent) + 2 * STEADY * step.before.period * step.unit


def test_a_short_call_gains_no_more_than_itself() -> None:
    """An error of the whole step, 1 % of 100 ms, isn't one of a call of 17 µs that finds the device idle."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=100_000):
        t.launch(at=start + 10, lasts=4)
        t.call("cudaDeviceSynchronize", start + 90_000, start + 90_017)
    analysis = api.analyze_trace(t.trace())
    (finding,) = analysis.findings
    assert finding.recoverable_us is not None
    assert finding.recoverable_range_us[1] <= 17.001
    assert analysis.step.recoverable_range_us is not None
    assert analysis.step.recoverable_range_us[1] <= 17.001


@cache
def many(count: int) -> tuple[Analysis, int]:
    """A step with so many reads, and how many are replayed alone: every tenth waits a hundred times longer."""
    plan = [item for k in range(count) for item in (("launch", 1000 if k % 10 == 0 else 10), ("read", 0), ("work", 5))]
    replayed: list[str] = []
    alone = gains._gained
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gains, "_gained", lambda step, f, quick: replayed.append(f.id) or alone(step, f, quick))
        return api.analyze_trace(told(plan, steps=2).trace()), len(replayed)


def test_replays_are_bounded() -> None:
    """Ten times as many findings need hardly more replays."""
    analysis, replayed = many(REPLAYED + 50)
    assert WEIGHED <= replayed < REPLAYED / 2
    assert len(analysis.findings) >= REPLAYED + 50
    for finding in analysis.findings:
        assert finding.recoverable_us is not None
        low, high = finding.recoverable_range_us
        assert low <= finding.recoverable_us <= high + 1e-9


@pytest.mark.parametrize(("count", "replayed_each"), [(90, True), (110, False)])
def test_two_hundred_are_replayed_each(count: int, replayed_each: bool) -> None:
    """Beyond that, findings that could save too little to measure aren't. Each read is two findings: warm-up has
    one.
    """
    analysis, replayed = many(count)
    assert (replayed == len(analysis.findings)) == replayed_each


def test_others_share_what_they_save_together() -> None:
    """Their gains add up to that and none is replayed; each one's own replay lies in its range."""
    analysis, _ = many(REPLAYED + 50)
    others = sorted(real(analysis), key=lambda f: f.wait_us + f.bubble_us)[: REPLAYED // 2]
    for finding in others[::20]:
        alone = analysis.whatif(f"id:{finding.id}", fix=True).saving_us
        assert finding.recoverable_us is not None
        assert finding.recoverable_range_us[0] <= alone <= finding.recoverable_range_us[1] + 1e-6


def test_up_to_that_many_are_replayed_alone() -> None:
    """A usual trace loses nothing: each gain is what its own replay says."""
    analysis, _ = many(WEIGHED + 15)
    for finding in analysis.findings:
        assert finding.recoverable_us is not None
        saving_us = analysis.whatif(f"id:{finding.id}", fix=True).saving_us
        assert finding.recoverable_us == pytest.approx(max(0.0, saving_us))
