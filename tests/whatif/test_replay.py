"""Steps are replayed until the next ones would be as they are, and no further."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syncscan.whatif import graph, replay
from syncscan.whatif.graph import Graph, Program
from tests.whatif.programs import EVENTS, FINDINGS, THREADS, programs

MORE = 12
"""Further cycles."""


@settings(max_examples=200, deadline=None)
@given(
    st.lists(programs(), min_size=1, max_size=3), st.frozensets(st.integers(0, FINDINGS - 1)), st.sampled_from([1, 2])
)
def test_where_all_is_as_much_later_it_goes_on_like_that(steps: list[Program], gone: frozenset[int], last: int) -> None:
    """Once all has moved by one time each further cycle takes it too, with the same waits, whatever led in."""
    ready = replay.prepare(Graph(tuple(steps), THREADS, ((0, 7), (0, 20)), EVENTS))
    state = replay.State(ready)

    def cycle() -> dict[int, float]:
        state.waits.clear()
        for scaled in ready.programs:
            state.step(scaled, gone)
        return dict(state.waits)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graph, "LEAD_IN", last)
        state.lead_in(ready.programs[-1], gone)
    pace = replay.Pace(state.mark())
    while not pace.steady:
        waits = cycle()
        pace.cycle(state.mark())
    for _ in range(MORE if pace.repeats else 0):
        before = state.ended()
        assert cycle() == pytest.approx(waits, abs=1e-2)
        moved = [now - then for now, then in zip(state.ended(), before, strict=True) if now]
        assert moved == pytest.approx(np.full(len(moved), pace.took), abs=1e-2)
