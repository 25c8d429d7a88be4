"""Annotated trace files: written whole or not at all, named so that TensorBoard finds them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from syncscan import api, files, load
from syncscan.errors import TraceUnreadable
from syncscan.integrations import annotated_copy
from syncscan.load import byte_stream, second_process, valid_json
from syncscan.model.analysis import Analysis
from tests.report.test_annotate import story


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A trace as kineto writes it, over several lines."""
    t = story()
    path = tmp_path / "recorded.json"
    path.write_text(json.dumps({**t.metadata, "traceEvents": t.events, "traceName": "recorded"}, indent=1))
    return path


def test_the_recorded_events_are_the_file_s_own_bytes(recorded: Path) -> None:
    """Up to the last recorded event the copy is the trace, byte for byte."""
    before = recorded.read_bytes()
    after = b"".join(annotated_copy.annotated(api.analyze(recorded), str(recorded)))
    assert after.startswith(before[: before.rindex(b"}", 0, before.rindex(b"]")) + 1])
    assert json.loads(after)["traceName"] == "recorded"


def test_a_trace_that_breaks_off_is_annotated_in_its_repaired_form(recorded: Path) -> None:
    """The copy of half a file is a whole file."""
    recorded.write_bytes(recorded.read_bytes()[:-600])
    events = json.loads(b"".join(annotated_copy.annotated(api.analyze(recorded), str(recorded))))["traceEvents"]
    assert any(e.get("cat") == "syncscan_finding" for e in events)


def test_a_copy_adds_nothing(recorded: Path) -> None:
    """The run beside the annotated copy is the trace itself."""
    assert json.loads(b"".join(annotated_copy.copied(api.analyze(recorded), str(recorded)))) == json.loads(
        recorded.read_text()
    )


def test_a_copy_is_analyzed_like_the_trace(recorded: Path) -> None:
    """Added rows change no finding: they aren't taken for the program's."""
    again = recorded.with_name("copy.json")
    before = api.analyze(recorded)
    files.write(again, annotated_copy.annotated(before, str(recorded)))
    after = api.analyze(again)
    assert [(f.id, f.count, f.wait_us, f.bubble_us) for f in after.findings] == [
        (f.id, f.count, f.wait_us, f.bubble_us) for f in before.findings
    ]


def test_a_copy_of_a_copy_is_that_copy(recorded: Path) -> None:
    """Annotating what is annotated draws nothing twice."""
    again = recorded.with_name("copy.json")
    files.write(again, annotated_copy.annotated(api.analyze(recorded), str(recorded)))
    analysis = api.analyze(again)
    events = json.loads(again.read_text())["traceEvents"]
    for text in (annotated_copy.annotated(analysis, str(again)), annotated_copy.untangled_copy(analysis, str(again))):
        assert json.loads(b"".join(text))["traceEvents"] == events
    part = json.loads(b"".join(annotated_copy.annotated(analysis, str(again), "1")))["traceEvents"]
    assert len([e for e in part if e["name"] == "process_labels"]) == 1


@pytest.mark.parametrize(
    ("name", "reads"),
    [("a.pt.trace.json", True), ("a.123.pt.trace.json.gz", True), ("a.json.gz", False), (".pt.trace.json", False)],
)
def test_which_files_tensorboard_reads(name: str, reads: bool) -> None:
    """The plugin's own pattern decides."""
    assert annotated_copy.read_by_tensorboard(name) is reads


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("a/host_1.1234.pt.trace.json.gz", "host_1_1234"),
        ("trace.json", "trace"),
        ("x y&z.json.zst", "x_y_z"),
        (".json", "trace"),
        ("s3://bucket/t.json.gz", "t"),
    ],
)
def test_a_run_is_named_after_its_trace(path: str, name: str) -> None:
    """Without suffixes, and without what a URL or the plugin takes for something else."""
    assert annotated_copy.run_name(path) == name


@pytest.mark.parametrize("makes", [True, False])
def test_a_second_process_draws_the_same(recorded: Path, monkeypatch: pytest.MonkeyPatch, makes: bool) -> None:
    """While the trace is copied; where it dies, the first draws what it would have."""
    analysis = api.analyze(recorded)
    alone = b"".join(annotated_copy.annotated(analysis, str(recorded)))
    requests: list[object] = []

    class Second:
        def __init__(self, work: Callable[[], bytes]) -> None:
            self.made = work() if makes else None

        def __enter__(self) -> None: ...
        def __exit__(self, *_: object) -> None: ...

        def result(self) -> bytes | None:
            requests.append(self)
            return self.made

    monkeypatch.setattr(second_process, "WORTHWHILE_BYTES", 1)
    monkeypatch.setattr(second_process, "possible", lambda: True)
    monkeypatch.setattr(second_process, "SecondProcess", Second)
    assert b"".join(annotated_copy.annotated(analysis, str(recorded))) == alone
    assert len(requests) == 1


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are taken to have been written long ago."""
    monkeypatch.setattr(byte_stream, "_SETTLED_NS", 0)


@pytest.mark.usefixtures("settled")
def test_what_reading_found_valid_is_not_checked_again(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The copy is the same."""
    analysis = api.analyze(recorded)
    checked = b"".join(annotated_copy.annotated(replaced(analysis, sound=None), str(recorded)))
    monkeypatch.setattr(valid_json, "_as_it_stands", None)
    assert b"".join(annotated_copy.annotated(analysis, str(recorded))) == checked


