"""Facts about how many calls a clock is read for: what reading it costs is hardly part of a call's time."""

from __future__ import annotations

import pytest

from syncscan.capture.stopwatch import BLOCK_US, HostStopwatch, in_a_row


class Costly(HostStopwatch):
    """A clock that takes 10 µs to be read; calls take `us` each, and are counted."""

    def __init__(self, us):
        self.us, self.calls = us, 0

    def blocks(self, call, blocks, block):
        self.calls += blocks * block
        return [self.us + 10.0 / block] * blocks


@pytest.mark.parametrize("us", [3.0, 5.0, 14.5, 100.0, 1_000.0, 20_000.0])
def test_reading_the_clock_is_less_than_a_percent_of_a_call_s_time(us):
    """Also of a mere launch, which takes less than reading it."""
    watch = Costly(us)
    [said] = watch.blocks(None, 1, in_a_row(watch, None))
    assert said == pytest.approx(us, rel=0.01)


def test_a_block_lasts_as_long_as_that_takes():
    """And no longer: a call of 100 µs is timed twenty at a time."""
    assert in_a_row(Costly(100.0), None) == pytest.approx(BLOCK_US / 100, abs=1)


def test_a_long_call_is_timed_by_itself_and_asked_ten_times():
    """Steps of seconds aren't run a hundred times to learn that."""
    watch = Costly(3e6)
    assert in_a_row(watch, None) == 1
    assert watch.calls == 10
