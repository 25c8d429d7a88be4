"""The benchmarks of captures can be run: what they switch on is what there is, on a CPU as well."""

from __future__ import annotations

import importlib

import pytest

from benchmarks.whole_run import interval, of_clocks
from syncscan.capture import sync_lines

torch = pytest.importorskip("torch")
capture_cost = importlib.import_module("benchmarks.capture_cost")
capture_waits = importlib.import_module("benchmarks.capture_waits")


@pytest.mark.parametrize("part", capture_cost.PARTS)
def test_each_part_of_a_capture_goes_on_and_off(part: str) -> None:
    """Nothing of it stays for the next."""
    if part == "device and runtime calls" and not torch.cuda.is_available():
        pytest.skip("a profiler of a GPU's activities alone needs one")
    with capture_cost.PARTS[part]():
        assert (sync_lines._state.recording is not None) == (part.startswith(("callbacks", "a capture")))
        assert torch.autograd._profiler_enabled() == (part not in ("callbacks", "off again"))
    assert sync_lines._state.recording is None
    assert not torch.autograd._profiler_enabled()


def test_waits_are_compared_one_by_one() -> None:
    """A recording that has others than were timed has no error to be told."""
    assert capture_waits.error([2.0, 5.0], [1.0, 7.0]) == 1.5
    with pytest.raises(ValueError, match="longer"):
        capture_waits.error([2.0], [2.0, 3.0])


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
