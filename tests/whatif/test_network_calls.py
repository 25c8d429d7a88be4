"""How many calls of networks a pass holds: layers that repeat are one network's, what holds layers is called anew."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from syncscan.facts.network import ops_of
from syncscan.model.interval import Interval
from syncscan.whatif import network_calls as counted
from syncscan.whatif.network_calls import network_calls
from tests.builder import TraceBuilder
from tests.each import each
from tests.networks import ops

LAYER = ("aten::layer_norm", "aten::addmm", "aten::gelu")
TOWER = (*LAYER * 4, "aten::norm", "aten::div")


def calls(names: Sequence[str]) -> int:
    """Count the calls in a step of these ops."""
    t = TraceBuilder()
    with t.step(0, 10_000):
        ops(t, names, 10)
    trace = t.trace()
    return network_calls(trace, ops_of(trace, Interval(0, 10_000_000)))


@each(
    ("names", "expected"),
    [
        (LAYER * 12, 1),
        (("aten::embedding", *LAYER * 12, "aten::addmm"), 1),
        ((*LAYER * 2, "aten::norm") * 2, 1),
        (TOWER, 1),
        (TOWER * 2, 2),
        (TOWER * 3, 3),
        ((*("aten::addmm", "aten::tanh") * 5, *TOWER, "aten::mean", *TOWER), 3),
        (("aten::mul", "aten::add") * 40, 1),
    ],
    ids=["layers", "between_ends", "few_products", "tower", "two", "three", "generator_and_judge", "no_products"],
)
def test_what_holds_layers_and_repeats_is_called_anew(names: Sequence[str], expected: int) -> None:
    """Layers alone may be as many as a network has; a network that differs is one call more."""
    assert calls(names) == expected


def test_other_sizes_are_another_networks() -> None:
    """Kernels of the same names with other grids don't repeat."""
    t = TraceBuilder()
    with t.step(0, 10_000):
        ops(t, TOWER, ops(t, TOWER, 10, blocks=8), blocks=16)
    trace = t.trace()
    assert network_calls(trace, ops_of(trace, Interval(0, 10_000_000))) == 1


def test_a_pass_too_long_to_compare_is_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparisons grow with the square of the ops."""
    monkeypatch.setattr(counted, "MOST_OPS", 20)
    assert calls(TOWER * 2) == 1
