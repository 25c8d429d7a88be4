"""Every replay keeps two rules, for any step: no removal costs time, and no step beats its host or its device."""

from __future__ import annotations

import itertools

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from syncscan.model.analysis import Analysis
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

_settings = settings(
    max_examples=min(25, settings().max_examples), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


def _subsets(analysis: Analysis) -> list[list[str]]:
    """Selectors that grow: nothing, one finding, two, …, all."""
    ids = [f"id:{f.id}" for f in real(analysis)]
    return [ids[:k] for k in range(len(ids) + 1)]


def _projections(analysis: Analysis) -> list[Projection]:
    return [analysis.whatif(*chosen) for chosen in _subsets(analysis)]


@_settings
@given(_PLANS)
def test_removing_nothing_reproduces_the_observed_step(plan: list[Item]) -> None:
    """With nothing removed the replay takes the observed step's time, within 2 %, and predicts just that."""
    p = analyzed(plan).whatif()
    assert abs(p.baseline_us / p.observed_us - 1) <= 0.02
    assert p.predicted_us == p.baseline_us


@_settings
@given(_PLANS)
def test_no_projection_beats_host_or_device(plan: list[Item]) -> None:
    """No projected step is shorter than the host's own work in it, or than the device's."""
    for p in _projections(analyzed(plan)):
        assert p.predicted_us * _ROUNDING >= p.host_limit_us
        assert p.predicted_us * _ROUNDING >= p.device_limit_us


@_settings
@given(_PLANS)
def test_removing_more_never_costs_time(plan: list[Item]) -> None:
    """Each further removal leaves the step as long or shorter, and none makes it longer than it was."""
    times = [p.predicted_us for p in _projections(analyzed(plan))]
    assert all(after <= before * _ROUNDING for before, after in itertools.pairwise(times))
    assert max(times) <= times[0] * _ROUNDING


@_settings
@given(_PLANS)
def test_order_of_removal_does_not_matter(plan: list[Item]) -> None:
    """Findings named in another order give the same step."""
    analysis = analyzed(plan)
    chosen = _subsets(analysis)[-1]
    assert analysis.whatif(*chosen).predicted_us == analysis.whatif(*chosen[::-1]).predicted_us


@_settings
@given(_PLANS)
def test_a_range_holds_its_projection(plan: list[Item]) -> None:
    """The prediction lies inside the range that is given with it."""
    for p in _projections(analyzed(plan)):
        low, high = p.range_us
        assert low <= p.predicted_us * _ROUNDING
        assert p.predicted_us <= high * _ROUNDING
