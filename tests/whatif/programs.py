"""Strategies for programs of a graph: any waits, launches, records and what waits for them."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from syncscan.model.interval import Interval
from syncscan.model.trace import NONE
from syncscan.whatif.graph import Feed, HostWait, Node, Program, Record, Run, StreamWait
from syncscan.whatif.waits import Wait

THREADS, STREAMS, EVENTS, FINDINGS = 2, 2, 2, 5
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
