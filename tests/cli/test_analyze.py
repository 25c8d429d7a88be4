"""`syncscan analyze` as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from syncscan.cli import group
from syncscan.errors import SyncscanError
from tests.builder import TraceBuilder
from tests.each import each


def waiting() -> TraceBuilder:
    """Three steps of 1000 µs, each of which waits in one nonzero."""
    t = TraceBuilder()
    for start in t.steps(3, lasts=1000):
        with t.scope("mask", start + 10, start + 800):
            t.launch("gemm", at=start + 12, lasts=400)
            t.sync("aten::nonzero", at=start + 20)
        t.launch("head", at=start + 900, lasts=50)
    return t


def run(*args: str) -> Result:
    return CliRunner().invoke(group, ["analyze", *args])


def test_text_leads_with_the_verdict(tmp_path: Path) -> None:
    """The first screen names what bounds the step and the finding, and stdout holds the report alone."""
    path = waiting().write(tmp_path / "t.json")
    result = run(str(path))
    assert result.exit_code == 0
    assert "limit" in result.stdout.splitlines()[2]
    assert "Next   syncscan explain nonzero" in result.stdout.splitlines()


def test_json_follows_the_contract(tmp_path: Path) -> None:
    """The JSON has the keys that other programs rely on, and the sync's place and cost."""
    path = waiting().write(tmp_path / "t.json")
    document = json.loads(run(str(path), "--format", "json").stdout)
    assert document["schema"] == "syncscan.analysis/2"
    (finding,) = document["findings"]
    assert (finding["op"], finding["scope"], finding["phase"]) == ("aten::nonzero", ["mask"], "other")
    assert finding["count"] == 3
    assert document["step"]["observed_us"] == pytest.approx(1000, rel=0.01)


def test_several_traces_give_one_json_array(tmp_path: Path) -> None:
    """JSON of two traces is one document, in the order of the arguments."""
    a, b = waiting().write(tmp_path / "a.json"), waiting().write(tmp_path / "b.json")
    documents = json.loads(run(str(a), str(b), "--format", "json").stdout)
    assert [Path(d["trace"]["path"]).name for d in documents] == ["a.json", "b.json"]


@each(
    ("content", "words"),
    [
        (None, "no such file"),
        (b"", "empty"),
        (b"PK\x03\x04 zip", "zip"),
        (b'{"a": 1}', "trace"),
        (b"[1, 2, 3]", "isn't a trace"),
        (b'{"traceEvents": []}', "nothing was recorded"),
        (b'{"traceEvents": [{"ph": "M", "name": "process_name", "pid": 1, "args": {}}', "ends in the middle"),
    ],
)
def test_what_cannot_be_read_exits_3(tmp_path: Path, content: bytes | None, words: str) -> None:
    """A missing file, an empty one and one that isn't a trace each end with one sentence that names the file."""
    path = tmp_path / "bad.json"
    if content is not None:
        path.write_bytes(content)
    error = run(str(path)).exception
    assert isinstance(error, SyncscanError)
    assert error.exit_code == 3
    assert "bad.json" in error.message
    assert words in error.message.lower()
    assert error.hint


def test_a_file_is_not_overwritten_unasked(tmp_path: Path) -> None:
    """`-o` on a file that exists leaves it as it is and exits 2; `--force` replaces it."""
    path, out = waiting().write(tmp_path / "t.json"), tmp_path / "report.txt"
    out.write_text("mine")
    refused = run(str(path), "-o", str(out))
    assert isinstance(refused.exception, SyncscanError)
    assert refused.exception.exit_code == 2
    assert out.read_text() == "mine"
    assert run(str(path), "-o", str(out), "--force").exit_code == 0
    assert "limit" in out.read_text()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["report.txt", "t.json"]


def test_a_trace_without_device_events_says_so(tmp_path: Path) -> None:
    """A CPU trace has nothing to find: the first screen says why and what to do, and stderr nothing of that again."""
    t = TraceBuilder(vendor="none")
    with t.step(0, 100):
        t.op("aten::add", 10, 20)
    result = run(str(t.write(tmp_path / "t.json")))
    assert result.exit_code == 0
    assert "The trace has no device work." in result.stdout
    assert result.stderr == ""


