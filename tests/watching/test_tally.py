"""Samples and steps are counted by line in a bounded memory, and come out as shares and quantiles."""

from __future__ import annotations

import random

import pytest

from syncscan.watching.tally import MOST_LINES, Durations, Tally
from syncscan.watching.thread_position import DEVICE, HOST, INPUT, ThreadPosition


def stand(line: int, kind: str = HOST, rule: str = "") -> ThreadPosition:
    return ThreadPosition("train.py", line, "step", kind, rule)


def test_shares_are_parts_of_all_samples() -> None:
    """A line may work and wait; what it does most names it."""
    tally = Tally()
    tally.add(stand(1), 50)
    tally.add(stand(2, DEVICE, "item"), 30)
    tally.add(stand(2), 10)
    tally.add(stand(3, INPUT), 10)
    tally.steps.add(10_000_000)
    window = tally.window(1.0, 1.0, 100)
    rows = [(line.line, line.kind, line.share, line.waiting, line.rule, line.us_per_step) for line in window.lines]
    assert rows[:2] == [(1, "host", 0.5, 0.0, "", 5e5), (2, "device", 0.4, 0.3, "item", 4e5)]
    assert (window.samples, window.waiting, window.input, window.others) == (100, 0.3, 0.1, 0.0)


def test_lines_without_end_take_a_bounded_place() -> None:
    """The rest counts together."""
    tally = Tally()
    for line in range(MOST_LINES + 100):
        tally.add(stand(line), 1)
    window = tally.window(1.0, 1.0, 0)
    assert len(tally._kinds) == MOST_LINES
    assert sum(line.share for line in window.lines) + window.others == pytest.approx(1, abs=0.001)


def test_quantiles_of_times_are_known_to_two_percent() -> None:
    """Whatever their number, by a few hundred buckets."""
    draw, times = random.Random(7), Durations()
    values = sorted(int(draw.lognormvariate(16, 0.8)) for _ in range(20_000))
    for value in values:
        times.add(value)
    for share in (0.1, 0.5, 0.9, 0.99):
        assert times.quantile(share) == pytest.approx(values[int(share * len(values))], rel=0.02)
    assert len(times._buckets) < 500


def test_another_thread_shows_where_it_is_in_the_program() -> None:
    """One that only waits in a library isn't listed."""
    tally = Tally()
    for _ in range(3):
        tally.add_thread("loader", stand(9))
        tally.add_thread("pool", None)
    tally.add_thread("loader", None)
    assert [(t.name, t.share, t.line) for t in tally.window(1.0, 1.0, 0).threads] == [("loader", 0.75, 9)]
