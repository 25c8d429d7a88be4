"""Annotated trace files: written whole or not at all, named so that TensorBoard finds them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from syncscan import api, files
from syncscan.viewers import annotated_copy
from tests.report.example import story


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


@pytest.mark.parametrize("value", ["NaN", "1e400", '"x\\ud800"', "00", "{"])
def test_a_copy_is_valid_everywhere(recorded: Path, value: str) -> None:
    """Whatever strict readers refuse, wherever in an event that is."""
    text = recorded.read_text()
    at = text.index('"dur": ')
    recorded.write_text(text[:at] + f'"args": {{"of no use": {value}}}, ' + text[at:])
    json.loads(b"".join(annotated_copy.annotated(api.analyze(recorded), str(recorded))), parse_constant=pytest.fail)


def test_what_reading_skips_is_checked(recorded: Path) -> None:
    """Reading doesn't check the encoding, or the digits of numbers, of what it skips; annotating does."""
    for bad in (b'"\xff"', b"1" * 5000):
        text = recorded.read_bytes()
        at = text.index(b'"dur": ')
        recorded.write_bytes(text[:at] + b'"unknown": ' + bad + b", " + text[at:])
        copy = b"".join(annotated_copy.annotated(api.analyze(recorded), str(recorded)))
        assert json.loads(copy.decode())["traceEvents"]
