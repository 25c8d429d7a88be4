"""The frames around a time are those that last over it, whatever the others do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncscan.facts import paths
from syncscan.facts.paths import FrameChains, frames_around
from tests.builder import TraceBuilder

frames = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 20)), max_size=40)


def chains(drawn: list[tuple[int, int]]) -> tuple[FrameChains, list[tuple[int, int]]]:
    """Frames from (begin, length), and their ends, sorted as a trace's are."""
    times = sorted(((begin, begin + length) for begin, length in drawn), key=lambda frame: (frame[0], -frame[1]))
    ts, ends = (np.array([frame[k] for frame in times], np.int64) for k in (0, 1))
    names = np.arange(len(times), dtype=np.int32)
    return FrameChains([f"frame{k}" for k in range(len(times))], names, ts, ends), times


def around(result: FrameChains, begin: int, end: int) -> tuple[str, ...]:
    return result.around(np.array([begin]), np.array([end]))[0]


@pytest.mark.parametrize("rounds", [32, 0])
@given(frames, st.lists(st.tuples(st.integers(-1, 32), st.integers(0, 20)), min_size=1, max_size=20))
def test_as_a_look_at_every_frame_says(
    rounds: int, drawn: list[tuple[int, int]], queries: list[tuple[int, int]]
) -> None:
    """Also of frames that overlap, that have no length, and of a moment at which some end and others begin."""
    with pytest.MonkeyPatch.context() as m:
        m.setattr(paths, "_ROUNDS", rounds)
        result, times = chains(drawn)
    expected = [
        tuple(f"frame{k}" for k, (ts, end) in enumerate(times) if ts <= begin and end >= begin + length)
        for begin, length in queries
    ]
    begins, ends = (np.array(column) for column in zip(*((at, at + length) for at, length in queries), strict=True))
    assert result.around(begins, ends) == expected


def test_calls_of_one_site_get_the_same_tuple() -> None:
    """In every turn of a loop the frames are others, and called the same."""
    ts, ends = np.array([0, 10, 50]), np.array([100, 40, 90])
    result = FrameChains(["main", "step"], np.array([0, 1, 1], np.int32), ts, ends)
    assert around(result, 20, 30) == ("main", "step")
    assert around(result, 60, 70) is around(result, 20, 30)


def test_frames_around_are_outermost_first() -> None:
    """They are the frames that hold a time on their thread, edges included."""
    t = TraceBuilder()
    with t.frame("train.py(1): main", 0, 100):
        t.frame("other.py(2): before", 1, 5)
        with t.frame("train.py(10): step", 10, 90):
            t.frame("inner.py(4): call", 20, 30)
            t.call("cudaStreamSynchronize", 20, 30)
    with t.thread("worker"):
        t.frame("worker.py(3): run", 0, 100)
        t.call("cudaStreamSynchronize", 40, 50)
    trace = t.trace()
    main, worker = (k for k, track in enumerate(trace.tracks) if track.tid in ("100", "101"))
    outer = ("train.py(1): main", "train.py(10): step")
    tracks, begins, ends = (np.array(column) for column in (
        (main, main, main, worker),
        (20_000, 20_000, 19_999, 20_000),
        (30_000, 30_001, 30_000, 30_000),
    ))  # fmt: skip
    assert frames_around(trace, tracks, begins, ends) == [
        (*outer, "inner.py(4): call"),
        outer,
        outer,
        ("worker.py(3): run",),
    ]
