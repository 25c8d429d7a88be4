"""The text of a trace made valid: as it stands where it is valid, and repaired where it isn't."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncscan.errors import TraceUnreadable
from syncscan.load.event import DECODER, typed_events
from syncscan.load.valid_json import ValidText, _as_it_stands
from tests.each import each

EVENT = '{"ph": "X", "cat": "cpu_op", "name": "%s", "pid": 1, "tid": 1, "ts": %d, "dur": 1}'


def valid(text: bytes, piece: int = 1 << 20) -> ValidText:
    return ValidText(io.BytesIO(text), piece=piece)


def events(text: bytes, piece: int = 1 << 20) -> list[Any]:
    """The events as any strict reader sees them."""
    joined = b",".join(valid(text, piece).pieces())

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} isn't JSON")

    document: list[Any] = json.loads(b"[" + joined + b"]", parse_constant=refuse)
    return document


def pretty(count: int) -> bytes:
    """A trace written as kineto does, over several lines."""
    body = ",\n  ".join(EVENT % (f"op {k}", k) for k in range(count))
    return b'{\n  "schemaVersion": 1,\n  "traceEvents": [\n  ' + body.encode() + b'\n  ],\n  "traceName": "t"\n}'


@given(st.integers(1, 60), st.integers(64, 2000))
def test_a_valid_trace_comes_out_byte_for_byte(count: int, piece: int) -> None:
    """Head and events are the file's own text, however it is cut."""
    text = pretty(count)
    result = valid(text, piece)
    joined = result.head + b"[" + b",".join(result.pieces())
    assert text.startswith(joined)
    assert text[len(joined) :].lstrip().startswith(b"]")


def test_a_bare_list_has_no_head() -> None:
    """Some tools write a list alone."""
    text = f"[{EVENT % ('a', 1)},{EVENT % ('b', 2)}]".encode()
    assert valid(text).head == b""
    assert [e["name"] for e in events(text)] == ["a", "b"]


def test_a_file_that_breaks_off_ends_with_its_last_whole_event() -> None:
    """A crash leaves the list open, in the middle of an event."""
    text = pretty(50)
    result = events(text[: text.index(b'"op 40"')], piece=500)
    assert [e["ts"] for e in result] == list(range(40))


def test_quotes_in_names_are_escaped() -> None:
    """Torch 2.13 writes them as they are; what stands around stays as it is."""
    text = pretty(3).replace(b'"op 1"', b'"my "scope""')
    assert [e["name"] for e in events(text)] == ["op 0", 'my "scope"', "op 2"]


def test_numbers_that_json_has_not_become_null() -> None:
    """Browsers refuse a file with one bare NaN in it."""
    text = pretty(2).replace(b'"dur": 1', b'"dur": 1, "args": {"bandwidth": NaN}', 1)
    assert [e.get("args") for e in events(text)] == [{"bandwidth": None}, None]


def test_bytes_that_are_no_text_are_replaced() -> None:
    """One bad byte would keep TensorBoard from reading any of it."""
    text = pretty(2).replace(b"op 1", b"op \xff1")
    assert [e["name"] for e in events(text)] == ["op 0", "op \N{REPLACEMENT CHARACTER}1"]


def test_half_characters_are_replaced() -> None:
    """An escaped surrogate without its other half is no text; a whole pair is."""
    text = pretty(3).replace(b"op 1", b"\\ud83d\\ude00 \\ud800")
    assert [e["name"] for e in events(text)] == ["op 0", "\N{GRINNING FACE} \N{REPLACEMENT CHARACTER}", "op 2"]


def test_lists_behind_the_events_are_no_events() -> None:
    """Members that follow the list may look like events."""
    text = pretty(2).replace(b'"traceName": "t"', b'"other": [{"name": 1}, {"name": 2}, {"ph": "X", "ts": 3}]')
    assert [e["ts"] for e in events(text, piece=64)] == [0, 1]


def test_events_come_one_by_one_too() -> None:
    """For those who pick some of them."""
    assert [json.loads(e)["ts"] for e in valid(pretty(3)).events()] == [0, 1, 2]


@pytest.mark.parametrize("text", [b'{"traceEvents": []}', b'{"traceEvents": [', b'{"traceEvents": [1, 2]}'])
def test_no_events_are_no_error(text: bytes) -> None:
    """A profiler that saw nothing writes such files."""
    assert events(text) == []


