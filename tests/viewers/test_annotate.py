"""The annotated copy: what was recorded stays as it is, and what is added is what viewers accept."""

from __future__ import annotations

import itertools
import json
import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from syncscan import api
from syncscan.errors import UsageError
from syncscan.model.analysis import Analysis
from syncscan.model.duration import duration
from syncscan.model.finding import Severity
from syncscan.model.interval import Interval
from syncscan.model.trace import Track
from syncscan.viewers.annotate import added_events, annotate, annotate_around, document, opening_of
from syncscan.viewers.annotate.around import touching
from syncscan.viewers.annotate.idle import IdleTimes
from syncscan.viewers.annotate.lanes import AddedLanes, Drawn
from tests.builder import MAIN, TraceBuilder
from tests.each import each
from tests.report.example import HOSTILE, story
from tests.report.test_places import analysis as of_a_library

Event = dict[str, Any]


def added_to(t: TraceBuilder, analysis: Analysis | None = None) -> list[Event]:
    """The events that are added to a trace."""
    a = analysis or api.analyze_trace(t.trace())
    return [json.loads(piece.lstrip(b",\n")) for piece in list(annotate(a, b"", (), added_events(a)))[1:-1]]


def slices(events: Iterable[Event], cat: str) -> list[Event]:
    return [e for e in events if e["ph"] == "X" and e["cat"] == cat]


def test_a_finding_is_a_slice_over_its_wait_that_says_everything() -> None:
    """Rule, wait, recoverable, line and fix are args; times are those of the sync."""
    t = story()
    analysis = api.analyze_trace(t.trace())
    point = analysis.findings[0].occurrences[0]
    shown = slices(added_to(t, analysis), "syncscan_finding")[0]
    assert (shown["ts"], shown["ts"] + shown["dur"]) == (point.ts / 1000, point.end / 1000)
    args = shown["args"]
    assert args["wait_us"] == point.wait_ns / 1000
    assert args["rule"].startswith(analysis.findings[0].rule)
    assert args["fix"] == analysis.findings[0].fix
    assert {"line", "scope", "op", "wait", "bubble", "recoverable", "id"} <= args.keys()
    assert args["scope"] == "mask"


def test_steps_have_a_row_of_their_own() -> None:
    """Perfetto drops the profiler's step slices where stacks overlap them."""
    assert [e["name"] for e in slices(added_to(story()), "syncscan_step")] == ["step 2", "step 3"]


def test_idle_time_behind_a_sync_adds_up_to_its_bubble() -> None:
    """The drawn idle time after syncs equals the findings' bubbles, and the rest is the host's."""
    t = story()
    analysis = api.analyze_trace(t.trace())
    idle = slices(added_to(t, analysis), "syncscan_idle")
    behind = sum(e["dur"] for e in idle if e["name"].startswith("idle: sync"))
    bubbles = sum(o.bubble_ns for f in analysis.findings for o in f.occurrences) / 1000
    assert behind == pytest.approx(bubbles, abs=0.01)
    assert any(e["name"] == "idle: host" for e in idle)


def test_idle_time_behind_a_sync_begins_when_its_wait_is_over() -> None:
    """While the host waits, launched work waits too, from 111 to 300 µs: that is drawn, but as nobody's sync."""
    t = TraceBuilder()
    with t.step(0, 1000):
        t.launch("first", at=10, lasts=100)
        t._free[0, 7] = 300
        t.launch("second", at=20, lasts=100)
        t.synchronize(at=30)
        t.launch("late", at=600, lasts=10)
    drawn = slices(added_to(t), "syncscan_idle")
    assert [(e["ts"], e["ts"] + e["dur"]) for e in drawn if e["name"].startswith("idle: sync")] == [(400, 601)]


def test_idle_time_behind_a_sync_goes_on_past_one_that_awaited_nothing() -> None:
    """It ends with the next work; the idle time behind that work is the host's."""
    t = TraceBuilder()
    with t.step(0, 1000):
        t.launch("first", at=10, lasts=300)
        t.synchronize(at=20)
        t.synchronize(at=400)
        for at in (500, 600):
            t.launch("late", at=at, lasts=10)
    drawn = slices(added_to(t), "syncscan_idle")
    assert [(e["ts"], e["ts"] + e["dur"]) for e in drawn] == [(311, 501), (511, 601)]
    assert [e["name"].partition(" · ")[0] for e in drawn] == ["idle: sync", "idle: host"]


