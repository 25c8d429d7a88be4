"""`syncscan report`: it writes one file, and leaves alone what it didn't write."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from syncscan.cli.report import command
from syncscan.errors import TraceNotFound, UsageError


def run(*arguments: str | Path) -> str:
    result = CliRunner().invoke(command, [*map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def test_it_writes_one_file(trace: Path, tmp_path: Path):
    """The report is there whole, nothing else is, and stdout stays empty."""
    assert run(trace, "-o", str(tmp_path / "report.html")) == ""
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["report.html", "trace.pt.trace.json.gz"]


def test_a_report_is_written_anew_by_force(trace: Path, tmp_path: Path):
    """An earlier report may have been annotated by hand, or be of another trace: it isn't replaced unasked."""
    out = tmp_path / "report.html"
    run(trace, "-o", str(out))
    first = out.stat().st_mtime_ns
    with pytest.raises(UsageError, match="exists"):
        run(trace, "-o", str(out))
    assert out.stat().st_mtime_ns == first
    run(trace, "-o", str(out), "--force")
    assert out.stat().st_mtime_ns > first


def test_a_file_of_the_user_s_is_left_alone(trace: Path, tmp_path: Path):
    """A file that is there is refused, and replaced only with --force."""
    out = tmp_path / "notes.html"
    out.write_text("<html>mine</html>")
    with pytest.raises(UsageError, match="exists") as refused:
        run(trace, "-o", str(out))
    assert refused.value.exit_code == 2
    assert out.read_text() == "<html>mine</html>"
    run(trace, "-o", str(out), "--force")
    assert "syncscan" in out.read_text()


@pytest.mark.parametrize("place", [".", "nowhere/report.html", "n" * 300])
def test_a_place_that_can_hold_no_file_is_refused(trace: Path, tmp_path: Path, place: str):
    """A folder, a file in a folder that isn't there, a name too long: told before the trace is read."""
    with pytest.raises(UsageError, match=r"is a folder|can't be written"):
        run(str(tmp_path / "unread.json"), "-o", str(tmp_path / place), "--force")


def test_a_dash_writes_to_stdout(trace: Path, tmp_path: Path):
    """`-o -` is for pipes."""
    assert run(trace, "-o", "-").startswith("<!doctype html>")


def test_a_missing_trace_leaves_no_report(tmp_path: Path):
    """No trace: one error, no file."""
    with pytest.raises(TraceNotFound):
        run(str(tmp_path / "none.json"), "-o", str(tmp_path / "report.html"))
    assert list(tmp_path.iterdir()) == []


def test_a_time_that_was_measured_is_shown(trace: Path, tmp_path: Path):
    """--step-ms is the step of the first screen."""
    assert "900 µs" in run(trace, "-o", "-", "--step-ms", "0.9")
