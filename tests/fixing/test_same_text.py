"""Two texts that differ are never quoted alike."""

from __future__ import annotations

import pytest

from syncscan.fixing.same_text import instead


def test_short_texts_are_whole() -> None:
    assert instead("loss 2", "loss 1") == "'loss 2' instead of 'loss 1'"


@pytest.mark.parametrize("equal", [0, 39, 40, 59, 60, 200])
def test_quotations_of_long_texts_differ(equal: int) -> None:
    """Wherever the difference is; one may also be the other's beginning."""
    for new, old in (("1" + "z" * 90, "2" + "z" * 90), ("", "end of a line " * 9)):
        left, right = instead("=" * equal + new, "=" * equal + old).split(" instead of ")
        assert left != right
        assert max(len(left), len(right)) < 70


def test_what_is_left_out_is_marked() -> None:
    """At both ends."""
    assert instead("a" * 70 + "b" + "c" * 70, "a" * 70 + "d" + "c" * 70).startswith("…'" + "a" * 20 + "bc")
    assert instead("a" * 70 + "b" + "c" * 70, "a" * 70 + "d").endswith("'aaaaaaaaaaaaaaaaaaaad'")
