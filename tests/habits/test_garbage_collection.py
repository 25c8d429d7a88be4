"""Facts about collections of Python's garbage: what is blamed, and what that would gain."""

from __future__ import annotations

import pytest

from syncscan import api
from syncscan.model.habit import Basis
from tests.builder import MAIN, TraceBuilder


def collecting(*collections, steps=3, tid=MAIN, **capture):
    """Steps of 1 ms that the host bounds, and collections: begin and length in µs, and the generation if it isn't 2."""
    t = TraceBuilder()
    t.metadata["syncscan"] = {
        "unprofiled_step_us": 1000.0,
        "collections": [
            [t.base_ns + 1000 * at, t.base_ns + 1000 * (at + lasts), tid, *(generation or [2])]
            for at, lasts, *generation in collections
        ],
        **capture,
    }
    for start in t.steps(steps, lasts=1000):
        for k in range(20):
            t.launch("tiny", at=start + 45 * k, lasts=2)
    return t


def habit(builder):
    return {h.rule: h for h in api.analyze_trace(builder.trace()).habits}.get("garbage-collection")


def test_collections_of_every_step_are_gained_whole():
    """A `gc.collect()` of 300 of 1,000 µs, in each step."""
    flagged = habit(collecting((400, 300), (1400, 300), (2400, 300)))
    assert flagged.basis is Basis.REPLAY
    assert flagged.recoverable_us == pytest.approx(300, abs=5)
    assert flagged.recoverable_range_us[0] > 200
    assert flagged.per_step == 1.0
    assert flagged.evidence == (
        "1 collections per step (by generation 2: 1) block its thread for 300 µs, the longest 300 µs",
    )


def test_the_range_reaches_down_to_what_every_step_has():
    """The 600 µs of one are chance; the 100 µs of each aren't."""
    low, high = habit(collecting((400, 100), (1400, 100), (2300, 600))).recoverable_range_us
    assert 50 < low < 100
    assert high > 266


def test_of_rare_ones_nobody_knows_how_often_they_come():
    """One of three steps has one: at most its mean, and never severe."""
    flagged = habit(collecting((400, 300)))
    assert flagged.basis is Basis.UPPER_BOUND
    assert flagged.recoverable_us == pytest.approx(100)
    assert "1 of 3 recorded steps collect generation 2" in flagged.evidence[1]


def test_rare_ones_cost_no_more_than_what_steps_without_a_profiler_vary_by():
    """Their mean is 40 µs above their median."""
    flagged = habit(collecting((400, 300), unprofiled_mean_us=1040.0))
    assert flagged.recoverable_range_us == (0.0, pytest.approx(40))
    assert habit(collecting((400, 300), unprofiled_mean_us=1001.0)) is None


def test_a_full_collection_beside_young_ones_is_no_habit_of_every_step():
    """100 µs of young ones in each step are likely gained; the 600 of one step at most."""
    flagged = habit(collecting((400, 100, 0), (1400, 100, 0), (2200, 600, 2), (2900, 100, 0)))
    assert flagged.recoverable_us == pytest.approx(100, abs=5)
    assert flagged.recoverable_range_us[0] > 50
    assert flagged.recoverable_range_us[1] > 290
    assert "1 of 3 recorded steps collect generation 2" in flagged.evidence[1]


@pytest.mark.parametrize(
    "builder",
    [
        collecting(),
        collecting((400, 5), (1400, 5), (2400, 5)),
        collecting((400, 300), (1400, 300), (2400, 300), tid=MAIN + 5),
        collecting((4000, 300), (5000, 300)),
        collecting((-500, 300)),
    ],
    ids=["none", "short", "another thread's", "behind the steps", "before them"],
)
def test_what_does_not_hold_the_step_is_not_blamed(builder):
    """Only the step's own thread, in a step, for a time that can be measured."""
    assert habit(builder) is None


def test_a_collection_that_the_device_works_through_gains_nothing():
    """It works 980 of 1,000 µs: what the host does meanwhile costs nothing."""
    t = collecting((400, 300), (1400, 300), (2400, 300))
    for start in (0, 1000, 2000):
        t.launch("big", at=start + 1, lasts=930)
    assert habit(t) is None


def test_a_damaged_table_is_a_warning_and_no_habit():
    """A collection that ends before it begins."""
    analysis = api.analyze_trace(collecting((400, -10)).trace())
    assert [w for w in analysis.warnings if "'collections' is damaged" in w]
