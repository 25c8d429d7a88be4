"""Programs of a graph: of given nodes, and strategies for any waits, launches, records and what waits for them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from syncscan.model.trace import NONE
from syncscan.whatif.graph import HostRun, Node, Record, StepProgram, StreamWait
from syncscan.whatif.wait_effects import WaitEffect

THREADS, STREAMS, EVENTS, FINDINGS = 2, 2, 2, 5
ns = st.floats(0.0, 1e6)
thread, stream, event = st.integers(0, THREADS - 1), st.integers(0, STREAMS - 1), st.integers(0, EVENTS - 1)


def program(nodes: Sequence[Node], late: Sequence[float] = ()) -> StepProgram:
    """A step of these nodes; by row their feeds end no earlier than `late` after the runs, else when they are done."""
    works = [work_ns for node in nodes if isinstance(node, HostRun) for _, work_ns, _ in node.feeds]
    return StepProgram(
        nodes=tuple(nodes),
        node_host=np.array([getattr(node, "host_ns", 0.0) for node in nodes]),
        late_host=np.array(late or [0.0] * len(works)),
        late_device=np.array(late[::-1] or works),
        late_first=np.arange(len(works)),
        length_ns=1.0,
        stream_ns=(0.0,) * STREAMS,
        launches=0,
    )


def wait_for(*streams: int, **times: float) -> WaitEffect:
    """The step's thread waits for these streams, after so much work of its own; the rest of it takes none."""
    free = {"call_ns": 0.0, "wake_ns": 0.0, "after_ns": 0.0, "left_ns": 0.0, "finding": 0}
    return WaitEffect(streams=streams, **{**free, **times})  # type: ignore[arg-type]


@st.composite
def waits(draw: st.DrawFn) -> WaitEffect:
    """Any wait of any finding: for streams or an event, with or without a copy."""
    return WaitEffect(
        thread=draw(thread),
        host_ns=draw(ns),
        streams=tuple(draw(st.lists(stream, max_size=STREAMS, unique=True))),
        event=draw(st.integers(NONE, EVENTS - 1)),
        call_ns=draw(ns),
        wake_ns=draw(ns),
        after_ns=draw(ns),
        left_ns=draw(ns),
        finding=draw(st.integers(NONE, FINDINGS - 1)),
        read_ns=draw(ns),
        op_ns=draw(ns),
        copy=draw(st.integers(NONE, STREAMS - 1)),
        copy_ns=draw(ns),
    )


@st.composite
def programs(draw: st.DrawFn) -> StepProgram:
    """Any program of a few nodes, whose launches fill the launch queue now and then."""
    row = [0]

    def run() -> HostRun:
        feeds = []
        for number in draw(st.lists(stream, max_size=STREAMS, unique=True)):
            feeds.append((number, draw(ns), row[0]))
            row[0] += 1
        return HostRun(draw(thread), draw(ns), draw(st.sampled_from([0, 3, 600])) if feeds else 0, tuple(feeds))

    others = st.one_of(waits(), st.builds(Record, event, stream), st.builds(StreamWait, event, stream), st.none())
    nodes = [draw(others) or run() for _ in range(draw(st.integers(1, 8)))]
    return program(nodes, [draw(ns) for _ in range(row[0])])
