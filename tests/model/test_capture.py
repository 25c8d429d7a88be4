"""Data that capture stored in a trace becomes typed values, or is refused with a sentence; nothing passes unchecked."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from syncscan import api
from syncscan.model.capture import NO_TABLE, Clocks, Collection, EventCall, Frame, capture_table
from tests.builder import TraceBuilder
from tests.each import each

LINES = {
    "source": "callbacks",
    "columns": ["epoch_ns", "tid", "kind", "stack", "module", "handle", "stack_tid"],
    "frames": [["a.py", 3, "inner"], ["b.py", 9, "outer"]],
    "stacks": [[0, 1]],
    "modules": ["Net/head"],
    "syncs": [[1000, 7, "stream", 0, 0, 0, 7], [2000, 8, "event", 0, -1, 55, 7]],
    "calls": [[10, 20, 7, 0]],
}
TABLE: dict[str, Any] = {
    "schema": "syncscan.capture/1",
    "unprofiled_step_us": 1234.5,
    "unprofiled_mean_us": 1300.0,
    "lines": LINES,
    "events": [[5, 7, "record", 99, 0]],
    "collections": [[100, 900, 7, 2]],
    "clocks": {"calibrated": {"power_w": 300.0, "power_limit_w": 700.0}},
    "unfinished_step": 4,
    "host": {
        "rate": 193,
        "steps": 9,
        "samples": 12,
        "step_us": 1250.5,
        "frames": [["a.py", "main"], ["a.py", "f"]],
        "nodes": [[-1, 0, 3, 2], [0, 1, 7, 10]],
    },
}
HOST: Any = TABLE["host"]


def test_the_table_that_capture_writes_is_read_whole() -> None:
    """Every part has its type, and nothing is refused."""
    table, refused = capture_table(TABLE)
    assert refused == ()
    assert table.unprofiled_step_us == 1234.5
    assert table.lines.stack(0) == (Frame("b.py", 9, "outer"), Frame("a.py", 3, "inner"))
    assert table.lines.module(0) == ("Net", "head")
    assert [sync.borrowed for sync in table.lines.syncs] == [False, True]
    assert table.unprofiled_mean_us == 1300.0
    assert table.events == (EventCall(5, 7, "record", 99, 0),)
    assert table.collections == (Collection(100, 900, 7, 2),)
    assert table.clocks["calibrated"] == Clocks(300.0, 700.0)
    assert table.unfinished_step == 4
    assert table.host is not None
    assert (table.host.samples, table.host.steps, table.host.step_us) == (12, 9, 1250.5)
    assert table.host.frames[table.host.nodes[1].frame] == ("a.py", "f")


def test_a_trace_of_another_origin_has_none() -> None:
    """No key, no table, no complaint."""
    assert capture_table(None) == (NO_TABLE, ())


@each(
    ("part", "value"),
    [
        ("lines", [1]),
        ("lines", {"frames": [5]}),
        ("lines", {"frames": [["a.py", "3", "f"]]}),
        ("lines", {"syncs": [[2**70, 1, "stream", 0]]}),
        ("lines", {"syncs": [[-1, 1, "stream", 0]]}),
        ("lines", {"stacks": [5]}),
        ("lines", {"modules": [7]}),
        ("events", [["x"]]),
        ("collections", [[900, 100, 7, 2]]),
        ("collections", [[-5, 100, 7, 2]]),
        ("collections", [[100, 2**63, 7, 2]]),
        ("collections", [[100, 900, 7, -1]]),
        ("collections", [[100, 900, 7]]),
        ("unprofiled_step_us", "fast"),
        ("unprofiled_step_us", 0),
        ("unprofiled_step_us", -3.0),
        ("unprofiled_step_us", float("nan")),
        ("unprofiled_step_us", 10**400),
        ("clocks", 3),
        ("unfinished_step", "last"),
        ("host", []),
        ("host", {**HOST, "steps": 0}),
        ("host", {**HOST, "step_us": -1.0}),
        ("host", {**HOST, "frames": []}),
        ("host", {**HOST, "frames": [["a.py", "main"], ["a.py", None]]}),
        ("host", {**HOST, "nodes": []}),
        ("host", {**HOST, "nodes": [[-1, 0, 3, 0]]}),
        ("host", {**HOST, "nodes": [[0, 0, 3, 5]]}),
        ("host", {**HOST, "nodes": [[1, 0, 3, 5], [0, 0, 3, 5]]}),
        ("host", {**HOST, "nodes": [[-2, 0, 3, 5]]}),
        ("host", {**HOST, "nodes": [[-1, -1, 3, 5]]}),
        ("host", {**HOST, "nodes": [[-1, 2, 3, 5]]}),
        ("host", {**HOST, "nodes": [[-1, 0, -3, 5]]}),
        ("host", {**HOST, "nodes": [[-1, 0, 3, -5], [-1, 0, 3, 9]]}),
        ("host", {**HOST, "nodes": [[-1, 0, 3, 1e99]]}),
        ("host", {**HOST, "nodes": [[-1, 0, 3, 1]] * 100_001}),
    ],
)
def test_a_damaged_part_is_refused_and_named_and_the_others_stay(part: str, value: Any) -> None:
    """One sentence names the part; what is whole is used."""
    table, refused = capture_table({**TABLE, part: value})
    intact, _ = capture_table({k: v for k, v in TABLE.items() if k != part})
    assert len(refused) == 1
    assert f"'{part}'" in refused[0]
    assert table == intact


def test_what_is_no_object_is_refused_whole() -> None:
    """A list, a number or a text under the key."""
    assert [capture_table(value)[0] for value in ([], 3, "x")] == [NO_TABLE] * 3
    assert all(len(capture_table(value)[1]) == 1 for value in ([], 3, "x"))


def test_numbers_that_lead_nowhere_give_nothing() -> None:
    """A stack, frame or module that isn't in its list is none."""
    lines = capture_table({"lines": {**LINES, "stacks": [[0, 99]]}})[0].lines
    assert lines.stack(0) == (Frame("a.py", 3, "inner"),)
    assert lines.stack(-1) == lines.stack(7) == ()
    assert lines.module(-1) == lines.module(7) == ()


def test_a_refused_part_is_a_warning_of_the_analysis() -> None:
    """The user learns that lines are missing, and why."""
    t = TraceBuilder(syncscan={"lines": {"frames": [5]}})
    for start in t.steps(2, lasts=1000):
        t.sync("aten::nonzero", at=start + 10, wait=100)
    analysis = api.analyze_trace(t.trace())
    assert [w for w in analysis.warnings if "'lines' is damaged" in w]
    assert len(analysis.findings) == 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(sorted({*TABLE, *LINES})), inner),
    max_leaves=20,
)


@given(JSON)
def test_any_json_is_read_without_raising(value: Any) -> None:
    """Whatever stands under the key, the result is a table and sentences."""
    table, refused = capture_table(value)
    assert all(sentence.endswith(".") for sentence in refused)
    assert table.unprofiled_step_us is None or table.unprofiled_step_us > 0