def test_stderr_has_one_line_however_much_is_wrong(tmp_path: Path) -> None:
    """The rest stands behind -v; other formats, which have no such part, have a line each."""
    path = tmp_path / "t.json"
    t = TraceBuilder()
    for start in t.steps(2, lasts=1000):
        t.sync("aten::item", at=start + 20, wait=500)
    text = json.dumps(json.loads(t.write(path).read_text()))
    path.write_text(text[: len(text) - 40].replace('"dur"', '"dur": "long", "dur2"', 1))
    brief, listed = run(str(path)), run(str(path), "--format", "csv")
    assert brief.stderr.count("\n") == 1
    assert listed.stderr.count("\n") > 1
    assert f"({listed.stderr.count(chr(10)) - 2} more: -v)" in brief.stderr


def test_hostile_names_reach_no_terminal(tmp_path: Path) -> None:
    """Escape sequences in a scope's name are not printed as such."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=1000):
        with t.scope("\x1b[31mred\x1b]0;title\x07", start + 10, start + 800):
            t.sync("aten::item", at=start + 20)
    assert "\x1b" not in run(str(t.write(tmp_path / "t.json")), "-v").stdout


@pytest.mark.parametrize("form", ["json", "text"])
def test_a_trace_that_cannot_be_read_costs_only_its_own_report(tmp_path: Path, form: str) -> None:
    """The others' come, the broken and the missing one are named, and the exit code says it."""
    good, bad = waiting().write(tmp_path / "good.json"), tmp_path / "bad.json"
    bad.write_text("isn't a trace")
    result = run(str(bad), str(good), str(tmp_path / "gone.json"), str(good), "--format", form)
    assert result.exit_code == 3
    assert "bad.json" in result.stderr
    assert "gone.json" in result.stderr
    if form == "json":
        assert len(json.loads(result.stdout)) == 2
    assert result.stdout.count("nonzero") >= 2


def test_a_saved_analysis_takes_the_place_of_its_trace(tmp_path: Path) -> None:
    """`-o NAME.syncscan.json` saves it, packed or not, and every command that asks something reads it."""
    path, saved = waiting().write(tmp_path / "t.json"), tmp_path / "t.syncscan.json.gz"
    assert run(str(path), "-o", str(saved)).exit_code == 0
    path.unlink()
    assert "Syncs are the limit" in run(str(saved)).stdout
    for args in (["whatif", str(saved), "--remove", "scope:mask"], ["report", str(saved), "-o", "-"]):
        assert CliRunner().invoke(group, args).exit_code == 0


@pytest.mark.parametrize(("option", "value"), [("--format", "json"), ("--evidence", "x")])
def test_a_saved_analysis_is_no_other_report(tmp_path: Path, option: str, value: str) -> None:
    """A name that saved analyses have is for them alone: what was written there else would be taken for one."""
    path = waiting().write(tmp_path / "t.json")
    result = run(str(path), "-o", str(tmp_path / "t.syncscan.json"), option, value)
    assert f"Leave out {option}" in str(result.exception)


def test_what_each_stage_took_is_reported_on_stderr(tmp_path: Path) -> None:
    """Stdout holds the report alone."""
    path = waiting().write(tmp_path / "t.json")
    plain, timed = (run(str(path), "--format", "json", *more) for more in ((), ("--timings",)))
    assert timed.stdout == plain.stdout
    lines = [line.split() for line in timed.stderr.splitlines()]
    stages = [
        "start",
        "load",
        "detect",
        "attribute",
        "cost",
        "whatif",
        "host",
        "habits",
        "states",
        "remedies",
        "report",
    ]
    assert [line[0] for line in lines[-len(stages) :]] == stages
    assert {len(line) for line in lines[-len(stages) + 1 :]} == {4}
