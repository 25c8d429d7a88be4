"""`syncscan repair`: a valid file from a broken one, whole or not at all."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from syncscan.cli.repair import command
from syncscan.errors import TraceEmpty, TraceError, TraceUnreadable, UsageError
from syncscan.load import load
from tests.builder import TraceBuilder


def broken() -> bytes:
    """A trace with a quote in a scope's name, as torch 2.13 writes it, and without its last 40 bytes."""
    t = TraceBuilder(with_stack=1)
    with t.scope("my QscopeQ", 0, 100):
        t.sync("aten::item", at=5, wait=10)
        t.sync("aten::nonzero", at=50, wait=10)
    return t.json().replace(b"Q", b'"')[:-40]


def run(*args: str, **options: object) -> Result:
    return CliRunner().invoke(command, list(args), **options)  # type: ignore[arg-type]


def test_a_broken_trace_becomes_a_valid_one(tmp_path: Path) -> None:
    """The output is JSON, has the scope with its quotes, and needs no further repair."""
    source, out = tmp_path / "broken.json", tmp_path / "whole.json"
    source.write_bytes(broken())
    result = run(str(source), "-o", str(out))
    assert result.exit_code == 0
    names = [e["name"] for e in json.loads(out.read_bytes())["traceEvents"]]
    assert 'my "scope"' in names
    assert load(out).info.warnings == ()
    assert load(out).info.with_stack
    assert "repaired" in result.stderr
    assert "not valid JSON and repaired" in result.stderr
    assert "ends in the middle of its events" in result.stderr


def test_a_whole_trace_stays_as_it_is(tmp_path: Path) -> None:
    """Byte for byte, with keys on both sides of the events."""
    text = b'{"a": 1, "traceEvents": [\n{"ph": "X"},\n  {"ph": "M"} ],\n "traceName": "t"}\n'
    source, out = tmp_path / "t.json", tmp_path / "out.json"
    source.write_bytes(text)
    result = run(str(source), "-o", str(out))
    assert out.read_bytes().split() == text.split()
    assert "nothing was broken" in result.stderr


def test_packed_in_and_out(tmp_path: Path) -> None:
    """A gzip file that was cut short becomes a whole one."""
    source, out = tmp_path / "cut.json.gz", tmp_path / "out.json.gz"
    source.write_bytes(gzip.compress(broken())[:-60])
    result = run(str(source), "-o", str(out))
    assert json.loads(gzip.decompress(out.read_bytes()))["traceEvents"]
    assert "truncated" in result.stderr


def test_from_standard_input(tmp_path: Path) -> None:
    """`-` reads a pipe."""
    out = tmp_path / "out.json"
    result = run("-", "-o", str(out), input=b'[{"ph": "X"}, 7')
    assert json.loads(out.read_bytes()) == [{"ph": "X"}]
    assert "not objects" in result.stderr


def test_nothing_is_overwritten_unasked(tmp_path: Path) -> None:
    """An existing file needs --force, and the trace itself is never the target."""
    source, out = tmp_path / "t.json", tmp_path / "out.json"
    source.write_bytes(broken())
    out.write_text("mine")
    assert isinstance(run(str(source), "-o", str(out)).exception, UsageError)
    assert isinstance(run(str(source), "-o", str(source), "--force").exception, UsageError)
    assert out.read_text() == "mine"
    assert run(str(source), "-o", str(out), "--force").exit_code == 0
    assert json.loads(out.read_bytes())


@pytest.mark.parametrize("text", [b"hello", b"{}", b'{"a": [1, 2]}', b"[1, 2, 3]", b" []"])
def test_what_is_no_trace_leaves_nothing_behind(tmp_path: Path, text: bytes) -> None:
    """No file is written, not even a temporary one."""
    source = tmp_path / "t.json"
    source.write_bytes(text)
    assert isinstance(run(str(source), "-o", str(tmp_path / "out.json")).exception, TraceUnreadable)
    assert [p.name for p in tmp_path.iterdir()] == ["t.json"]


@pytest.mark.parametrize(
    ("stored", "error", "text"),
    [
        (b"", TraceEmpty, "t.json is empty."),
        (gzip.compress(b""), TraceEmpty, "t.json is empty."),
        (
            gzip.compress(broken())[:8],
            TraceUnreadable,
            "t.json can't be read: After 0 bytes the compressed data is truncated",
        ),
        (b"[1, 2, 3]", TraceUnreadable, "t.json isn't a trace: it is a list without a readable event."),
        (
            gzip.compress(b"[" + bytes(range(48, 58)) * 5000)[:40],
            TraceUnreadable,
            "t.json can't be read: After ",
        ),
    ],
    ids=["empty", "empty when unpacked", "broken off", "numbers", "numbers that cut off"],
)
def test_why_nothing_can_be_repaired(tmp_path: Path, stored: bytes, error: type[TraceError], text: str) -> None:
    """It is said as every command says it."""
    source = tmp_path / "t.json"
    source.write_bytes(stored)
    for raised in (run(str(source), "-o", str(tmp_path / "out.json")).exception, _raised_by_load(source)):
        assert type(raised) is error
        assert text in str(raised)


def _raised_by_load(path: Path) -> BaseException:
    with pytest.raises(TraceError) as caught:
        load(path)
    return caught.value


def test_another_tools_trace_is_named(tmp_path: Path) -> None:
    """It is written all the same: any viewer may read it, but syncscan won't."""
    source, out = tmp_path / "t.json", tmp_path / "out.json"
    source.write_text(
        '{"traceEvents": [{"ph": "X", "cat": "FEE", "name": "f", "pid": 1, "tid": 1, "ts": 1, "dur": 2}]}'
    )
    result = run(str(source), "-o", str(out))
    assert result.exit_code == 0
    assert "has data of VizTracer" in result.stderr
    assert json.loads(out.read_bytes())["traceEvents"]