def test_a_wait_for_the_dataloader_is_idle_for_input() -> None:
    """A gap that lies mostly in the DataLoader's `__next__` isn't put on the launches."""
    t = TraceBuilder()
    with t.step(0, 2000):
        t.launch("first", at=10, lasts=100)
        t.scope("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 100, 1000)
        t.launch("second", at=1010, lasts=100)
    assert [e["name"] for e in slices(added_to(t), "syncscan_idle")] == ["idle: input"]


def test_an_arrow_leads_from_a_sync_to_the_launch_it_held_up() -> None:
    """It leaves inside the finding's slice, ends where the launch's slice begins, and never goes back in time."""
    t = story()
    added = added_to(t)
    starts = {e["id"]: e for e in added if e["ph"] == "s"}
    ends = {e["id"]: e for e in added if e["ph"] == "f"}
    assert starts.keys() == ends.keys()
    assert len(starts) == 2
    launches = [e["ts"] for e in t.events if e["name"] == "cudaLaunchKernel"]
    for k, leaves in starts.items():
        held = next(e for e in slices(added, "syncscan_finding") if e["ts"] <= leaves["ts"] <= e["ts"] + e["dur"])
        arrives = ends[k]["ts"]
        assert leaves["ts"] <= arrives
        assert arrives == min(ts for ts in launches if ts >= held["ts"] + held["dur"])
        assert (ends[k]["pid"], ends[k]["tid"]) == (MAIN, MAIN)


def test_a_findings_title_is_what_it_saves_and_its_rule_in_its_severitys_color() -> None:
    """It fits on a slice; where nothing is projected it says what was waited."""
    t = story()
    analysis = api.analyze_trace(t.trace())
    shown = slices(added_to(t, analysis), "syncscan_finding")[0]
    assert re.fullmatch(r"saves [0-9.]+ µs · nonzero", shown["name"])
    assert (analysis.findings[0].severity, shown["cname"]) == (Severity.HIGH, "rail_animation")
    unknown = replace(
        analysis, findings=tuple(replace(f, recoverable_us=None, recoverable_range_us=None) for f in analysis.findings)
    )
    assert slices(added_to(t, unknown), "syncscan_finding")[0]["name"] == "waits 600 µs · nonzero"
    withheld = replace(unknown, findings=tuple(replace(f, wait_us=None, bubble_us=None) for f in unknown.findings))
    assert slices(added_to(t, withheld), "syncscan_finding")[0]["name"] == "nonzero"


def test_a_viewer_opens_at_the_step_of_the_costliest_sync_of_the_first_finding() -> None:
    """With two syncs it is the one that waited longer; the host's process and the device's are opened."""
    t = TraceBuilder()
    for start, wait in zip(t.steps(2, lasts=2000, start=1000), (300, 900), strict=True):
        t.launch("gemm", at=start + 20, lasts=wait)
        t.sync("aten::nonzero", at=start + 30, wait=wait)
        t.launch("late", at=start + 1500, lasts=100)
    opening = opening_of(api.analyze_trace(t.trace()))
    assert opening is not None
    assert (opening.number, opening.view) == (1, Interval(3_000_000, 5_000_000))
    assert opening.view.begin <= opening.sync.begin < opening.sync.end <= opening.view.end
    assert opening.pids == (str(MAIN), "0")


def test_without_a_finding_a_viewer_opens_with_the_whole_trace() -> None:
    """There is nothing to select."""
    t = TraceBuilder()
    t.launch("gemm", at=0, lasts=100)
    assert opening_of(api.analyze_trace(t.trace())) is None


def test_for_perfetto_one_pattern_pins_each_row_once() -> None:
    """Its groups leave out what stands before a slash; a slice is no twin of its call."""
    t = story()
    analysis = api.analyze_trace(t.trace())
    added = [
        json.loads(piece.lstrip(b",\n"))
        for piece in list(annotate(analysis, b"", (), added_events(analysis, perfetto=True)))[1:-1]
    ]
    assert [e["args"]["name"] for e in added if e["name"] == "thread_name"] == ["/findings", "/steps", "/device 0 idle"]
    usual = slices(added_to(t, analysis), "syncscan_finding")[0]
    shown = slices(added, "syncscan_finding")[0]
    assert shown["name"] == usual["name"]
    assert (shown["ts"], shown["dur"]) == (usual["ts"], pytest.approx(usual["dur"] - 0.001))


def test_added_rows_are_nobody_elses() -> None:
    """Pids and tids are integers that the trace doesn't use, every slice has a category, and rows have names."""
    t = story()
    t.events.append({"ph": "X", "cat": "cpu_op", "name": "x", "pid": 4_200_000, "tid": 4_200_001, "ts": 1, "dur": 1})
    added = added_to(t)
    taken = {e.get("pid") for e in t.events} | {e.get("tid") for e in t.events}
    for e in added:
        if e["ph"] == "X":
            assert e["cat"]
            assert isinstance(e["pid"], int)
            assert not {e["pid"], e["tid"]} & taken
    named = {e["tid"] for e in added if e["name"] == "thread_name"}
    assert {e["tid"] for e in added if e["ph"] == "X"} == named


def test_a_trace_without_findings_still_gets_steps_and_idle() -> None:
    """Nothing waits: no row of findings, no arrows."""
    t = TraceBuilder()
    with t.step(0, 500):
        t.launch(at=10, lasts=10)
        t.launch(at=100, lasts=10)
    added = added_to(t)
    assert not slices(added, "syncscan_finding")
    assert slices(added, "syncscan_step")
    assert slices(added, "syncscan_idle")


def test_an_empty_trace_gets_an_empty_process() -> None:
    """No events at all is no error."""
    assert [e["ph"] for e in added_to(TraceBuilder())] == ["M", "M", "M"]


@given(
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**5)), max_size=40),
    st.sampled_from([0, 4_367_533_655_541_084, 1_790_000_000_000_000_000]),
)
def test_slices_on_a_row_never_overlap(intervals: list[tuple[int, int]], base: int) -> None:
    """However slices lie, and however coarse µs are as floats so far from zero, Perfetto has none to drop."""
    drawn = [Drawn(base + ts, base + ts + length, "x") for ts, length in intervals]
    rows = defaultdict(list)
    for text in AddedLanes([]).row("r", "c", drawn):
        e = json.loads(text)
        if e["ph"] == "X":
            rows[e["tid"]].append((e["ts"], e["ts"] + e["dur"]))
    assert sum(map(len, rows.values())) == len(intervals)
    for row in rows.values():
        row.sort()
        assert all(before[1] <= after[0] for before, after in itertools.pairwise(row))


