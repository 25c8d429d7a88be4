"""Broken traces are read as far as they go, and what was lost is said."""

from __future__ import annotations

import gzip
import io
import json
import random
import re
from pathlib import Path

import pytest

from syncscan.errors import TraceError
from syncscan.load import load, reader
from syncscan.model.trace import Trace
from tests.each import each

EVENT = (
    '{"ph": "X", "cat": "cpu_op", "name": "op%d", "pid": 1, "tid": 1, "ts": %d, "dur": 5, "args": {"External id": %d}}'
)


def text(count: int = 20) -> bytes:
    """A trace of ops named op0, op1 and so on."""
    events = ",\n".join(EVENT % (i, 10 * i, i + 1) for i in range(count))
    return f'{{"with_stack": 1, "traceEvents": [\n{events}\n], "traceName": "t"}}'.encode()


def read(content: bytes, piece: int = 1 << 20) -> Trace:
    return reader.read(io.BytesIO(content), "t.json", piece)


def names(trace: Trace) -> list[str]:
    return [trace.name(row) for row in range(len(trace.slices))]


@pytest.fixture(params=[1 << 20, 300, 10], ids="piece={}".format)
def piece(request: pytest.FixtureRequest) -> int:
    size: int = request.param
    return size


def test_unescaped_quotes(piece: int) -> None:
    """Version 2.13 of torch writes a scope's quotes as they are; they are put right."""
    trace = read(text().replace(b'"op3"', b'"my "scope", so "it" is"').replace(b'"op9"', b'"""'), piece)
    assert names(trace)[3] == 'my "scope", so "it" is'
    assert names(trace)[9] == '"'
    assert len(names(trace)) == 20
    assert trace.slices.external.tolist() == list(range(1, 21))
    (warnings,) = trace.info.warnings
    assert warnings.startswith("2 events are not valid JSON and repaired (the first damage is at byte ")


@pytest.mark.parametrize(
    "name",
    [
        '{"device": "cpu", "dtype": "float32"}(12): run',
        'f("a", "b": "c")',
        'say "no", then "ts": 3, "dur": 4',
        '"quoted", "name": "inner"',
    ],
)
def test_a_name_that_holds_what_looks_like_keys(piece: int, name: str) -> None:
    """A name ends where an event's next key follows, and the times behind it are the event's (kineto#1459)."""
    trace = read(text().replace(b"op3", name.encode()), piece)
    assert names(trace)[3] == name
    assert trace.slices.ts.tolist() == [10_000 * i for i in range(20)]
    assert trace.slices.external.tolist() == list(range(1, 21))
    assert len(trace.info.warnings) == 1


@pytest.mark.parametrize(
    "last",
    [
        EVENT.replace("op%d", 'my "scope", "a": "b"'),
        EVENT.replace('"dur": 5', '"dur" 5'),
        EVENT.removesuffix("}"),
        EVENT.replace('"args": {', '"args": {"Input Dims": [[1, 2]], "x": , '),
    ],
)
@pytest.mark.parametrize("tail", ['\n], "traceName": "t"}', "\n]}", '\n], "traceName": "t", "list": [{"a": [1]}]}\n'])
def test_a_damaged_last_event_does_not_cut_the_trace(piece: int, last: str, tail: str) -> None:
    """The list ends behind it: nothing is missing, and what stands behind the list is read."""
    content = text().decode()
    at = content.index(EVENT % (19, 190, 20))
    numbers = (19, 190, 20)[3 - last.count("%d") :]
    trace = read((content[:at] + last % numbers + tail).encode(), piece)
    assert trace.info.complete
    assert trace.slices.ts.tolist() == [10_000 * i for i in range(20)]
    assert trace.info.metadata.get("traceName") == ("t" if "traceName" in tail else None)


