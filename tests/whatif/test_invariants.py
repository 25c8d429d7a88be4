"""Every replay keeps two rules, for any step: no removal costs time, and no step beats its host or its device."""

from __future__ import annotations

import itertools

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from syncscan.model.projection import Projection
from tests.whatif.story import Item, analyzed, real

_ITEMS = st.one_of(
    st.tuples(st.just("work"), st.sampled_from([20.0, 150.0, 900.0])),
    st.tuples(st.sampled_from(["launch", "launch", "side"]), st.sampled_from([2.0, 40.0, 300.0, 1500.0])),
    st.tuples(st.sampled_from(["read", "wait"]), st.just(0.0)),
)
_BEGIN: list[Item] = [("work", 800.0), ("launch", 40.0)]
_PLANS = st.lists(_ITEMS, min_size=1, max_size=14).map(lambda plan: [*_BEGIN, *plan])
_ROUNDING = 1.001


@settings(max_examples=min(25, settings().max_examples), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_PLANS)
def test_each_projection_of_any_step_keeps_the_rules(plan: list[Item]) -> None:
    """Removing nothing, one finding, two, …, all."""
    analysis = analyzed(plan)
    ids = [f"id:{f.id}" for f in real(analysis)]
    projections = [analysis.whatif(*ids[:k]) for k in range(len(ids) + 1)]
    reproduces_the_observed_step(projections[0])
    for p in projections:
        beats_neither_host_nor_device(p)
        lies_in_its_range(p)
    times = [p.predicted_us for p in projections]
    assert all(after <= before * _ROUNDING for before, after in itertools.pairwise(times)), "a removal costs no time"
    assert times[-1] == analysis.whatif(*ids[::-1]).predicted_us, "the order doesn't matter"


def reproduces_the_observed_step(p: Projection) -> None:
    """With nothing removed the replay takes the observed step's time, within 2 %, and predicts just that."""
    assert abs(p.baseline_us / p.observed_us - 1) <= 0.02
    assert p.predicted_us == p.baseline_us


def beats_neither_host_nor_device(p: Projection) -> None:
    """No projected step is shorter than the host's own work in it, or than the device's."""
    assert p.predicted_us * _ROUNDING >= p.host_limit_us
    assert p.predicted_us * _ROUNDING >= p.device_limit_us


def lies_in_its_range(p: Projection) -> None:
    """The prediction lies inside the range that is given with it."""
    low, high = p.range_us
    assert low <= p.predicted_us * _ROUNDING
    assert p.predicted_us <= high * _ROUNDING
