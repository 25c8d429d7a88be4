"""The chain of slices around one, its names told once for all steps, and the frames around a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncscan.facts import paths
from syncscan.facts.paths import FrameChains, Paths, frames_around, innermost_that, innermost_until
from syncscan.model.trace import DEEPEST, NONE
from tests.builder import TraceBuilder


def test_a_chain_is_outermost_first() -> None:
    """One object a row, however often it is asked for; that of NONE is empty."""
    t = TraceBuilder()
    with t.scope("loss", 0, 20), t.op("aten::index", 1, 19):
        t.op("aten::item", 2, 9)
    paths = Paths(t.trace())
    matches = [paths.to(row) for row in (2, NONE, 0, 2)]
    assert [(path.rows, path.ops) for path in matches] == [
        ((0, 1, 2), (1, 2)),
        ((), ()),
        ((0,), ()),
        ((0, 1, 2), (1, 2)),
    ]
    assert matches[3] is matches[0]


def test_the_worker_is_the_outermost_op_that_does_work_itself() -> None:
    """Another op only holds it; where no op does work there is none."""
    t = TraceBuilder()
    with t.scope("loss", 0, 20), t.op("CompiledFunction", 1, 19), t.op("aten::index", 2, 18):
        t.op("aten::item", 3, 9)
    paths = Paths(t.trace())
    assert [paths.to(row).worker for row in range(4)] == [NONE, NONE, 2, 2]


def test_of_a_chain_that_is_too_deep_the_innermost_count() -> None:
    """As many as of the slices around one, itself among them."""
    t = TraceBuilder()
    for i in range(DEEPEST + 2):
        t.op(f"op{i}", i, 2000 - i)
    path = Paths(t.trace()).to(DEEPEST + 1)
    assert path.rows == tuple(range(2, DEEPEST + 2))
    assert path.names.every == tuple(f"op{i}" for i in range(2, DEEPEST + 2))


def test_a_call_site_has_the_same_names_in_every_step() -> None:
    """The steps' numbers differ, and are no scope of the program's."""
    t = TraceBuilder()
    for k in (1, 2):
        with t.step(1000 * k, 1000 * k + 900), t.scope("loss", 1000 * k + 1, 1000 * k + 20):
            t.op("aten::item", 1000 * k + 2, 1000 * k + 9)
    trace = t.trace()
    paths = Paths(trace)
    first, second = (paths.to(row) for row in range(len(trace.slices)) if trace.name(row) == "aten::item")
    assert first.names is second.names
    assert first.names.scopes == ("loss",)


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


@given(st.lists(st.tuples(st.integers(NONE, 400), st.booleans()), max_size=60), st.booleans())
def test_the_innermost_that_counts(rows: list[tuple[int, bool]], chained: bool) -> None:
    """As a walk up from each row says, in any tree and in a single deep branch."""
    parent = [NONE if not i else i - 1 if chained else min(p, i - 1) for i, (p, _) in enumerate(rows)]
    counts = [count for _, count in rows]
    expected = []
    for row in range(len(rows)):
        around = parent[row]
        while around != NONE and not counts[around]:
            around = parent[around]
        expected.append(around)
    assert innermost_that(np.array(counts, np.bool_), np.array(parent, np.int32)).tolist() == expected


@pytest.mark.parametrize("rounds", [0, 1, 32])
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 20)), max_size=40))
def test_the_last_before_it_that_ends_late_enough(rounds: int, drawn: list[tuple[int, int, int]]) -> None:
    """Found by doubling, one after the other and by both together, it is that of a look at all before, on its track."""
    times = sorted((track, begin, begin + length) for track, begin, length in drawn)
    track, begin, end = np.array(times, np.int64).reshape(-1, 3).T
    expected = [
        next((k for k in range(row)[::-1] if times[k][0] == on and times[k][2] > at), NONE)
        for row, (on, at, _) in enumerate(times)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "_ROUNDS", rounds)
        assert innermost_until(track.astype(np.int32), end, begin + 1).tolist() == expected