def test_a_cut_last_event_still_cuts_the_trace(piece: int) -> None:
    """Brackets within the event are none of the list's."""
    shapes = EVENT.replace('"args": {', '"args": {"Input Dims": [[1, 2], [3]], "Input type": ["float"], ')
    content = text().decode()
    content = content[: content.index("\n], ")] + ",\n" + shapes % (20, 200, 21)
    for end in range(content.index('"Input Dims"') + 20, len(content)):
        assert not read(content[:end].encode(), piece).info.complete


def test_a_file_that_ends_in_the_middle(piece: int) -> None:
    """A crash leaves the list open and the last event cut."""
    content = text()
    trace = read(content[: content.index(b'"op17"') + 30], piece)
    assert names(trace) == [f"op{i}" for i in range(17)]
    assert trace.info.with_stack
    assert "The trace ends in the middle of its events; the rest is missing" in trace.info.warnings[0]
    assert trace.info.warnings[1].startswith("1 event is unreadable and left out")


def test_gzip_cut_short(tmp_path: Path) -> None:
    """The part that can be unpacked is read."""
    content = text(3000)
    path = tmp_path / "t.json.gz"
    path.write_bytes(gzip.compress(content)[:-2000])
    trace = load(path)
    assert 2000 < len(names(trace)) < 3000
    assert re.match(r"After [\d,]+ bytes the compressed data is truncated", trace.info.warnings[0])
    assert "ends in the middle" in trace.info.warnings[1]


def test_gzip_damaged_at_its_end(tmp_path: Path) -> None:
    """A wrong checksum loses no event, but is told."""
    packed = bytearray(gzip.compress(text(3000)))
    packed[-6] ^= 1
    path = tmp_path / "t.json.gz"
    path.write_bytes(packed)
    trace = load(path)
    assert len(names(trace)) == 3000
    assert trace.info.warnings == ("The checksum of the compressed data is wrong: the trace may be corrupted.",)


def test_bytes_that_are_not_utf8(piece: int) -> None:
    """Torch 2.6 and older wrote names as they were."""
    trace = read(text().replace(b"op5", b"op\xff\xfe5"), piece)
    assert names(trace)[5] == "op\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}5"
    assert "not UTF-8" in trace.info.warnings[0]


def test_entries_that_are_no_events(piece: int) -> None:
    """Numbers, words, lists and null between events."""
    trace = read(text().replace(b'{"ph": "X", "cat": "cpu_op", "name": "op7"', b'7, "x", null, [1, {}], \\g<0>'), piece)
    assert len(names(trace)) >= 19
    assert any("not objects and left out" in w for w in trace.info.warnings)
    clean = read(text().replace(b",\n", b', 7, "x", null, [1],\n', 1), piece)
    assert len(names(clean)) == 20
    assert clean.info.warnings == ("4 entries of traceEvents are not objects and left out.",)


def test_fields_of_the_wrong_type(piece: int) -> None:
    """Each costs its own field at most; without a time there is no event."""
    content = text(8)
    for old, new in (
        (b'"ts": 10,', b'"ts": "10.5",'),
        (b'"ts": 20,', b'"ts": [20],'),
        (b'"dur": 5, "args": {"External id": 4}', b'"dur": null, "args": {"External id": {}}'),
        (b'"dur": 5, "args": {"External id": 5}', b'"args": 5'),
        (b'"dur": 5, "args": {"External id": 6}', b'"dur": -3, "args": {"External id": 1e3}'),
        (b'"name": "op6"', b'"name": 6'),
        (b'"ts": 70', b'"ts": 1e300'),
    ):
        assert old in content
        content = content.replace(old, new)
    trace = read(content, piece)
    assert trace.slices.ts.tolist() == [0, 10_500, 30_000, 40_000, 50_000, 60_000]
    assert trace.slices.dur.tolist() == [5000, 5000, 0, 0, 0, 5000]
    assert trace.slices.external.tolist() == [1, 2, -1, -1, 1000, 7]
    assert names(trace) == ["op0", "op1", "op3", "op4", "op5", "6"]
    assert trace.info.warnings == (
        "2 events are without a usable time and left out.",
        "2 events are without a usable duration, taken as 0.",
    )


