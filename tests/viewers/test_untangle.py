"""Slices that overlap on a row move to a row beside it, as Perfetto would drop them."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncscan.viewers.annotate import untangle
from syncscan.viewers.annotate.untangle import untangled

Event = dict[str, Any]


def event(name: str, ts: float, end: float, tid: int = 1) -> Event:
    return {"ph": "X", "cat": "c", "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": end - ts}


def result(*events: Event, piece: int = 3) -> list[Event]:
    texts = [json.dumps(e).encode() for e in events]
    pieces = [b",".join(texts[k : k + piece]) for k in range(0, len(texts), piece)]
    document: list[Event] = json.loads(b"[" + b",".join(untangled(lambda: pieces)) + b"]")
    return document


def test_nested_slices_stay_as_they_are() -> None:
    """A trace without overlaps comes out as it went in."""
    events = [event("a", 0, 10), event("b", 2, 5), event("c", 5, 10), event("d", 10, 12), event("e", 3, 99, tid=2)]
    assert result(*events) == events


def test_a_scope_that_outlives_the_call_that_entered_it_moves() -> None:
    """With stacks, that is every scope: its row is named after the one it left, and keeps its order."""
    enter, scope, inner = event("enter", 0, 5), event("scope", 1, 20), event("inner", 2, 15)
    stored, moved, nested, name = result(enter, scope, inner)
    assert stored == enter
    assert moved == {**scope, "tid": 4_300_000}
    assert nested == {**inner, "tid": 4_300_000}
    assert name["args"] == {"name": "overlapping on 1"}
    assert name["tid"] == 4_300_000


def test_what_overlaps_there_too_moves_on() -> None:
    """Three slices in a chain need a second row; a third that fits the first stays."""
    a, b, c = event("a", 0, 10), event("b", 5, 15), event("c", 12, 20)
    assert [e["tid"] for e in result(a, b, c)[:3]] == [1, 4_300_000, 1]


def test_events_without_usable_times_stay() -> None:
    """Events without a place in time overlap nothing."""
    events = [{"ph": "X", "ts": None, "pid": 1, "tid": 1}, {"ph": "M", "name": "x"}, {"ph": "X", "ts": 1, "tid": []}]
    assert result(*events) == events


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 30), st.integers(0, 2)), max_size=40))
def test_afterwards_no_row_has_an_overlap_and_nothing_is_lost(intervals: list[tuple[int, int, int]]) -> None:
    """Whatever the slices, each row nests, and every slice is there, with all but its tid."""
    events = [event(str(k), ts, ts + length, tid) for k, (ts, length, tid) in enumerate(intervals)]
    slices = [e for e in result(*events) if e["ph"] == "X"]
    assert [{**e, "tid": 0} for e in slices] == [{**e, "tid": 0} for e in events]
    rows = defaultdict(list)
    for e in slices:
        rows[e["tid"]].append((e["ts"], e["ts"] + e["dur"]))
    for row in rows.values():
        for start, end in row:
            assert not [s for s, e in row if start < s < end < e]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=30))
def test_a_slice_goes_on_the_first_row_on_which_it_nests(intervals: list[tuple[int, int]]) -> None:
    """Asked one row after the other, in order of the starts: so few slices need few rows."""
    events = [event(str(k), ts, ts + length) for k, (ts, length) in enumerate(intervals)]
    rows: list[list[tuple[int, int]]] = []
    expected = {}
    for k in sorted(range(len(events)), key=lambda k: (intervals[k][0], -intervals[k][1])):
        ts, end = intervals[k][0], sum(intervals[k])
        fits = [all(e <= ts or end <= e for s, e in row) for row in rows]
        row = fits.index(True) if True in fits else len(rows)
        rows[row:] = rows[row:] or [[]]
        rows[row].append((ts, end))
        expected[str(k)] = 4_300_000 + row - 1 if row else 1
    assert {e["name"]: e["tid"] for e in result(*events) if e["ph"] == "X"} == expected


def lines_run(work: Callable[[], object]) -> int:
    """How many lines of the module under test run."""
    count = 0

    def note(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        if frame.f_code.co_filename != untangle.__file__:
            return None
        count += event == "line"
        return note

    sys.settrace(note)
    try:
        work()
    finally:
        sys.settrace(None)
    return count


@pytest.mark.parametrize(
    "one",
    [
        lambda k: event("all overlap, each needs a row", 2 * k, 2 * k + 10**6),
        lambda k: event("two overlap, two rows do", 2 * k, 2 * k + 3),
        lambda k: event("each is nested in the one before", k, 10**6 - k),
    ],
)
def test_the_work_grows_like_the_number_of_slices(one: Callable[[int], Event]) -> None:
    """Four times as many take hardly more than four times as many lines, not sixteen times."""
    few, many = (lines_run(lambda n=n: result(*map(one, range(n)))) for n in (250, 1000))
    assert few > 250
    assert many < 6 * few


def test_numbers_beyond_all_readers() -> None:
    """An event whose times, rows or args are no numbers to a decoder stays, and the others move as ever."""
    odd = b'{"ph": "X", "pid": 1, "tid": 1e999, "ts": 1, "dur": 20}'
    far = json.dumps({**event("far", 0, 1), "ts": 10**400}).encode()
    enter, scope = (json.dumps(event(*e)).encode() for e in (("enter", 0, 5), ("scope", 1, 20)))
    large = scope[:-1] + b', "args": {"n": %d}}' % 10**400
    text = b",".join(untangled(lambda: [b",".join((odd, far, enter, large))]))
    moved = json.loads(b"[" + text + b"]")[3]
    assert moved == {**event("scope", 1, 20), "tid": 4_300_000, "args": {"n": 10**400}}
