"""Many sets of findings at once are replayed to the numbers that one after the other has."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syncscan.whatif import replay, replays
from syncscan.whatif.graph import Feed, Graph, HostRun, Record, StepProgram, StreamWait
from tests.whatif.programs import EVENTS, FINDINGS, THREADS, program, programs, wait_for

SCALES = ((0.7, 1.1), (1.0, 1.0), (0.4, 1.25))


@settings(max_examples=80, deadline=None)
@given(
    st.lists(programs(), min_size=1, max_size=3),
    st.lists(
        st.tuples(st.frozensets(st.integers(0, FINDINGS - 1), min_size=1), st.integers(0, 2), st.booleans()), min_size=1
    ),
    st.none() | st.integers(0, 2),
    st.sampled_from([1, 1 << 19]),
)
def test_at_once_they_have_the_numbers_of_one_after_the_other(
    steps: list[StepProgram], questions: list[tuple[frozenset[int], int, bool]], single: int | None, most: int
) -> None:
    """Bit for bit: time, waits and their order, the host's work, the device's; of several scales, and of one step."""
    graph = Graph(tuple(steps), THREADS, ((0, 7), (0, 20)), EVENTS, busy_ns=1e3)
    chosen = None if single is None else [single % len(steps)]
    alone, together = ([replay.Replay(graph, *scales) for scales in SCALES] for _ in range(2))
    waiting = [(removed, n, whole) for removed, n, whole in questions if alone[n].question(removed, chosen, whole)[1]]
    expected = [repr(replay.steady(alone[n], removed, chosen, whole)) for removed, n, whole in waiting]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replays, "MANY", 1)
        patch.setattr(replays, "MOST_NUMBERS", most)
        replays.prefetch((replays.Without(together[n], removed, whole) for removed, n, whole in questions), chosen)
        patch.delattr(replay.ReplayState, "step")
        assert expected == [repr(replay.steady(together[n], removed, chosen, whole)) for removed, n, whole in waiting]


def test_a_stream_that_waits_for_an_event_is_as_late_in_columns() -> None:
    """500 µs of one stream, of which the host reads the 10 µs of another that come behind: 510 a step."""
    step = program(
        [
            HostRun(0, 0.0, 1, (Feed(0, 500e3, 0),)),
            Record(0, 0),
            StreamWait(0, 1),
            HostRun(0, 0.0, 1, (Feed(1, 10e3, 1),)),
            wait_for(1),
            wait_for(finding=1),
        ]
    )
    graph = Graph((step,), 1, ((0, 7), (0, 20)), 1)
    alone, together = replay.Replay(graph), replay.Replay(graph)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replays, "MANY", 1)
        replays.prefetch([replays.Without(together, frozenset({1}))])
    (result,) = together.known.values()
    assert (result.period, result.waits) == (510e3, {0: 510e3})
    assert replay.steady(alone, frozenset({1})) == result


def test_few_are_left_to_be_asked_for() -> None:
    """Columns of a few numbers take longer than the numbers one by one; and what waits nowhere is as it was."""
    ready = replay.Replay(Graph((program([wait_for()]),), THREADS, (), 0))
    replays.prefetch(replays.Without(ready, frozenset({n})) for n in range(100))
    assert ready.known == {}
