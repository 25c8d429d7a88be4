"""Linking orders a trace's rows, nests them, and finds its steps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncscan.facts import paths
from syncscan.load import link
from syncscan.model.trace import DEEPEST, NONE
from tests.builder import TraceBuilder


def test_a_step_that_was_cut_short_is_no_step() -> None:
    """The step in which a script ended is left out of the steps, unless it is all there is."""
    cut = TraceBuilder(syncscan={"unfinished_step": 4})
    for _ in cut.steps(3, lasts=100):
        pass
    alone = TraceBuilder(syncscan={"unfinished_step": 2})
    for _ in alone.steps(1, lasts=100):
        pass
    assert [[step.number for step in t.trace().steps] for t in (cut, alone)] == [[2, 3], [2]]


@pytest.mark.parametrize("depth", [DEEPEST + 1, DEEPEST + 2, 2000])
def test_slices_nested_too_deep_are_counted(depth: int) -> None:
    """The deepest that counts has DEEPEST around it; of a deeper one the innermost count."""
    t = TraceBuilder()
    for i in range(depth):
        t.op(f"op{i}", i, 3 * depth - i)
    trace = t.trace()
    row = len(trace.slices) - 1
    assert [trace.name(r) for r in trace.ancestors(row)] == [f"op{i}" for i in range(depth - 1)][-DEEPEST:]
    deep = depth - 1 - DEEPEST
    assert (f"{deep:,} slice" in " ".join(trace.info.warnings)) == (deep > 0)


@given(st.lists(st.integers(1, 3), max_size=40))
def test_those_too_deep_are_counted_level_by_level(back: list[int]) -> None:
    """Each slice lies in one up to three before it; a level is four instead of 256, so that few slices are enough."""
    parent = [k - step if step <= k else NONE for k, step in enumerate(back)]
    levels: list[int] = []
    for around in parent:
        levels.append(0 if around == NONE else levels[around] + 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(link, "DEEPEST", 4)
        assert link._too_deep(np.array(parent, np.int32)) == sum(level > 4 for level in levels)


def with_frames() -> TraceBuilder:
    """A read inside of a short function, and longer functions without a call."""
    t = TraceBuilder(with_stack=1)
    with t.frame("a.py(1): main", 0, 1000):
        for k in range(4):
            t.frame(f"a.py({k + 2}): f{k}", 100 * k, 100 * k + 50 + k)
        with t.frame("a.py(9): read", 900, 930):
            t.sync("aten::item", at=901)
    return t


def test_frames_are_drawn_that_locate_no_sync() -> None:
    """The analysis has those around a call that may wait; reports draw the others as well."""
    trace = with_frames().trace()
    named = [[trace.strings[n] for n in table.name.tolist()] for table in (trace.frames, trace.drawn_frames)]
    assert named[0] == ["a.py(1): main", "a.py(9): read"]
    assert named[1] == ["a.py(1): main", *(f"a.py({k + 2}): f{k}" for k in range(4)), "a.py(9): read"]


def test_of_many_frames_the_longest_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """With all that locate a sync, however short they are."""
    monkeypatch.setattr(link, "MOST_DRAWN_FRAMES", 3)
    trace = with_frames().trace()
    names = [trace.strings[n] for n in trace.drawn_frames.name.tolist()]
    assert names == ["a.py(1): main", "a.py(4): f2", "a.py(5): f3", "a.py(9): read"]


Interval = tuple[int, int, int]
"""Track, begin and end."""


def innermost(intervals: list[Interval]) -> list[int]:
    """Return the result of `innermost_around` for intervals in order, as numbers of intervals."""
    track, ts, end = (np.array(column, np.int64) for column in zip(*intervals, strict=True))
    return link.innermost_around(np.arange(len(track)), track.astype(np.int32), ts, end).tolist()


def one_by_one(intervals: list[Interval]) -> list[int]:
    """The definition: from the interval before, outwards, the first that lies around, but for the slack."""
    matches: list[int] = []
    for i, (track, ts, end) in enumerate(intervals):
        other = i - 1 if i and intervals[i - 1][0] == track else NONE
        while other != NONE and not ts < intervals[other][2] >= end - 2:
            other = matches[other]
        matches.append(other)
    return matches


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 20)), min_size=1, max_size=40),
    st.sampled_from([0, 1, 32]),
)
def test_the_innermost_around(drawn: list[Interval], rounds: int) -> None:
    """Found by doubling, by the sweep and by both together, it is that of the definition."""
    intervals = sorted(((track, ts, ts + dur) for track, ts, dur in drawn), key=lambda i: (i[0], i[1], -i[2]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "_ROUNDS", rounds)
        assert innermost(intervals) == one_by_one(intervals)


def test_many_behind_deep_nesting_end() -> None:
    """50,000 nested intervals and as many behind them: one level a round would take hours."""
    depth = 50_000
    nested = [(0, i, depth + 1) for i in range(depth)]
    flat = [(0, depth + 2 + i, depth + 3 + i) for i in range(depth)]
    assert innermost(nested + flat) == [NONE, *range(depth - 1), *[NONE] * depth]
