"""Facts about replays of one thread and one stream, of which only what a removal changes is replayed."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syncscan.model.trace import NONE
from syncscan.whatif import one_stream, replay
from syncscan.whatif.graph import LAUNCH_QUEUE, Feed, Graph, Node, Program, Record, Run
from syncscan.whatif.segments import NO_WAIT, segments_of
from tests.whatif.programs import of_one_stream, program, wait_for

STREAM = ((0, 7),)


def asked(replayed: replay.Replay, gone: frozenset[int], whole: bool = False) -> replay.Steady | None:
    """The step without these findings, where it is told by what they change."""
    return replayed.quick(replayed.question(gone, None, whole))


@settings(max_examples=400, deadline=None)
@given(st.integers(0, 1 << 32))
def test_what_it_tells_is_what_a_replay_of_all_comes_to(seed: int) -> None:
    """One after the other, of all steps or of one: the time and each finding's waits; or that it can't be told."""
    random = Random(seed)
    findings = random.choice([4, 12, 40])
    steps = tuple(of_one_stream(random, findings) for _ in range(random.randint(1, 4)))
    ready = replay.Replay(Graph(steps, 1, STREAM, 0, busy_ns=1e3), random.uniform(0.3, 1.3), random.uniform(0.5, 1.5))
    for _ in range(8):
        gone = frozenset(random.sample(range(NONE, findings), random.choice([0, 1, 1, 2, 3, findings // 2])))
        chosen = None if random.random() < 0.7 else [random.randrange(len(steps))]
        question = ready.question(gone, chosen, random.random() < 0.3)
        if (found := ready.quick(question)) is not None:
            expected = replay._replayed(ready, question)
            assert found.period == pytest.approx(expected.period, rel=1e-9, abs=1e-3)
            assert found.waits == pytest.approx(expected.waits, rel=1e-9, abs=1e-3)
            assert (found.host, found.device) == (expected.host, expected.device)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 1 << 32))
def test_a_queue_is_full_in_what_was_followed_where_it_is_in_a_replay_of_all(seed: int) -> None:
    """Of any removal that is followed from the step as it is, all times are known: those of a replay of all."""
    random = Random(seed)
    steps = tuple(of_one_stream(random, 12) for _ in range(random.randint(1, 4)))
    columns = one_stream.scaled(segments, 1.0, 1.0) if (segments := segments_of(Graph(steps, 1, STREAM, 0))) else None
    assert columns
    around = one_stream.OneStream(columns, columns.segments.around(None))
    known = around._replayed(frozenset(), False)
    for finding in sorted(around._around.places.keys() - {NO_WAIT}) if known else ():
        gone = frozenset({finding})
        walked = around._walk(known, around._differing(known, gone, False), gone, False)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(around, "_never_full", lambda *asked: asked)
            found = around._replayed(gone, False)
            if walked and found:
                begin, times, took = around._never_full_behind(known, walked)
                moved = found.begin - begin
                assert took == pytest.approx(found.cycle.took, rel=1e-9)
                assert np.concatenate(times) + moved == pytest.approx(np.concatenate(found.times), abs=1e-2)


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
    ready = replay.Replay(Graph((reading(*range(40)),), 1, STREAM, 0))
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
    ready = replay.Replay(Graph((reading(0, 0, launches=LAUNCH_QUEUE // 2),), 1, STREAM, 0))
    assert asked(ready, frozenset()) is not None
    assert asked(ready, frozenset({0})) is None
    assert replay.steady(ready, frozenset({0})).period == pytest.approx(200e3)


def told_as_by_a_replay_of_all(step: Program, *gone: int) -> bool:
    """Whether the step without these findings is told; it takes what a replay of all comes to."""
    ready = replay.Replay(Graph((step,), 1, STREAM, 0))
    question = ready.question(frozenset(gone), None, False)
    found, expected = ready.quick(question), replay._replayed(ready, question)
    for steady in (found or expected, replay.steady(ready, frozenset(gone))):
        assert (steady.period, steady.waits) == (pytest.approx(expected.period), pytest.approx(expected.waits))
    return found is not None


@pytest.mark.parametrize("between", [[], [wait_for(finding=2)]])
@pytest.mark.parametrize(("work_ns", "call_ns"), [(100e3, 0.0), (30e3, 50e3)])
def test_what_was_launched_before_a_copy_holds_a_full_queue_as_with_it(
    between: list[Node], work_ns: float, call_ns: float
) -> None:
    """The stream is done 50 µs sooner without the copy, and what is launched next waits for what was before it.

    So it is whether the thread is as much earlier at once, its call being 50 µs, or by its next wait for the stream.
    """
    copied = [Run(0, 0.0, 100, (Feed(0, work_ns, 0),)), wait_for(0, finding=0, call_ns=call_ns, copy=0, copy_ns=50e3)]
    burst = [wait_for(0, finding=1), Run(0, 0.0, LAUNCH_QUEUE), wait_for(0, finding=1)]
    more = [node for row in range(1, 16) for node in (Run(0, 90e3, 100, (Feed(0, 10e3, row),)), wait_for(0, finding=1))]
    assert not told_as_by_a_replay_of_all(program([*copied, *between, *burst, *more]), 0)


def test_a_queue_that_a_slow_host_keeps_from_being_full_is_full_without_what_made_it_slow() -> None:
    """A call of 60 µs behind a removed copy of 50: while it is there what came before the copy is done in time.

    Where the step without the copy is known, the one without that call is looked at as a whole, not told from it.
    """
    copied = [Run(0, 0.0, 100, (Feed(0, 100e3, 0),)), wait_for(0, finding=0, copy=0, copy_ns=50e3)]
    slow = [wait_for(0, finding=1), wait_for(0, finding=3, call_ns=60e3), Run(0, 0.0, LAUNCH_QUEUE)]
    more = [node for row in range(1, 12) for node in (Run(0, 90e3, 100, (Feed(0, 10e3, row),)), wait_for(0, finding=1))]
    step = program([*copied, *slow, wait_for(0, finding=1), *more, *[wait_for(finding=2)] * 20])
    ready = replay.Replay(Graph((step,), 1, STREAM, 0))
    assert asked(ready, frozenset({0, 2})) is not None
    assert asked(ready, frozenset({0, 2, 3})) is None


def test_the_waits_before_and_behind_a_steps_end_are_removed_together() -> None:
    """400 launches up to each: from the one that is left around to itself there are 1,200, and the queue is full."""

    def launches(first: int) -> list[Node]:
        return [Run(0, 1e3, 50, (Feed(0, 100e3, row),)) for row in range(first, first + 8)]

    kept = [wait_for(0, finding=1)] * 12
    step = program([*launches(0), wait_for(0), *launches(8), *kept, *launches(16), wait_for(0)])
    assert not told_as_by_a_replay_of_all(step, 0)
    assert told_as_by_a_replay_of_all(step)


def test_a_long_way_without_a_wait_is_cut_where_a_queue_may_fill() -> None:
    """2,000 launches in a row, of which each is done before the next but 100: it is told that no queue was full."""
    runs = [Run(0, 400e3, 100, (Feed(0, 100e3, row),)) for row in range(20)]
    assert told_as_by_a_replay_of_all(program([*runs, wait_for(0)]), 0)


def test_a_host_that_sets_the_pace_needs_no_wait_to_keep_its_queue_empty() -> None:
    """Its device is done with 1,024 launches long before it comes to launch as many again: told without any wait."""
    step = program([Run(0, 400e3, 300, (Feed(0, 100e3, 0),)), wait_for(0), Run(0, 400e3, 300, (Feed(0, 100e3, 1),))])
    ready = replay.Replay(Graph((step,), 1, STREAM, 0))
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
        assert asked(replay.Replay(graph), frozenset()) is None
    assert replay.Replay(Graph((step,), 1, STREAM, 0)).quick(((), frozenset(), False)) is None