def replaced(analysis: Analysis, **info: Any) -> Analysis:
    """The analysis of a trace of which reading says something else."""
    return replace(analysis, trace=replace(analysis.trace, info=replace(analysis.trace.info, **info)))


@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize("value", ["NaN", "1e400", '"x\\ud800"', "00", "{"])
def test_what_was_repaired_is_checked_again(recorded: Path, value: str) -> None:
    """Reading says nothing of a file that strict readers refuse, wherever in an event that is."""
    text = recorded.read_text()
    at = text.index('"dur": ')
    recorded.write_text(text[:at] + f'"args": {{"of no use": {value}}}, ' + text[at:])
    analysis = api.analyze(recorded)
    copy = b"".join(annotated_copy.annotated(analysis, str(recorded)))
    assert copy == b"".join(annotated_copy.annotated(replaced(analysis, sound=None), str(recorded)))
    json.loads(copy, parse_constant=pytest.fail)


@pytest.mark.usefixtures("settled")
def test_what_reading_skipped_is_checked_as_ever(recorded: Path) -> None:
    """Reading doesn't check the encoding, or the digits of numbers, of what it skips; annotating does."""
    for bad in (b'"\xff"', b"1" * 5000):
        text = recorded.read_bytes()
        at = text.index(b'"dur": ')
        recorded.write_bytes(text[:at] + b'"unknown": ' + bad + b", " + text[at:])
        copy = b"".join(annotated_copy.annotated(api.analyze(recorded), str(recorded)))
        assert json.loads(copy.decode())["traceEvents"]


@pytest.mark.usefixtures("settled")
def test_a_trace_that_is_another_one_by_then_is_checked(recorded: Path) -> None:
    """A trace of equal name, length and time is broken by then."""
    analysis, before, was = api.analyze(recorded), recorded.read_bytes(), recorded.stat()
    recorded.write_bytes(before.replace(b'"dur": ', b'"dur" ; ', 1))
    os.utime(recorded, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert json.loads(b"".join(annotated_copy.annotated(analysis, str(recorded))))["traceEvents"]


@pytest.mark.usefixtures("settled")
def test_a_trace_that_is_written_to_while_it_is_copied_is_refused(recorded: Path) -> None:
    """Nobody knows what was copied; nothing is left of it."""
    analysis, out = api.analyze(recorded), recorded.with_name("out.json")

    def meanwhile() -> Iterator[bytes]:
        for piece in annotated_copy.annotated(analysis, str(recorded)):
            recorded.touch()
            yield piece

    with pytest.raises(TraceUnreadable, match="changed while it was copied"):
        files.write(out, meanwhile())
    assert sorted(path.name for path in recorded.parent.iterdir()) == ["recorded.json"]


def test_a_trace_that_was_just_written_is_checked(recorded: Path) -> None:
    """Another change may bear the same time."""
    assert api.analyze(recorded).trace.info.sound is None


@pytest.mark.usefixtures("settled")
def test_two_processes_both_say_whether_all_was_valid(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of many pieces is broken, whoever reads it."""
    monkeypatch.setattr(second_process, "WORTHWHILE_BYTES", 0)
    monkeypatch.setattr(second_process, "possible", lambda: True)
    monkeypatch.setattr(load, "PIECE", 1000)
    assert load.load(recorded, piece=1000).info.sound is not None
    text = recorded.read_text()
    *places, in_the_end = (match.start() for match in re.finditer('"dur": ', text))
    for at in places:
        recorded.write_text(text[:at] + '"x": NaN, ' + text[at:])
        assert load.load(recorded, piece=1000).info.sound is None
    recorded.write_text(text[:in_the_end] + '"x": NaN, ' + text[in_the_end:])
    assert load.load(recorded, piece=1000).info.sound is not None


def test_nothing_is_drawn_in_vain(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy that has everything needs no second process, however long it is."""
    copy = recorded.with_name("copy.json")
    files.write(copy, annotated_copy.annotated(api.analyze(recorded), str(recorded)))
    analysis = api.analyze(copy)
    monkeypatch.setattr(second_process, "WORTHWHILE_BYTES", 0)
    monkeypatch.setattr(second_process, "possible", lambda: True)
    monkeypatch.setattr(second_process, "SecondProcess", None)
    assert b"".join(annotated_copy.annotated(analysis, str(copy))).count(b'"cat":"syncscan_finding"') == 2
