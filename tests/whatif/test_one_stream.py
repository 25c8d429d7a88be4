"""Facts about replays of one thread and one stream, of which only what a removal changes is replayed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syncscan.model.trace import NONE
from syncscan.whatif import one_stream, replay
from syncscan.whatif.graph import LAUNCH_QUEUE, Feed, Graph, Program, Record, Run
from tests.whatif.programs import FINDINGS, program, programs_of_one_stream, wait_for

STREAM = ((0, 7),)
sets = st.frozensets(st.integers(NONE, FINDINGS - 1))


def asked(replayed: replay.Replay, gone: frozenset[int], whole: bool = False) -> replay.Steady | None:
    """The step without these findings, where it is told by what they change."""
    return replayed.quick(replayed.question(gone, None, whole))


@settings(max_examples=300, deadline=None)
@given(
    st.lists(programs_of_one_stream(), min_size=1, max_size=3),
    st.lists(st.tuples(sets, st.none() | st.integers(0, 2), st.booleans()), min_size=1, max_size=6),
    st.sampled_from([(1.0, 1.0), (0.4, 1.25), (1.1, 0.7)]),
)
def test_what_it_tells_is_what_a_replay_of_all_comes_to(
    steps: list[Program], questions: list[tuple[frozenset[int], int | None, bool]], scales: tuple[float, float]
) -> None:
    """One after the other, of all steps or of one: the time and each finding's waits; or that it can't be told."""
    ready = replay.prepare(Graph(tuple(steps), 1, STREAM, 0, busy_ns=1e3), *scales)
    for gone, one, whole in questions:
        question = ready.question(gone, None if one is None else [one % len(steps)], whole)
        if (found := ready.quick(question)) is not None:
            expected = replay._replayed(ready, question)
            assert found.period == pytest.approx(expected.period, rel=1e-9, abs=1e-3)
            assert found.waits == pytest.approx(expected.waits, rel=1e-9, abs=1e-3)
            assert (found.host, found.device) == (expected.host, expected.device)


def reading(*findings: int, launches: int = 1) -> Program:
    """For each: 20 µs of the host, 100 of the device in so many launches, and a wait of 1 µs for them."""
    nodes = []
    for row, finding in enumerate(findings):
        nodes += [Run(0, 20e3, launches, (Feed(0, 100e3, row),)), wait_for(0, call_ns=1e3, finding=finding)]
    return program([*nodes, Run(0, 10e3)])


def test_only_what_a_removed_wait_changes_is_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a step with 40 waits one is removed: the next one waits for the work of both, 200 µs, and the others for 100.

    Two segments are replayed: its own, and the one that is as it was again.
    """
    ready = replay.prepare(Graph((reading(*range(40)),), 1, STREAM, 0))
    assert asked(ready, frozenset()) == replay.steady(ready)
    monkeypatch.delattr(one_stream, "_advance")
    found, before = asked(ready, frozenset({20})), replay.steady(ready)
    assert found is not None
    assert found.waits[21] == before.waits[21] + 80e3
    assert {n: ns for n, ns in found.waits.items() if n != 21} == {
        n: before.waits[n] for n in range(40) if n not in (20, 21)
    }
    assert before.period - found.period == pytest.approx(20e3)


def test_a_full_launch_queue_is_left_to_a_replay_of_all() -> None:
    """Without its only wait a host launches ahead of a device that is slower, until the queue holds it: 200 µs a step.

    With the wait the queue is empty each time, and the replay tells it by itself.
    """
    ready = replay.prepare(Graph((reading(0, 0, launches=LAUNCH_QUEUE // 2),), 1, STREAM, 0))
    assert asked(ready, frozenset()) is not None
    assert asked(ready, frozenset({0})) is None
    assert replay.steady(ready, frozenset({0})).period == pytest.approx(200e3)


def test_a_host_that_sets_the_pace_needs_no_wait_to_keep_its_queue_empty() -> None:
    """Its device is done with 1,024 launches long before it comes to launch as many again: told without any wait."""
    step = program([Run(0, 400e3, 300, (Feed(0, 100e3, 0),)), wait_for(0), Run(0, 400e3, 300, (Feed(0, 100e3, 1),))])
    ready = replay.prepare(Graph((step,), 1, STREAM, 0))
    found = asked(ready, frozenset({0}))
    assert found is not None
    assert found.period == pytest.approx(800e3)


def test_several_threads_streams_or_events_are_left_to_a_replay_of_all() -> None:
    """As are programs with other nodes, and no steps at all."""
    step = reading(0)
    for graph in (
        Graph((step,), 2, STREAM, 0),
        Graph((step,), 1, ((0, 7), (0, 20)), 0),
        Graph((step,), 1, STREAM, 1),
        Graph((program([*step.nodes, Record(0, 0)]),), 1, STREAM, 0),
        Graph((), 1, STREAM, 0),
    ):
        assert asked(replay.prepare(graph), frozenset()) is None
    assert replay.prepare(Graph((step,), 1, STREAM, 0)).quick(((), frozenset(), False)) is None