@given(
    st.lists(st.tuples(st.integers(0, 10**4), st.integers(1, 10**4), st.integers(0, 1)), max_size=20),
    st.sampled_from([0, 4_367_533_655_541_084, 1_695_835_583_882_831_001]),
    st.booleans(),
)
def test_slices_that_lie_apart_are_drawn_as_any_others_are(
    apart: list[tuple[int, int, int]], base: int, perfetto: bool
) -> None:
    """Byte for byte: text with gaps for the times says what was encoded slice by slice."""
    edges = list(itertools.accumulate((n for before, length, _ in apart for n in (before, length)), initial=base))[1:]
    begin, end, kind = edges[::2], edges[1::2], [which for *_, which in apart]
    kinds = [Drawn(0, 0, 'idle: "host"', {"cause": "late\u2028"}, "grey"), Drawn(0, 0, "idle: sync")]
    drawn = [
        Drawn(b, e, kinds[k].name, {"length": duration((e - b) / 1000), **kinds[k].args}, kinds[k].color)
        for b, e, k in zip(begin, end, kind, strict=True)
    ]
    columns = IdleTimes(*(np.array(column, np.int64) for column in (begin, end, kind)), causes=())
    if drawn:
        assert list(AddedLanes([], perfetto).row_apart("r", "c", columns, kinds)) == list(
            AddedLanes([], perfetto).row("r", "c", drawn)
        )


@each("name", HOSTILE)
def test_hostile_names_come_out_as_short_valid_text(name: str) -> None:
    """Nothing in a name breaks the JSON, and nothing is longer than a viewer can draw."""
    row = AddedLanes([Track("1", "1", "", "")])
    drawn = Drawn(0, 10, name, {"scope": name})
    for text in row.row(name, "c", [drawn], {0: (12, Track(name, name, "", ""))}):
        e = json.loads(text.decode("utf-8"))
        assert len(e["name"]) <= 120
        assert all(len(v) <= 1000 for v in e.get("args", {}).values() if isinstance(v, str))


def test_recorded_text_stands_as_it_was() -> None:
    """Head and events are copied, the added events follow, and small members stay behind."""
    text = b"".join(document(b'{"a": [1],\n "traceEvents": ', {"a": [1], "late": "x"}, [b"\n {}", b" { }"], [b"{}"]))
    assert text == b'{"a": [1],\n "traceEvents": [\n {}, { },\n{}\n],\n"late": "x"\n}\n'


