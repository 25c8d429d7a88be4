"""Which host thread is the step's own."""

from __future__ import annotations

import numpy as np
import pytest

from syncscan import api
from syncscan.load import with_steps
from syncscan.model.step import Bound
from syncscan.model.trace import Trace
from syncscan.whatif.build import build
from syncscan.whatif.graph import HostRun
from syncscan.whatif.replayed_steps import find_steps, find_threads
from syncscan.whatif.wait_effects import NumberedPoint
from tests.builder import MAIN, TraceBuilder

WORKER = MAIN + 1


def two_threads(waits: bool) -> Trace:
    """A trace without steps: the first thread launches 20 kernels, the second, in turns with it, 60.

    Args:
        waits: instead of its last 50 kernels the second thread waits for the device 50 times.
    """
    t = TraceBuilder()
    for turn in range(20):
        t.launch("side", at=100 * turn, lasts=1)
    with t.thread("program", WORKER):
        for turn in range(20):
            for k in range(3):
                at = 100 * turn + 10 + 20 * k
                if waits and turn >= 4:
                    t.call("cudaStreamSynchronize", at, at + 10)
                else:
                    t.launch("main", at=at, lasts=1)
    return with_steps(t.trace(), as_one_step=True)


@pytest.mark.parametrize("waits", [False, True])
def test_without_steps_the_busiest_thread_is_the_steps_own(waits: bool) -> None:
    """The one that launches and waits most often, wherever the trace lists it."""
    analysis = api.analyze_trace(two_threads(waits))
    points = [NumberedPoint(0, o) for f in analysis.findings for o in f.occurrences]
    runs = [node for node in build(find_steps(analysis.trace, points)).programs[0].nodes if isinstance(node, HostRun)]
    launched = [sum(run.launches for run in runs if run.thread == thread) for thread in range(2)]
    assert launched == ([12, 20] if waits else [60, 20])


@pytest.mark.parametrize("waits", [False, True])
def test_a_schedule_has_the_tracks_of_the_steps_own_thread(waits: bool) -> None:
    """It is the thread that the graph was written for."""
    analysis = api.analyze_trace(two_threads(waits))
    result = analysis.schedule()
    assert result is not None
    assert [analysis.trace.tracks[track].tid for track in result.tracks] == [str(WORKER)]


def test_the_thread_with_the_most_steps_is_the_steps_own() -> None:
    """Its steps are the ones that are replayed: one that another thread marks before them makes no difference."""
    t = TraceBuilder()
    with t.thread("warm-up", WORKER):
        t.step(0, 100)
        t.launch("once", at=10, lasts=1)
    for start in t.steps(3, lasts=1000, start=500):
        for turn in range(20):
            t.launch("main", at=start + 20 * turn, lasts=1)
            with t.thread("warm-up", WORKER):
                t.launch("side", at=start + 20 * turn + 10, lasts=1)
    analysis = api.analyze_trace(t.trace())
    result = analysis.schedule()
    assert result is not None
    assert [analysis.trace.tracks[track].tid for track in result.tracks] == [str(MAIN)]


def test_a_thread_that_waits_beside_the_launches_is_a_sequence_of_its_own() -> None:
    """A watchdog waits once per step for a side stream, while the step's thread launches: their times don't add up."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=1000):
        t.launch("collective", at=start, lasts=500, stream=20)
        t.call("cudaEventRecord", start + 2, start + 3)
        for at in range(10, 400, 20):
            t.launch("main", at=start + at, lasts=10)
        with t.thread("pt_nccl_watchdg", WORKER):
            t.call("cudaEventSynchronize", start + 20, start + 502)
    trace = t.trace()
    tracks = [number for number, track in enumerate(trace.tracks) if track.tid in (str(MAIN), str(WORKER))]
    assert sorted(find_threads(trace, np.array(tracks)).values()) == [0, 1]
    assert api.analyze_trace(trace).step.bound is not Bound.UNKNOWN
