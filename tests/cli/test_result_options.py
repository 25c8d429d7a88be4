"""`-o NAME.html` means `--format html`; a name that the command can't serve is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from syncscan.cli import group
from syncscan.errors import TraceNotFound, UsageError
from syncscan.version import __version__
from tests.each import each

SAMPLE = str(Path(__file__).parents[2] / "sample_traces" / "logged.pt.trace.json.gz")
BEGINNINGS = {
    "html": "<!doctype html>", "json": "{", "md": "<sub>logged ", "csv": "id,rule", "sarif": "{", "xml": "<?xml",
}  # fmt: skip


def run(*words: str) -> Result:
    return CliRunner().invoke(group, words, catch_exceptions=False)


@each(("suffix", "beginning"), BEGINNINGS.items())
def test_the_name_of_the_output_chooses_the_format(tmp_path: Path, suffix: str, beginning: str) -> None:
    out = tmp_path / f"r.{suffix}"
    run("analyze", SAMPLE, "-o", str(out))
    assert out.read_text().startswith(beginning)


def test_a_format_that_is_given_counts_more_than_the_name(tmp_path: Path) -> None:
    out = tmp_path / "r.json"
    run("analyze", SAMPLE, "-o", str(out), "--format", "csv")
    assert out.read_text().startswith("id,rule")


def test_a_name_of_a_format_that_the_command_does_not_write_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "r.csv"
    with pytest.raises(UsageError, match="a file name for csv, which this command can't write"):
        run("whatif", SAMPLE, "-o", str(out))
    assert not out.exists()


def test_a_suffix_that_no_format_has_is_refused(tmp_path: Path) -> None:
    """No PDF reader opens text; with `--format text` it is the user's wish."""
    out = tmp_path / "r.pdf"
    with pytest.raises(UsageError, match=r"no format of this command is for \.pdf files"):
        run("analyze", SAMPLE, "-o", str(out))
    run("analyze", SAMPLE, "-o", str(out), "--format", "text")
    assert out.exists()


def test_a_scope_that_is_not_there_is_answered_with_those_that_are() -> None:
    """The nearest names come first, and the number of the rest is there."""
    with pytest.raises(UsageError, match="No range") as raised:
        run("analyze", SAMPLE, "--steps", "scope:optimize")
    assert str(raised.value.hint).startswith("It has optimizer, ")


def test_a_trace_alone_is_analyzed() -> None:
    assert run(SAMPLE).stdout == run("analyze", SAMPLE).stdout


def test_a_trace_that_is_not_there_is_no_unknown_command() -> None:
    with pytest.raises(TraceNotFound, match=r"nothere\.json: no such file"):
        run("nothere.json")


def test_the_version_has_a_short_option() -> None:
    assert run("-V").stdout == f"syncscan, version {__version__}\n"
