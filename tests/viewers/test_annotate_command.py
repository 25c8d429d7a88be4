"""`syncscan annotate` and `syncscan open` as a user types them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from syncscan import analyze
from syncscan.cli import group
from syncscan.errors import UsageError
from tests.load.nsys.test_nsys import with_os_calls
from tests.report.example import story


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    t = story()
    path = tmp_path / "story.json"
    path.write_text(json.dumps({**t.metadata, "traceEvents": t.events}))
    return path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(group, [str(a) for a in arguments])


def events(path: Path) -> list[dict[str, object]]:
    matches: list[dict[str, object]] = json.loads(path.read_bytes())["traceEvents"]
    return matches


def test_annotate_writes_a_copy_and_says_so_on_stderr(trace: Path, tmp_path: Path) -> None:
    """Stdout stays empty: the result is the file."""
    out = tmp_path / "out.pt.trace.json"
    result = run("annotate", trace, "-o", out)
    assert (result.exit_code, result.stdout) == (0, "")
    assert f"Wrote {out}: 1 finding on added tracks." in result.stderr
    before = json.loads(trace.read_text())["traceEvents"]
    assert events(out)[: len(before)] == before
    assert len(events(out)) > len(before)


def test_a_name_that_tensorboard_does_not_read_is_warned_of(trace: Path, tmp_path: Path) -> None:
    """The file is written all the same: other viewers read any name."""
    result = run("annotate", trace, "-o", tmp_path / "out.json")
    assert result.exit_code == 0
    assert "TensorBoard won't find out.json" in result.stderr


def test_around_writes_less(trace: Path, tmp_path: Path) -> None:
    """The other step lies outside of the first finding's interval."""
    full, part = tmp_path / "a.pt.trace.json", tmp_path / "b.pt.trace.json"
    assert run("annotate", trace, "-o", full).exit_code == 0
    assert run("annotate", trace, "-o", part, "--around", "1").exit_code == 0
    assert [e["name"] for e in events(part) if str(e["name"]).startswith("ProfilerStep")] == ["ProfilerStep#2"]
    assert len(events(part)) < len(events(full))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--around", "1", "--untangle"], "--untangle has no effect together with --around"),
        (["--around", "nope"], "is called 'nope'"),
    ],
)
def test_what_can_mean_nothing_is_reported(trace: Path, tmp_path: Path, arguments: list[str], says: str) -> None:
    """And nothing is written."""
    result = run("annotate", trace, "-o", tmp_path / "out.pt.trace.json", *arguments)
    assert isinstance(result.exception, UsageError)
    assert says in str(result.exception)
    assert [p.name for p in tmp_path.iterdir()] == ["story.json"]


def test_the_trace_itself_is_never_overwritten(trace: Path) -> None:
    """Not even by force: it is being read."""
    before = trace.read_bytes()
    result = run("annotate", trace, "-o", trace, "--force")
    assert isinstance(result.exception, UsageError)
    assert trace.read_bytes() == before


def test_a_file_that_is_there_is_kept(trace: Path, tmp_path: Path) -> None:
    """Before anything is read."""
    out = tmp_path / "out.pt.trace.json"
    out.write_text("mine")
    result = run("annotate", trace, "-o", out)
    assert isinstance(result.exception, UsageError)
    assert out.read_text() == "mine"


def test_perfetto_online_reads_from_one_port_alone(trace: Path) -> None:
    """Its site's policy says which."""
    result = run("open", trace, "--in", "perfetto", "--online", "--port", "9999", "--no-browser")
    assert isinstance(result.exception, UsageError)
    assert "9001" in str(result.exception)


@pytest.mark.parametrize("command", [["annotate", "-", "-o", "x.json"], ["open", "-", "--in", "perfetto"]])
def test_standard_input_is_refused(command: list[str]) -> None:
    """It would have to be read twice."""
    assert "can't be read twice" in str(run(*command).exception)


@pytest.mark.skipif(not Path("/dev/fd").is_dir(), reason="pipes have no names here")
@pytest.mark.parametrize("command", [["annotate", "-o", "x.json"], ["open", "--in", "perfetto"]])
def test_pipes_are_refused(command: list[str]) -> None:
    """As `<(cat t.json)` gives one: what was read of it is gone."""
    read_end, write_end = os.pipe()
    os.close(write_end)
    error = run(*command, f"/dev/fd/{read_end}").exception
    os.close(read_end)
    assert isinstance(error, UsageError)
    why = "can't be read twice, but this command has to. Save the trace to a file first."
    assert str(error) == f"/dev/fd/{read_end} {why}"


def test_other_places_that_are_no_trace(tmp_path: Path) -> None:
    """A folder, and a file that isn't there, are told by what they are."""
    assert "is a folder" in str(run("annotate", tmp_path, "-o", tmp_path / "x.json").exception)
    assert "no such file" in str(run("annotate", tmp_path / "none", "-o", tmp_path / "x.json").exception)


@pytest.mark.parametrize("more", [(), ("--untangle",), ("--around", "1")], ids=["whole", "untangled", "around"])
def test_an_export_of_nsight_systems_is_written_as_a_chrome_trace(tmp_path: Path, more: tuple[str, ...]) -> None:
    """One that is read as the export is, with its findings on added tracks."""
    path, out = with_os_calls().save(tmp_path / "report.sqlite"), tmp_path / "a.pt.trace.json.gz"
    done = CliRunner().invoke(group, ["annotate", path, "-o", str(out), *more])
    assert done.exit_code == 0
    before, after = analyze(path), analyze(out)
    assert after.trace.info.drawn
    assert [(f.rule, f.op) for f in after.findings] == [(f.rule, f.op) for f in before.findings]
    if not more:
        assert after.step.observed_us == pytest.approx(before.step.observed_us)
        assert after.host_time == before.host_time
        assert after.step.recoverable_us == pytest.approx(before.step.recoverable_us or 0.0, abs=0.1)


def test_steps_are_chosen_as_in_an_analysis(tmp_path: Path) -> None:
    """By a scope, whose ranges are then drawn as steps."""
    trace, out = str(story().write(tmp_path / "t.json")), str(tmp_path / "a.pt.trace.json")
    assert CliRunner().invoke(group, ["annotate", trace, "-o", out, "--steps", "scope:mask"]).exit_code == 0
