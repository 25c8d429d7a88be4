"""Which sets of findings are worth removing."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from syncscan.whatif.groups import _smallest, worth_removing

Times = Callable[[frozenset[int]], float]


def sets(period: Times, count: int) -> list[tuple[int, ...]]:
    """The members of each set, sorted."""
    return [tuple(sorted(members)) for members, _, _ in worth_removing(period, range(count))]


def test_three_that_pass_the_wait_on_are_one_set() -> None:
    """When only all three together save anything, they are one set, and a fourth that never matters isn't in it."""

    def period(removed: frozenset[int]) -> float:
        return 60.0 if {0, 1, 2} <= removed else 100.0

    assert sets(period, 4) == [(0, 1, 2)]


def test_what_saves_alone_comes_alone() -> None:
    """Independent savings are sets of one, the largest first."""
    gain = [5.0, 20.0, 10.0]
    assert sets(lambda removed: 100.0 - sum(gain[n] for n in removed), 3) == [(1,), (2,), (0,)]


def test_a_pair_beats_a_small_saving_alone() -> None:
    """Two that save 30 together and 1 alone are one set: their saving a change is larger than any one's."""

    def period(removed: frozenset[int]) -> float:
        return 70.0 if {0, 1} <= removed else 100.0 - len(removed & {0, 1})

    assert sets(period, 2) == [(0, 1)]


def test_noise_is_not_worth_a_change() -> None:
    """A saving below a hundredth of the step is ignored."""
    assert sets(lambda removed: 100.0 - 0.2 * len(removed), 3) == []


def test_sets_save_on_top_of_those_before() -> None:
    """Each set tells the step before and after it."""
    matches = list(worth_removing(lambda removed: 100.0 - 20.0 * len(removed), [0, 1]))
    assert [(before, after) for _, before, after in matches] == [(100.0, 80.0), (80.0, 60.0)]


GROUPS = st.lists(st.tuples(st.frozensets(st.integers(0, 11), min_size=1, max_size=5), st.integers(1, 30)), min_size=1)


def test_of_two_that_keep_the_saving_one_stays() -> None:
    """Either of two does it: the one that waits longer stays, after one replay for each of forty."""
    requests = []

    def period(removed: frozenset[int]) -> float:
        requests.append(removed)
        return 60.0 if removed & {3, 17} else 100.0

    assert _smallest(period, list(range(40)), frozenset(), 100.0)[0] == (3,)
    assert len(requests) == 1 + 40 + 1


@given(GROUPS, st.permutations(range(12)))
def test_what_can_save_too_little_needn_t_be_replayed(
    groups: list[tuple[frozenset[int], int]], order: list[int]
) -> None:
    """With what each can save at most the sets are the same as without."""

    def period(removed: frozenset[int]) -> float:
        return 1000.0 - sum(saves for members, saves in groups if members <= removed)

    def most(number: int, absent: frozenset[int]) -> float:
        return sum(saves for members, saves in groups if number in members and not members <= absent)

    assert list(worth_removing(period, order, most=most)) == list(worth_removing(period, order))


def test_of_many_few_are_replayed() -> None:
    """Two of forty wait: each alone, both together, and what putting one back does."""
    requests = set()

    def period(removed: frozenset[int]) -> float:
        requests.add(removed)
        return 100.0 - 20.0 * (0 in removed) - 10.0 * (1 in removed)

    result = worth_removing(period, range(40), most=lambda number, absent: 20.0 * (number < 2))
    assert [members for members, _, _ in result] == [(0,), (1,)]
    assert len(requests) < 10


def test_a_small_saving_alone_does_not_hide_a_large_one_together() -> None:
    """A change that saves 0.9 % is worth nothing alone; five that save 4 % only together are less a change, and are."""

    def period(removed: frozenset[int]) -> float:
        return 100.0 - 0.9 * (0 in removed) - 4.0 * ({1, 2, 3, 4, 5} <= removed)

    assert sets(period, 6) == [(0, 1, 2, 3, 4, 5)]


def test_many_changes_that_save_next_to_nothing_each_are_worth_none() -> None:
    """Six that save 2.9 % together aren't worth six changes, six that save 3.1 % are."""
    for saves, worth in ((2.9, []), (3.1, [(0, 1, 2, 3, 4, 5)])):
        assert sets(lambda removed, saves=saves: 100.0 - saves * (len(removed) == 6), 6) == worth  # type: ignore[misc]
