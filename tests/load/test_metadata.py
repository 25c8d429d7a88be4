"""Keys on both sides of the events, a second list, and another document are read, or reported."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Raw

from syncscan.load import load, reader
from syncscan.load.damage import DAMAGED_TAIL
from syncscan.load.metadata import TopLevelKeys
from syncscan.load.split import Splitter
from syncscan.load.valid_json import ValidText
from tests.each import each
from tests.load import reference
from tests.load.test_oracle import assert_equal, events, metadata, odd
from tests.load.test_second_process import alone, forked  # noqa: F401
from tests.load.test_second_process import events as many_events


def several_lists(lists: list[list[Any]], members: list[dict[str, Any]], indent: int | None) -> bytes:
    """An object with as many lists of events, and with members before, between and behind them."""
    parts = [json.dumps(key) + ": " + json.dumps(value, indent=indent) for key, value in members[0].items()]
    for one, behind in zip(lists, members[1:], strict=True):
        parts.append('"traceEvents": ' + json.dumps(one, indent=indent))
        parts += [json.dumps(key) + ": " + json.dumps(value, indent=indent) for key, value in behind.items()]
    return ("{" + ", ".join(parts) + "}").encode()


@st.composite
def doubled(draw: st.DrawFn) -> bytes:
    count = draw(st.integers(2, 3))
    lists = [draw(st.lists(events | odd, max_size=6)) for _ in range(count)]
    return several_lists(lists, [draw(metadata) for _ in range(count + 1)], draw(st.sampled_from([None, 0, 2])))


@settings(suppress_health_check=list(HealthCheck))
@given(doubled(), st.integers(1, 300))
def test_lists_under_a_doubled_key_are_joined(content: bytes, piece: int) -> None:
    """JSON leaves open which of two equal keys counts; no event is lost, in either reader."""
    assert_equal(reader.read(io.BytesIO(content), "t", piece), reference.parse(content, "t"))


@settings(suppress_health_check=list(HealthCheck))
@given(doubled(), st.integers(1, 300))
def test_repaired_it_has_each_event_once(content: bytes, piece: int) -> None:
    """The text made valid has one list, with the objects of all, and the other members."""
    written = b"".join(ValidText(io.BytesIO(content), piece=piece).document())
    keys: list[str] = []

    def remember(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys[:] = [key for key, _ in pairs]
        return dict(pairs)

    top = json.loads(written, object_pairs_hook=remember)
    assert keys.count("traceEvents") == 1
    read = reader.read(io.BytesIO(written), "t")
    assert read.info.events == reference.parse(content, "t").info.events
    assert set(top) == {*reference.parse(content, "t").info.metadata, "traceEvents"}


@pytest.mark.parametrize("piece", [500, 10_000])
def test_doubled_lists_in_two_processes(tmp_path: Path, forked: list[int], piece: int) -> None:  # noqa: F811
    """The second list is no part of what they share."""
    path = tmp_path / "t.json"
    path.write_bytes(several_lists([many_events(100), many_events(200)], [{"a": 1}, {"b": 2}, {}], None))
    trace = load(path, piece=piece)
    assert forked == [1]
    assert_equal(trace, alone(path))
    assert_equal(trace, reference.parse(path.read_bytes(), str(path)))


@pytest.mark.parametrize("piece", [100, 1 << 20])
@each("behind", [b'{"traceEvents": [{"ph": "X"}]}', b'\n[{"ph": "X"}]', b"garbage", b"}"])
def test_what_stands_behind_the_trace_is_reported(behind: bytes, piece: int) -> None:
    """Another trace has ids and a clock of its own: it is left out, and not without a word."""
    first = json.dumps({"traceEvents": many_events(10), "traceName": "t"}).encode()
    trace = reader.read(io.BytesIO(first + behind), "t", piece)
    expected = reference.parse(first, "t")
    assert trace.info.events == expected.info.events
    assert trace.info.metadata == {"traceName": "t"}
    (warnings,) = trace.info.warnings
    assert f"{len(behind.strip())} byte" in warnings
    assert "after the end of the trace" in warnings
    text = ValidText(io.BytesIO(first + behind), piece=piece)
    assert json.loads(b"".join(text.document())) == json.loads(first)
    assert text.damage.sentences() == (warnings,)


def test_blanks_and_zeros_behind_the_trace_are_nothing() -> None:
    """Lines, and the padding of a block."""
    first = json.dumps({"traceEvents": many_events(10)}).encode()
    assert reader.read(io.BytesIO(first + b"\r\n" + bytes(1000)), "t").info.warnings == ()


def test_the_list_is_found_in_one_pass_over_the_head() -> None:
    """Keys of its name inside other members are passed over: how deep they lie is followed."""
    head = b'{"a": {' + b'"traceEvents": [], "b\\"{[": "{[",' * 50_000 + b'"z": 1}, "traceEvents": '
    result = Splitter(io.BytesIO(head + b'[{"ph": "X"}]}')).head()
    assert result is not None
    assert (result.text, result.whole) == (head, True)


def test_a_long_list_behind_the_events() -> None:
    """It is collected piece by piece, and read once."""
    text = b'{"traceEvents": [{"ph": "X"}], "samples": [' + b'{"cpu": 0, "name": "x"},' * 100_000 + b"1]}"
    trace = reader.read(io.BytesIO(text), "t", 10_000)
    assert len(trace.info.metadata["samples"]) == 100_001
    assert trace.info.warnings == ()


def test_an_event_with_a_long_list_in_it() -> None:
    """It is longer than many pieces, looks like many events, and is one."""
    part = b'{"name": "\\u00e9", "a": [true, null, -Infinity, -1.5e-7]},'
    text = b'[{"ph": "X", "args": {"list": [' + part * 25_000 + b"1]}}]"
    assert reader.read(io.BytesIO(text), "t", 10_000).info.events == 1


def test_many_lists_of_events() -> None:
    """However often the key stands there, each list is read once."""
    text = b'{"traceEvents": [{"ph": "X"}]' + b', "traceEvents": [{"ph": "X"}]' * 20_000 + b"}"
    assert reader.read(io.BytesIO(text), "t").info.events == 20_001


def test_a_second_list_that_breaks_off() -> None:
    """It is read as far as it goes, and both are said: that there is one, and that it ends too early."""
    text = several_lists([many_events(10), many_events(20)], [{}, {"b": 2}, {}], None)
    whole = reference.parse(text, "t")
    trace = reader.read(io.BytesIO(text[:-1000]), "t", 300)
    assert len(many_events(10)) < trace.info.events < whole.info.events
    assert trace.info.metadata == {"b": 2}
    assert "ends in the middle" in trace.info.warnings[0]
    assert any("1 further list" in sentence and "merged" in sentence for sentence in trace.info.warnings), (
        trace.info.warnings
    )


def test_damage_behind_the_events_is_reported() -> None:
    """Its readable part counts, and a warning says that the rest is missing."""
    text = b'{"traceEvents": [], "with_stack": 1, "x": {"a" 5}, "record_shapes": 1'
    info = reader.read(io.BytesIO(text), "t").info
    assert info.with_stack
    assert info.record_shapes
    assert info.warnings == (DAMAGED_TAIL,)


def test_a_long_list_behind_the_events_is_parsed_once_it_is_asked_for() -> None:
    """Lists that other writers add are unused; parsed on demand, they have the same value as ever."""
    samples = [{"cpu": 0, "name": "x" * n} for n in range(400)]
    text = json.dumps({"a": [1], "traceEvents": [{"ph": "X"}], "samples": samples, "b": 2}).encode()
    metadata = reader.read(io.BytesIO(text), "t").info.metadata
    assert isinstance(metadata, TopLevelKeys)
    assert {key: type(value) for key, value in metadata._values.items()} == {"a": list, "samples": Raw, "b": int}
    assert dict(metadata) == {"a": [1], "samples": samples, "b": 2}
    assert metadata["samples"] is metadata["samples"]


@pytest.mark.parametrize(
    ("text", "value"), [(b"[1e999]", [float("inf")]), (b"[" + b"9" * 5000 + b"]", None), (b"[10]", [10])]
)
def test_a_number_that_strict_readers_refuse_in_a_long_list(text: bytes, value: Any) -> None:
    """Python's own reader is asked next; where it has no value either, there is none."""
    assert TopLevelKeys({"a": Raw(text)})["a"] == value
