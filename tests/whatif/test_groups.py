"""Which sets of findings are worth removing."""

from __future__ import annotations

from collections.abc import Callable

from syncscan.whatif.groups import worth_removing

Times = Callable[[frozenset[int]], float]


def sets(period: Times, count: int) -> list[tuple[int, ...]]:
    """The members of each set, sorted."""
    return [tuple(sorted(s.members)) for s in worth_removing(period, range(count))]


def test_three_that_pass_the_wait_on_are_one_set() -> None:
    """When only all three together save anything, they are one set, and a fourth that never matters isn't in it."""

    def period(gone: frozenset[int]) -> float:
        return 60.0 if {0, 1, 2} <= gone else 100.0

    assert sets(period, 4) == [(0, 1, 2)]


def test_what_saves_alone_comes_alone() -> None:
    """Independent savings are sets of one, the largest first."""
    gain = [5.0, 20.0, 10.0]
    assert sets(lambda gone: 100.0 - sum(gain[n] for n in gone), 3) == [(1,), (2,), (0,)]


def test_a_pair_beats_a_small_saving_alone() -> None:
    """Two that save 30 together and 1 alone are one set: their saving a change is larger than any one's."""

    def period(gone: frozenset[int]) -> float:
        return 70.0 if {0, 1} <= gone else 100.0 - len(gone & {0, 1})

    assert sets(period, 2) == [(0, 1)]


def test_noise_is_not_worth_a_change() -> None:
    """What saves less than a hundredth of the step is left alone."""
    assert sets(lambda gone: 100.0 - 0.2 * len(gone), 3) == []


def test_sets_save_on_top_of_those_before() -> None:
    """Each set tells the step before and after it."""
    found = list(worth_removing(lambda gone: 100.0 - 20.0 * len(gone), [0, 1]))
    assert [(s.before, s.after) for s in found] == [(100.0, 80.0), (80.0, 60.0)]
