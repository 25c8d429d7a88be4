"""Syncs and launches projected together."""

from __future__ import annotations

import pytest

from syncscan import api
from syncscan.errors import UsageError
from syncscan.model.analysis import Analysis
from syncscan.model.projection import Projection
from syncscan.whatif.joint import DYNAMIC, STAYS_EAGER
from tests.builder import TraceBuilder
from tests.networks import ops, read

LAYER = ("aten::addmm", "aten::gelu")
STEP = 2000


def network(reads: int, rounds: int = 10, op: str = "item") -> Analysis:
    """Steps that their launches hold: rounds of five layers, of which the first few read something back in the loop."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=STEP):
        at = start + 10.0
        for number in range(rounds):
            if number < reads:
                at = read(t, at) + 1 if op == "item" else _nonzero(t, at) + 1
            at = ops(t, LAYER * 5, at)
    return api.analyze_trace(t.trace(), step_ms=STEP / 1e3)


def _nonzero(t: TraceBuilder, at: float) -> float:
    t.exact(at + 4.5, ("net.py", 7, "forward"), module="Net")
    return t.sync("aten::nonzero", at=at)


def shares(analysis: Analysis, *remove: str) -> dict[str, float]:
    """The step launched each way, as a part of the step as it is."""
    ways = ("eager", "compile", "reduce-overhead", "graph")
    projections = {way: analysis.whatif(*remove, launches=way) for way in ways}
    return {way: p.predicted_us / p.baseline_us for way, p in projections.items()}


def test_a_sync_in_a_loop_keeps_a_compile_from_gaining() -> None:
    """Neither the sync's removal nor CUDA graphs gain alone; both together take most of the step away."""
    analysis = network(reads=10)
    alone, both = shares(analysis), shares(analysis, "all")
    assert alone["reduce-overhead"] == pytest.approx(1.0, abs=0.02)
    assert alone["compile"] > 1.0
    assert both["eager"] > 0.85
    assert both["reduce-overhead"] < 0.5


def test_one_sync_outside_of_a_loop_leaves_two_graphs() -> None:
    """A compile gains with it nearly as much as without."""
    analysis = network(reads=1)
    alone, both = shares(analysis), shares(analysis, "all")
    assert both["reduce-overhead"] < alone["reduce-overhead"] < 0.6


def test_each_way_to_launch_saves_more_of_the_host_than_the_one_before() -> None:
    """A compile keeps a launch for each kernel, CUDA graphs one for each piece, a graph of the program's own less."""
    without = shares(network(reads=0))
    assert without["eager"] == pytest.approx(1.0)
    assert without["graph"] <= without["reduce-overhead"] < without["compile"] < 1.0


@pytest.mark.parametrize("way", ["eager", "compile", "reduce-overhead", "graph"])
def test_a_projection_lies_within_its_range(way: str) -> None:
    """And says how it is launched."""
    for remove in ((), ("all",)):
        p: Projection = network(reads=3).whatif(*remove, launches=way)
        assert p.range_us[0] <= p.predicted_us <= p.range_us[1]
        assert p.launches == way


def test_it_is_reported_that_a_function_stays_eager() -> None:
    """While the sync in its loop stays; without it nothing is said."""
    analysis = network(reads=10)
    assert STAYS_EAGER in analysis.whatif(launches="compile").notes
    assert STAYS_EAGER not in analysis.whatif("all", launches="compile").notes


def test_it_is_reported_that_cuda_graphs_are_recorded_anew_for_each_size() -> None:
    """Where a data-dependent shape stays within the network; for a read value, or without CUDA graphs, it isn't."""
    analysis = network(reads=1, op="nonzero")
    assert DYNAMIC in analysis.whatif(launches="reduce-overhead").notes
    assert DYNAMIC not in analysis.whatif(launches="compile").notes
    assert DYNAMIC not in analysis.whatif("all", launches="reduce-overhead").notes
    assert DYNAMIC not in network(reads=1).whatif(launches="reduce-overhead").notes


def test_a_step_that_is_compiled_already_is_not_compiled_again() -> None:
    """The question is refused, with what to record instead."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=100):
        with t.op("Torch-Compiled Region: 0/0", start + 10, start + 60):
            ops(t, LAYER, start + 20)
    analysis = api.analyze_trace(t.trace())
    with pytest.raises(UsageError, match="already compiled"):
        analysis.whatif(launches="compile")
    with pytest.raises(UsageError, match="no way to launch"):
        analysis.whatif(launches="fast")
