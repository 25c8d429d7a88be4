"""The step's numbers at the top of the page."""

from __future__ import annotations

import pytest

from syncscan.model.duration import within
from syncscan.report import render
from syncscan.report.tiles import tiles
from tests.networks import launch_bound


def test_syncs_that_keep_a_network_from_being_compiled_recover_what_both_changes_do() -> None:
    """Not what removing the syncs alone saves: the first change is both."""
    analysis = launch_bound(reads=10)
    assert analysis.states is not None
    assert analysis.states.pair is not None
    tile = tiles(analysis)[-1]
    limits = analysis.remedies[0].range_us
    saved = analysis.states.baseline_us - analysis.states.pair.us
    assert (tile.label, tile.value.split(" (")[0]) == ("recoverable, with a compile", within(saved, limits))


@pytest.mark.parametrize("kind", ["html", "text"])
def test_the_function_that_they_keep_eager_is_named(kind: str) -> None:
    """As code in the page."""
    name = "<code>Net.forward</code>" if kind == "html" else "`Net.forward`"
    assert f"{name} from being" in render(launch_bound(reads=10), kind)
