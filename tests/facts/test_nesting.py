"""The innermost of those around a row: by what each lies in, or by when each ends."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncscan.facts import paths
from syncscan.facts.paths import innermost_that, innermost_until
from syncscan.model.trace import NONE


@given(st.lists(st.tuples(st.integers(NONE, 400), st.booleans()), max_size=60), st.booleans())
def test_the_innermost_that_counts(rows: list[tuple[int, bool]], chained: bool) -> None:
    """As a walk up from each row says, in any tree and in a single deep branch."""
    parent = [NONE if not i else i - 1 if chained else min(p, i - 1) for i, (p, _) in enumerate(rows)]
    counts = [count for _, count in rows]
    expected = []
    for row in range(len(rows)):
        around = parent[row]
        while around != NONE and not counts[around]:
            around = parent[around]
        expected.append(around)
    assert innermost_that(np.array(counts, np.bool_), np.array(parent, np.int32)).tolist() == expected


@pytest.mark.parametrize("rounds", [0, 1, 32])
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 20)), max_size=40))
def test_the_last_before_it_that_ends_late_enough(rounds: int, drawn: list[tuple[int, int, int]]) -> None:
    """Found by doubling, one after the other and by both together, it is that of a look at all before, on its track."""
    times = sorted((track, begin, begin + length) for track, begin, length in drawn)
    track, begin, end = np.array(times, np.int64).reshape(-1, 3).T
    expected = [
        next((k for k in range(row)[::-1] if times[k][0] == on and times[k][2] > at), NONE)
        for row, (on, at, _) in enumerate(times)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "_ROUNDS", rounds)
        assert innermost_until(track.astype(np.int32), end, begin + 1).tolist() == expected
