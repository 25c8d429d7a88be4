"""A saved analysis takes the place of its trace, and what doesn't hold in one is refused in a sentence."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from syncscan import api, load
from syncscan.errors import SyncscanError, TraceTooLarge, TraceUnreadable, UsageError
from tests.builder import MAIN, TraceBuilder
from tests.each import each


def story() -> TraceBuilder:
    """Three steps with a sync, frames, autograd's arrows, capture's lines and a DataLoader."""
    t = TraceBuilder(with_stack=1)
    for start in t.steps(3, lasts=1000):
        with t.scope("mask", start + 10, start + 800), t.frame("train.py(3): loss", start + 11, start + 790):
            t.launch("gemm", at=start + 12, lasts=400)
            t.sync("aten::nonzero", at=start + 20)
            t.arrow(start + 500, start + 900)
            t.frame("train.py(9): score", start + 600, start + 700)
        t.launch("head", at=start + 900, lasts=50, stream=9)
    t.exact(24, ("train.py", 7, "loss"), ("main.py", 2, "<module>"), module="Net/head")
    return t


def saved(t: TraceBuilder, folder: Path, **requested: Any) -> Path:
    """The saved analysis of a trace."""
    path = folder / "x.syncscan.json"
    path.write_text(api.analyze(t.write(folder / "t.json"), **requested).to_saved())
    return path


@pytest.mark.parametrize("requested", [{}, {"step_ms": 0.7}, {"step_scope": "mask"}, {"steps": "none"}])
def test_every_report_of_it_is_that_of_the_trace(tmp_path: Path, requested: dict[str, Any]) -> None:
    """JSON, text and the page with its timeline say the same, also with what was asked when it was saved."""
    path = saved(story(), tmp_path, **requested)
    before, after = api.analyze(tmp_path / "t.json", **requested), api.analyze(path)
    assert (after.to_json(), str(after)) == (before.to_json(), str(before))
    assert after.to_html() == before.to_html()
    assert after.to_saved() == path.read_text()


def test_questions_are_answered_as_of_the_trace(tmp_path: Path) -> None:
    """Another selector and another step time need the graph, which is made anew."""
    path = saved(story(), tmp_path)
    before, after = api.analyze(tmp_path / "t.json"), api.analyze(path)
    assert after.whatif("scope:mask", step_ms=0.9) == before.whatif("scope:mask", step_ms=0.9)


def test_a_file_of_several_processes_keeps_them_all(tmp_path: Path) -> None:
    """The report mentions the other processes too, and another one can be chosen."""
    t = story()
    t.events += [{**e, "pid": 200} for e in t.events if e.get("pid") == MAIN and e["cat"] != "fwdbwd"]
    path = saved(t, tmp_path, process="200")
    before, after = api.analyze(tmp_path / "t.json", process="200"), api.analyze(path)
    assert after.to_json() == before.to_json()
    assert api.analyze(path, process="100").step.processes[0] == "100"


def test_the_source_is_kept_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines are told from the source that stood there when it was saved, not from what stands there now."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("class A:\n    @staticmethod\n    def loss(x):\n\n        return x.nonzero()\n")
    t = TraceBuilder()
    for start in t.steps(2, lasts=1000):
        with t.frame("train.py(2): loss", start + 5, start + 900):
            t.launch("gemm", at=start + 12, lasts=400)
            t.sync("aten::nonzero", at=start + 20)
    path = saved(t, tmp_path)
    (tmp_path / "train.py").write_text("")
    source = api.analyze(path).findings[0].source
    assert source is not None
    assert source.candidates == (5,)


def column(document: Any, table: str, name: str, data: bytes) -> None:
    document["saved"]["trace"][table]["columns"][name] = base64.b64encode(data).decode()


DAMAGE: dict[str, tuple[Callable[[Any], None], str]] = {
    "newer": (lambda d: d["saved"].update(version=99, more=1), "another syncscan: its version is 99"),
    "older": (lambda d: d["saved"].update(version=1), "another syncscan: its version is 1"),
    "report": (lambda d: d.pop("saved"), "is a report"),
    "other document": (lambda d: d.update(schema="syncscan.whatif/1"), "is a report (syncscan.whatif/1)"),
    "no version": (lambda d: d["saved"].pop("version"), "version"),
    "unknown key": (lambda d: d["saved"].update(x=1), "unknown field"),
    "wrong type": (lambda d: d["saved"]["trace"].update(strings=[1]), "Expected `str`"),
    "no base64": (lambda d: d["saved"]["trace"]["slices"]["columns"].update(ts="?"), "base64"),
    "no zlib": (lambda d: column(d, "slices", "ts", b"xyz"), "column ts is damaged"),
    "short": (lambda d: column(d, "slices", "dur", zlib.compress(b"")), "hasn't"),
    "bomb": (lambda d: column(d, "slices", "dur", zlib.compress(bytes(10**7))), "hasn't"),
    "rows": (lambda d: d["saved"]["trace"]["slices"].update(rows=2**31), "fit into memory"),
    "a column less": (lambda d: d["saved"]["trace"]["frames"]["columns"].pop("ts"), "columns aren't"),
    "no such name": (lambda d: d["saved"]["trace"].update(strings=[]), "a name isn't one"),
    "no such track": (lambda d: d["saved"]["trace"].update(tracks=[]), "a track isn't one"),
    "no vendor": (lambda d: d["saved"]["trace"].update(vendor="x"), "valid Vendor"),
}


@each("kind", DAMAGE)
def test_what_does_not_hold_is_refused(tmp_path: Path, kind: str) -> None:
    """Each is a sentence that names the file, with exit code 3."""
    path = saved(story(), tmp_path)
    document = json.loads(path.read_text())
    DAMAGE[kind][0](document)
    path.write_text(json.dumps(document))
    with pytest.raises((TraceUnreadable, TraceTooLarge)) as raised:
        api.analyze(path, max_memory=10**9)
    assert raised.value.message.startswith(str(path))
    assert DAMAGE[kind][1] in str(raised.value)


def test_numbers_that_no_trace_has_are_refused(tmp_path: Path) -> None:
    """Times and categories are those that a reader could have read."""
    path = saved(story(), tmp_path)
    for name, kind, words in (("ts", "<i8", "a time is none"), ("category", "<i1", "no category")):
        document = json.loads(path.read_text())
        width = int(kind[2])
        rows = document["saved"]["trace"]["slices"]["rows"]
        column(document, "slices", name, zlib.compress((b"\xff" * (width - 1) + b"\x7f") * rows))
        other = path.with_name("y.syncscan.json")
        other.write_text(json.dumps(document))
        with pytest.raises(TraceUnreadable, match=words):
            load.load(other)


def test_one_that_ends_early_is_damaged(tmp_path: Path) -> None:
    """Half a file is no saved analysis."""
    path = saved(story(), tmp_path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(TraceUnreadable, match="damaged saved analysis"):
        load.load(path)


def test_a_folder_gives_its_traces_before_its_saved_analyses(tmp_path: Path) -> None:
    """An analysis that was saved beside its trace isn't a second recording."""
    path = saved(story(), tmp_path)
    assert load.find(tmp_path) == [str(tmp_path / "t.json")]
    (tmp_path / "t.json").unlink()
    assert load.find(tmp_path) == [str(path)]


def test_what_needs_the_events_themselves_says_so(tmp_path: Path) -> None:
    """Repairs of a trace need more than it holds."""
    path = saved(story(), tmp_path)
    with pytest.raises(UsageError, match="is a saved analysis") as raised:
        load.open_events(str(path))
    assert isinstance(raised.value, SyncscanError)
    assert raised.value.hint == "Give the original trace."
