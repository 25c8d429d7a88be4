"""Facts about how many calls a clock is read for: what reading it costs is hardly part of a call's time."""

from __future__ import annotations

import time

import pytest

from syncscan.capture.stopwatch import BLOCK_US, HostStopwatch, in_a_row


class Costly(HostStopwatch):
    """A clock that takes 10 µs to be read; calls take `us` each, and are counted."""

    def __init__(self, us):
        self.us, self.calls = us, 0

    def blocks(self, call, blocks, block):
        self.calls += blocks * block
        return [self.us + 10.0 / block] * blocks


def block(watch):
    return in_a_row(watch, lambda: None, *watch.blocks(None, 1, 1))


@pytest.mark.parametrize("us", [3.0, 5.0, 14.5, 100.0, 1_000.0, 20_000.0])
def test_reading_the_clock_is_less_than_a_percent_of_a_call_s_time(us):
    """Also of a mere launch, which takes less than reading it."""
    watch = Costly(us)
    [text] = watch.blocks(None, 1, block(watch))
    assert text == pytest.approx(us, rel=0.01)


def test_a_block_lasts_as_long_as_that_takes():
    """And no longer: a call of 100 µs is timed twenty at a time."""
    assert block(Costly(100.0)) == pytest.approx(BLOCK_US / 100, abs=1)


def test_a_long_call_is_timed_by_itself_and_not_asked_again():
    """Steps of seconds aren't run a hundred times to learn what one of them said."""
    watch = Costly(3e6)
    assert block(watch) == 1
    assert watch.calls == 1


def test_what_a_clock_does_not_see_counts_too():
    """A step on a stream of its own seems to take 5 µs and takes 2 ms: a block of four hundred would last a second."""

    class Blind(HostStopwatch):
        def blocks(self, call, blocks, block):
            time.sleep(0.002 * blocks * block)
            return [5.0] * blocks

    assert block(Blind()) == 1
