"""Facts about the replay of a step's graph; steps are replayed until the next ones would be as they are, no further."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syncscan.whatif import graph, replay
from syncscan.whatif.graph import LAUNCH_QUEUE, Graph, HostRun, StepProgram
from tests.whatif.programs import EVENTS, FINDINGS, THREADS, program, programs, wait_for

MORE = 12
"""Further cycles."""


@settings(max_examples=200, deadline=None)
@given(
    st.lists(programs(), min_size=1, max_size=3), st.frozensets(st.integers(0, FINDINGS - 1)), st.sampled_from([1, 2])
)
def test_where_all_is_as_much_later_it_goes_on_like_that(
    steps: list[StepProgram], removed: frozenset[int], last: int
) -> None:
    """Once all has moved by one time each further cycle takes it too, with the same waits, whatever led in."""
    ready = replay.Replay(Graph(tuple(steps), THREADS, ((0, 7), (0, 20)), EVENTS))
    state = replay.ReplayState.of(ready)

    def cycle() -> dict[int, float]:
        state.waits.clear()
        for scaled in ready.programs:
            state.step(scaled, removed)
        return dict(state.waits)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graph, "LEAD_IN", last)
        state.lead_in(ready.programs[-1], removed)
    pace = replay.Pace(state.mark())
    while not pace.steady:
        waits = cycle()
        pace.cycle(state.mark())
    for _ in range(MORE if pace.repeats else 0):
        before = state.ended()
        assert cycle() == pytest.approx(waits, abs=1e-2)
        moved = [now - then for now, then in zip(state.ended(), before, strict=True) if now]
        assert moved == pytest.approx(np.full(len(moved), pace.took), abs=1e-2)


def test_other_threads_begin_with_the_step() -> None:
    """A thread that works 30 µs and launches 10 is waited for: 40 a step, though it could do the next 30 meanwhile."""
    step = program([HostRun(1, 30e3, 1, ((0, 10e3, 0),)), wait_for(0, host_ns=5e3)])
    for threads in (2, 3):
        ready = replay.Replay(Graph((step,), threads, ((0, 7),), 0))
        assert replay.steady(ready).period == pytest.approx(40e3)


def test_no_step_takes_less_than_the_device_works_in_one_and_some_of_them_may() -> None:
    """The time that the device is busy is a mean over all steps, which doesn't hold for each of them."""
    step = program([HostRun(0, 1e3, 1, ((0, 10e3, 0),))])
    ready = replay.Replay(Graph((step, step), 1, ((0, 7),), 0, busy_ns=50e3))
    assert replay.steady(ready).period == pytest.approx(50e3)
    assert replay.steady(ready, step=1).period == pytest.approx(10e3)


def test_the_host_works_less_by_the_op_where_that_goes_too() -> None:
    """9 µs of work, 7 of them in the op around a call of 2: without the call 9 are left, and without the op 2."""
    ready = replay.Replay(Graph((program([wait_for(0, host_ns=9e3, call_ns=2e3, op_ns=7e3)]),), 1, ((0, 7),), 0))
    removed = frozenset({0})
    left = [replay.steady(ready).host, *(replay.steady(ready, removed, with_ops=whole).host for whole in (False, True))]
    assert left == pytest.approx([11e3, 9e3, 2e3])


def test_a_trace_without_steps_takes_no_time() -> None:
    """Nothing to replay is no error: a trace may hold ops alone."""
    assert replay.steady(replay.Replay(Graph((), 1, (), 0))) == replay.Steady(0.0, {}, 0.0, 0.0)


def test_a_full_launch_queue_holds_a_host_that_waits_for_nothing_else() -> None:
    """Without its wait the host needs 40 µs a step, and the device 200: launches fill the queue, and the device paces.

    With the wait it is held each time, the queue is empty, and the step takes 220.
    """
    runs = [HostRun(0, 20e3, LAUNCH_QUEUE // 2, ((0, 100e3, row),)) for row in range(2)]
    ready = replay.Replay(Graph((program([*runs, wait_for(0)]),), 1, ((0, 7),), 0))
    assert replay.steady(ready).period == pytest.approx(220e3)
    assert replay.steady(ready, frozenset({0})).period == pytest.approx(200e3)


def test_a_host_slower_than_its_device_is_held_by_no_queue() -> None:
    """Two bursts of 300 launches, 400 µs of the host and 100 of the device each: 800 a step, whatever it waits for."""
    step = program([HostRun(0, 400e3, 300, ((0, 100e3, 0),)), wait_for(0), HostRun(0, 400e3, 300, ((0, 100e3, 1),))])
    ready = replay.Replay(Graph((step,), 1, ((0, 7),), 0))
    assert replay.steady(ready, frozenset({0})).period == pytest.approx(800e3)
