"""Work that began just when another stream's ended waited for it, though no call says so."""

from __future__ import annotations

import pytest

from syncscan.whatif.events import coincident_edges
from syncscan.whatif.launches import find_launches
from tests.builder import TraceBuilder


def edges(pause: float, behind: float, *, launched_later: bool = False) -> list[tuple[int, int]]:
    """Return the edges of two queued kernels of stream 20, so many µs apart; the second begins so long after stream
    7's.

    Returns:
        For each edge the stream of the work that waits, and of what it waits for.
    """
    t = TraceBuilder()
    begin = 100 + pause
    if not launched_later:
        t.launch(at=1, lasts=begin - behind - 2)
    t.launch(at=10, lasts=89, stream=20)
    t.launch(at=20, lasts=10, stream=20, begins=begin)
    if launched_later:
        t.launch(at=30, lasts=begin - behind - 31)
    trace = t.trace()
    s = trace.slices
    launches = find_launches(trace, int(s.ts.min()), int(s.end.max()))
    of = [number for _, number in launches.streams]
    return [(of[edge.stream], of[edge.event.stream]) for edge in coincident_edges(launches, [])]


def test_a_long_pause_that_ends_with_anothers_work_is_an_edge() -> None:
    """The edge leads from the awaited stream to the one that paused."""
    assert edges(300, 5) == [(20, 7)]


@pytest.mark.parametrize(("pause", "expected"), [(51, 1), (49, 0)])
def test_a_pause_of_fifty_microseconds_is_none_of_the_devices_own(pause: float, expected: int) -> None:
    """Shorter ones come between any two kernels."""
    assert len(edges(pause, 5)) == expected


@pytest.mark.parametrize(("behind", "expected"), [(0, 1), (19.5, 1), (20.5, 0), (-1, 0)])
def test_work_begins_within_twenty_microseconds_of_what_it_waited_for(behind: float, expected: int) -> None:
    """And not before it."""
    assert len(edges(300, behind)) == expected


def test_nothing_waits_for_what_is_launched_after_it() -> None:
    """Nobody could have told it to."""
    assert edges(300, 5, launched_later=True) == []