@pytest.mark.parametrize("text", [b"[]", b" [1, 2, 3]", b'[["ph"], "X"]', b"["])
@each("piece", [1, 1 << 20])
def test_a_list_without_an_event_is_no_trace(text: bytes, piece: int) -> None:
    """As the reader has it: any JSON file may be a list."""
    with pytest.raises(TraceUnreadable, match="it is a list without a readable event"):
        events(text, piece)


def test_what_is_no_trace_is_reported() -> None:
    """A list of events is the least."""
    with pytest.raises(TraceUnreadable, match="no list of events"):
        valid(b'{"a": 1}')


@pytest.mark.parametrize("value", ["NaN", "-Infinity", "1e999", "[NaN, 1e999]", '{"a": {"b": -1e999}}', '"\\ud800"'])
@each("name", ["before", "behind", "in_event"])
def test_no_member_keeps_what_strict_readers_refuse(name: str, value: str) -> None:
    """Neither in front of the events nor behind them nor in one of them."""
    values = {key: value if key == name else "1" for key in ("before", "behind", "in_event")}
    body = '{{"ph": "X", "name": NaN, "a": {in_event}}}'.format(**values)
    text = f'{{"before": {values["before"]}, "traceEvents": [{body}], "behind": {values["behind"]}}}'.encode()

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} isn't JSON")

    written = b"".join(valid(text).document())
    top = json.loads(written, parse_constant=refuse)
    json.dumps(top, ensure_ascii=False).encode()
    assert set(top) == {"before", "traceEvents", "behind"}


def test_numbers_that_no_reader_takes() -> None:
    """Python reads integers of 4,300 digits at most: in an event they cost their field, in a member the value."""
    endless = "9" * 5000
    text = '{"a": %s, "traceEvents": [%s, {"ph": "X", "ts": 1, "name": "b", "args": {"n": %s}}], "z": -%s}'
    document = b"".join(valid((text % (endless, EVENT % ("a", 1), endless, endless)).encode()).document())
    assert [event["name"] for event in json.loads(document)["traceEvents"]] == ["a", "b"]


def test_digits_in_a_name_stay() -> None:
    """A name may be of digits alone."""
    assert [event["name"] for event in events(f"[{EVENT % ('9' * 5000, 1)}]".encode())] == ["9" * 5000]


def test_no_event_keeps_the_lists_own_key_twice() -> None:
    """Some readers refuse an object with that, wherever it stands; the others of its events stay as they stood."""
    twice = '{"ph": "X", "traceEvents": [], "name": "a", "traceEvents": [7]}'
    text = f'{{"traceEvents": [{EVENT % ("b", 1)}, {twice}, {{"ph":"X", "name" :"c"}}]}}'
    written = b"".join(valid(text.encode()).document()).decode()
    assert written.count('"traceEvents"') == 2
    assert [event["name"] for event in json.loads(written)["traceEvents"]] == ["b", "a", "c"]
    assert EVENT % ("b", 1) in written
    assert '{"ph":"X", "name" :"c"}' in written


_WITHIN = st.sampled_from([
    *('"', "\\", "\\u", "\\ud800", "\\udc00", "\x01", "\x00", "é", "\u2028", " "),
    *("NaN", "Infinity", "-", "1e999", "000", "1" * 40, "null", "true"),
    *("{", "}", "[", "]", ",", ":", '"a": 1,', '"ts": "7",', '"args": {},', '"x": {"y": [1,{}]},'),
    *('"traceEvents": [],', '"traceEvents": "",'),
])  # fmt: skip


@pytest.mark.parametrize("decode", [DECODER.decode, typed_events])
@pytest.mark.parametrize("category", ["cpu_op", "python_function"])
@given(st.lists(st.tuples(st.integers(0, 170), st.integers(0, 3), _WITHIN), max_size=4))
def test_what_reading_decodes_strict_readers_take(
    decode: Callable[[bytes], object], category: str, edits: list[tuple[int, int, str]]
) -> None:
    """So it needn't be checked again: a decoder checks what it skips too, but for encodings and numbers' lengths."""
    text = "[" + EVENT.replace("}", ', "args": {"x": "y", "External id": 3}, "of no use": "a\\n"}') % ("b", 5) + "]"
    text = text.replace("cpu_op", category)
    for at, length, put in edits:
        text = text[:at] + put + text[at + length :]
    try:
        decode(text.encode())
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return
    assert _as_it_stands(text.encode()) == (text[1:-1].encode() or None)
    json.loads(text, parse_constant=pytest.fail)