def test_members_behind_the_events_move_in_front_when_they_hold_a_bracket() -> None:
    """TensorBoard's plugin cuts a trace behind its last `]`, wherever that is."""
    metadata = {"a": 1, "distributedInfo": {"ranks": [0, 1]}}
    text = b"".join(document(b'{"a": 1, "traceEvents": ', metadata, [b"{}"], ()))
    assert json.loads(text) == {**metadata, "traceEvents": [{}]}
    assert text.rstrip().endswith(b"]\n}")


def test_a_bare_list_gets_an_object_around_it() -> None:
    """TensorBoard's plugin reads no bare list."""
    assert json.loads(b"".join(document(b"", {}, [b"{}"], [b"{}"]))) == {"traceEvents": [{}, {}]}


def recorded(t: TraceBuilder) -> list[bytes]:
    return [json.dumps(e).encode() for e in t.events]


def test_around_a_finding_only_its_neighbourhood_is_left() -> None:
    """Events that touch its interval, all names of rows, and no arrow without both its ends."""
    t = story()
    t.events.append({"ph": "M", "name": "process_name", "pid": MAIN, "tid": 0, "args": {"name": "python"}})
    t.events.append({"ph": "s", "id": 1, "cat": "ac2g", "name": "ac2g", "pid": MAIN, "tid": MAIN, "ts": 1100})
    t.events.append({"ph": "f", "id": 1, "cat": "ac2g", "name": "ac2g", "pid": 0, "tid": 7, "ts": 9999, "bp": "e"})
    a = api.analyze_trace(t.trace())
    text = b"".join(annotate_around(a, b"", recorded(t), "1"))
    events = json.loads(text)["traceEvents"]
    drawn = next(e for e in events if e.get("cat") == "syncscan_finding")
    low, high = drawn["ts"] - 1000, drawn["ts"] + drawn["dur"] + drawn["args"]["bubble_us"] + 1000
    assert {e["ph"] for e in events} == {"X", "M", "s", "f"}
    assert not [e for e in events if e.get("cat") == "ac2g"]
    for e in events:
        if e["ph"] == "X":
            assert e["ts"] <= high
            assert e["ts"] + e["dur"] >= low
    assert len(slices(events, "syncscan_step")) == 1


def test_a_finding_is_chosen_by_number_id_or_the_ids_beginning() -> None:
    """A reader can type what the report shows."""
    t = story()
    a = api.analyze_trace(t.trace())
    id = a.findings[0].id
    for which in ("1", id, id[:-2]):
        assert list(annotate_around(a, b"", recorded(t), which))


@pytest.mark.parametrize("which", ["", "0", "99", "nothing-like-it"])
def test_a_finding_that_is_not_there_is_reported(which: str) -> None:
    """The sentence names what was given."""
    t = story()
    a = api.analyze_trace(t.trace())
    with pytest.raises(UsageError, match=f"is called '{which}'|no number {which or 'x'} "):
        list(annotate_around(a, b"", recorded(t), which))


def test_times_beyond_all_clocks_are_around_nothing() -> None:
    """An event far away, or at no number, isn't near any finding."""
    far = [
        b'{"ph": "X", "ts": %s, "dur": %s}' % pair for pair in ((b"1e308", b"1"), (b'"1e999"', b"1"), (b'"x"', b"1"))
    ]
    near = b'{"ph": "X", "ts": 1, "dur": 1}'
    assert list(touching([*far, near], Interval(0, 5000))) == [b"\n" + near]


@pytest.mark.parametrize("value", ["\ud800", float("nan"), 10**5000], ids=["half", "nan", "endless"])
def test_members_are_written_for_strict_readers(value: object) -> None:
    """Values that JSON lacks become null or U+FFFD, wherever they stand in the trace's own members."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} isn't JSON")

    text = b"".join(document(b"", {"a": {"b": [value]}}, [], [])).decode()
    assert json.loads(text, parse_constant=refuse)["a"]["b"] in (["\ufffd"], [None])


def test_a_slice_of_trace_view_has_both_lines() -> None:
    """One click shows them."""
    text = b"".join(added_events(of_a_library())).decode()
    assert '"line":"main() in train.py' in text
    assert '"library\'s line":"norm() in timm/utils/norm.py"' in text