def test_numbers_that_json_has_not(piece: int) -> None:
    """NaN and Infinity in any spelling; names that look like them stay."""
    content = text().replace(b'"External id": 3', b'"a": nan, "b": [-inf, NaN], "c": Infinity, "External id": 3')
    trace = read(content.replace(b"op4", b"x: nan, y"), piece)
    assert names(trace)[4] == "x: nan, y"
    assert trace.slices.external.tolist() == list(range(1, 21))
    assert trace.info.warnings == ()


def test_an_event_that_stands_twice(piece: int) -> None:
    """Equal in place, time and ids: it is one."""
    content = text()
    again = (EVENT % (7, 70, 8)).encode()
    trace = read(content.replace(again, again + b",\n" + again), piece)
    assert len(names(trace)) == 20
    assert trace.info.warnings == ("1 event is duplicated and counted once.",)


def test_calls_that_share_a_correlation() -> None:
    """Nothing is lost, but what is joined by it may be wrong."""
    call = '{"ph": "X", "cat": "cuda_runtime", "name": "c", "tid": 1, "ts": %d, "dur": 1, "args": {"correlation": 5}}'
    trace = read(f"[{call % 1},{call % 2}]".encode())
    assert len(names(trace)) == 2
    assert "1 correlation id is shared by several calls" in trace.info.warnings[0]


def test_a_damaged_head(piece: int) -> None:
    """The events are read, and what can be of the head."""
    content = text().replace(b'"with_stack": 1,', b'"a": {"b": , "with_stack": 1, x')
    trace = read(content, piece)
    assert len(names(trace)) == 20
    assert trace.info.with_stack
    assert trace.info.warnings[0].startswith("The head of the trace is damaged")
    nameless = read(content.replace(b"traceEvents", b"tracexvents"), piece)
    assert len(names(nameless)) == 20
    assert nameless.info.warnings[0].startswith("The head of the trace is damaged")


def test_a_bracket_in_the_wrong_place(piece: int) -> None:
    """One that closes the list too early ends nothing, if events follow."""
    trace = read(text().replace(b"},\n", b"}]\n", 1), piece)
    assert len(names(trace)) == 20


def test_a_lost_line(piece: int) -> None:
    """Whatever line is missing, no more than two events are."""
    lines = json.dumps(json.loads(text(9)), indent=1).split("\n")
    for i in range(2, len(lines) - 3):
        trace = read("\n".join(lines[:i] + lines[i + 1 :]).encode(), piece)
        assert 7 <= trace.info.events <= 9


def damaged(content: bytes, rng: random.Random) -> bytes:
    """Bytes flipped, cut, dropped, doubled."""
    kind, at = rng.randrange(5), rng.randrange(len(content))
    if kind == 0:
        return content[:at]
    if kind == 1:
        return content[:at] + content[at + rng.randrange(3000) :]
    if kind == 2:
        other = rng.randrange(len(content))
        return content[:at] + content[other : other + 2000] + content[at:]
    if kind == 3:
        lines = content.split(b"\n")
        for _ in range(min(len(lines), rng.choice([1, 10]))):
            del lines[rng.randrange(len(lines))]
        return b"\n".join(lines)
    bad = bytearray(content)
    for _ in range(rng.choice([1, 5, 50, 500])):
        bad[rng.randrange(len(bad))] = rng.randrange(256)
    return bytes(bad)


@each("seed", range(8))
def test_any_damage(tmp_path: Path, seed: int) -> None:
    """200 files damaged at random, packed or not: a trace or a TraceError, and never a silent loss."""
    rng = random.Random(seed)
    path = tmp_path / "t.json"
    whole = json.dumps(json.loads(text(200)), indent=rng.choice([None, 1])).encode()
    for _ in range(25):
        content = damaged(gzip.compress(whole) if rng.random() < 0.3 else whole, rng)
        path.write_bytes(content)
        try:
            trace = load(path, piece=rng.choice([1000, 1 << 20]))
        except TraceError:
            continue
        assert trace.info.warnings or trace.info.events >= 200
