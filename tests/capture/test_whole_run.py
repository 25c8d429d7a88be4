"""The account of a run by clocks put into its program, as `benchmarks.whole_run` compares it with a capture's."""

from __future__ import annotations

from benchmarks.whole_run import interval, of_clocks

MS = 1_000_000


def test_the_account_is_of_whole_cycles() -> None:
    """Two steps of 10 ms and a validation of 5: from its second occurrence to its last, 25 ms for two steps."""
    cycle = [("step", 10), ("step", 10), ("validation", 5)]
    changes, now = [], 0
    for name, ms in [*cycle * 5, ("end", 0)]:
        changes.append((name, now))
        now += ms * MS
    account = of_clocks(changes)
    assert (account.mean_us, account.shares) == (12_500, {"validation": 0.2})


def test_few_values_have_no_narrower_interval_than_all() -> None:
    """With six values the lowest and the highest hold the median with 97 %; of nine the second and the eighth."""
    assert interval([3, 1, 2, 6, 5, 4]) == (1, 6)
    assert interval(range(1, 10)) == (2, 8)
