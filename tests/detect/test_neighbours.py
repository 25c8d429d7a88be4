"""Which ops lie inside others that do work."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from syncscan.detect.neighbours import _covered
from syncscan.model.trace import NONE


@given(st.lists(st.tuples(st.integers(NONE, 400), st.booleans()), max_size=60), st.booleans())
def test_covered_by_any_ancestor(rows: list[tuple[int, bool]], chained: bool) -> None:
    """As a walk up from each row says, in any tree and in a single deep branch."""
    parent = [NONE if not i else i - 1 if chained else min(p, i - 1) for i, (p, _) in enumerate(rows)]
    worker = [works for _, works in rows]
    expected = []
    for row in range(len(rows)):
        around = []
        while (row := parent[row]) != NONE:
            around.append(worker[row])
        expected.append(any(around))
    assert _covered(np.array(parent, np.int32), np.array(worker, np.bool_)).tolist() == expected
