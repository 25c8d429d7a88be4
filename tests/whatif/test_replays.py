"""Many sets of findings at once are replayed to the numbers that one after the other has."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from syncscan.model.interval import Interval
from syncscan.model.trace import NONE
from syncscan.whatif import replay, replays
from syncscan.whatif.graph import Feed, Graph, HostWait, Node, Program, Record, Run, StreamWait
from syncscan.whatif.waits import Wait

THREADS, STREAMS, EVENTS, FINDINGS = 2, 2, 2, 5
SCALES = ((0.7, 1.1), (1.0, 1.0), (0.4, 1.25))
ns = st.floats(0.0, 1e6)
thread, stream, event = st.integers(0, THREADS - 1), st.integers(0, STREAMS - 1), st.integers(0, EVENTS - 1)


@st.composite
def waits(draw: st.DrawFn) -> HostWait:
    """Any wait of any finding: for streams or an event, with or without a copy."""
    wait = Wait(
        track=0,
        interval=Interval(0, 0),
        streams=(),
        event=None,
        call_ns=draw(ns),
        wake_ns=draw(ns),
        after_ns=draw(ns),
        left_ns=draw(ns),
        finding=draw(st.integers(NONE, FINDINGS - 1)),
        waited_ns=0.0,
        read_ns=draw(ns),
        op_ns=draw(ns),
        copy=draw(st.integers(NONE, STREAMS - 1)),
        copy_ns=draw(ns),
    )
    streams = draw(st.lists(stream, max_size=STREAMS, unique=True))
    return HostWait(draw(thread), draw(ns), tuple(streams), draw(st.integers(NONE, EVENTS - 1)), wait)


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Any program of a few nodes, whose launches fill the launch queue now and then."""
    row = [0]

    def run() -> Run:
        feeds = []
        for number in draw(st.lists(stream, max_size=STREAMS, unique=True)):
            feeds.append(Feed(number, draw(ns), row[0]))
            row[0] += 1
        return Run(draw(thread), draw(ns), draw(st.sampled_from([0, 3, 600])) if feeds else 0, tuple(feeds))

    others = st.one_of(waits(), st.builds(Record, event, stream), st.builds(StreamWait, event, stream), st.none())
    nodes: tuple[Node, ...] = tuple(draw(others) or run() for _ in range(draw(st.integers(1, 8))))
    late = np.array([draw(ns) for _ in range(row[0])])
    return Program(
        nodes=nodes,
        node_host=np.array([getattr(node, "host_ns", 0.0) for node in nodes]),
        late_host=late,
        late_device=late[::-1],
        late_first=np.arange(row[0]),
        length_ns=1.0,
        stream_ns=(0.0,) * STREAMS,
        launches=0,
    )


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
    steps: list[Program], asked: list[tuple[frozenset[int], int, bool]], one: int | None, most: int
) -> None:
    """Bit for bit: time, waits and their order, the host's work, the device's; of several scales, and of one step."""
    graph = Graph(tuple(steps), THREADS, ((0, 7), (0, 20)), EVENTS, busy_ns=1e3)
    chosen = None if one is None else [one % len(steps)]
    alone, together = ([replay.prepare(graph, *scales) for scales in SCALES] for _ in range(2))
    waiting = [(gone, n, whole) for gone, n, whole in asked if alone[n].question(gone, chosen, whole)[1]]
    expected = [repr(replay.steady(alone[n], gone, chosen, whole)) for gone, n, whole in waiting]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replays, "MANY", 1)
        patch.setattr(replays, "MOST_NUMBERS", most)
        replays.foresee((replays.Without(together[n], gone, whole) for gone, n, whole in asked), chosen)
        patch.delattr(replay.State, "step")
        assert expected == [repr(replay.steady(together[n], gone, chosen, whole)) for gone, n, whole in waiting]


def test_a_stream_that_waits_for_an_event_is_as_late_in_columns() -> None:
    """500 µs of one stream, of which the host reads the 10 µs of another that come behind: 510 a step."""
    read = Wait(0, Interval(0, 0), (1,), None, 0.0, 0.0, 0.0, 0.0, 0, 0.0)
    nodes = (
        Run(0, 0.0, 1, (Feed(0, 500e3, 0),)),
        Record(0, 0),
        StreamWait(0, 1),
        Run(0, 0.0, 1, (Feed(1, 10e3, 1),)),
        HostWait(0, 0.0, (1,), NONE, read),
        HostWait(0, 0.0, (), NONE, replace(read, streams=(), finding=1)),
    )
    work, first = np.array([500e3, 10e3]), np.arange(2)
    step = Program(nodes, np.zeros(len(nodes)), np.zeros(2), work, first, 1.0, (0.0, 0.0), 2)
    ready = replay.prepare(Graph((step,), 1, ((0, 7), (0, 20)), 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replays, "MANY", 1)
        replays.foresee([replays.Without(ready, frozenset({1}))])
    (found,) = ready.known.values()
    assert (found.period, found.waits) == (510e3, {0: 510e3})


def test_few_are_left_to_be_asked_for() -> None:
    """Columns of a few numbers take longer than the numbers one by one; and what waits nowhere is as it was."""
    wait = Wait(0, Interval(0, 0), (), None, 0.0, 0.0, 0.0, 0.0, 0, 0.0)
    none = np.zeros(0)
    step = Program((HostWait(0, 0.0, (), NONE, wait),), np.zeros(1), none, none, none.astype(np.int64), 1.0, (), 0)
    ready = replay.prepare(Graph((step,), 1, (), 0))
    replays.foresee(replays.Without(ready, frozenset({n})) for n in range(100))
    assert ready.known == {}
