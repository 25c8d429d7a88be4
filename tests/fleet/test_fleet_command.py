"""`syncscan fleet`, and what `check` and `diff` do with jobs: views of a saved job, exit codes, what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import syncscan.fleet
from syncscan.cli import group, progress
from syncscan.errors import TraceNotFound, TraceUnreadable, UsageError
from syncscan.fleet import document, job
from tests.fleet.example import damaged, even
from tests.fleet.example import job as job_of


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A saved job with a rank that has no trace."""
    path = tmp_path / "job.fleet.json"
    path.write_text(document.render(damaged()))
    return path


def run(*words: str | Path, fails: bool = False) -> Result:
    return CliRunner().invoke(group, [*map(str, words)], catch_exceptions=False)


def error(*words: str | Path) -> BaseException | None:
    return CliRunner().invoke(group, [*map(str, words)]).exception


@pytest.mark.parametrize(
    ("form", "begins"),
    [
        ("text", "Rank 0 delays the job"),
        ("json", '{\n  "schema": "syncscan.fleet/3"'),
        ("html", "<!doctype html>"),
        ("markdown", "### Rank 0 delay"),
        ("csv", "rank,step,step_us"),
        ("sarif", '{\n  "$schema"'),
        ("github", "::"),
        ("junit", "<?xml"),
    ],
)
def test_each_format_goes_to_stdout(saved: Path, form: str, begins: str) -> None:
    """The job was saved before."""
    result = run("fleet", saved, "--format", form)
    assert (result.exit_code, result.stdout[: len(begins)]) == (0, begins)


def test_the_name_of_a_saved_job_makes_it_one(saved: Path, tmp_path: Path) -> None:
    """Without --format; with another it is an error, and nothing is replaced unasked."""
    other = tmp_path / "other.fleet.json"
    run("fleet", saved, "-o", other)
    assert json.loads(other.read_text())["job"] == json.loads(saved.read_text())["job"]
    assert isinstance(error("fleet", saved, "-o", other), UsageError)
    assert isinstance(error("fleet", saved, "-o", tmp_path / "x.fleet.json", "--format", "csv"), UsageError)


@pytest.mark.parametrize("option", [("--jobs", "2"), ("--scheduler", "tcp://h:1")])
def test_what_is_of_reading_traces_means_nothing_of_a_saved_job(saved: Path, option: tuple[str, str]) -> None:
    """It is named."""
    refused = error("fleet", saved, *option)
    assert isinstance(refused, UsageError)
    assert option[0] in refused.message


def test_a_saved_job_is_named_alone(saved: Path, tmp_path: Path) -> None:
    """One that isn't there, or isn't one, can't be read."""
    assert isinstance(error("fleet", saved, saved), UsageError)
    assert isinstance(error("fleet", tmp_path / "none.fleet.json"), TraceNotFound)
    (tmp_path / "bad.fleet.json").write_text("{}")
    assert isinstance(error("fleet", tmp_path / "bad.fleet.json"), TraceUnreadable)


def test_traces_are_read_as_the_options_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each option reaches `analyze_fleet`; traces that can't be read don't fail the command."""
    given: dict[str, Any] = {}

    def analyze_fleet(where: tuple[str, ...], **options: Any) -> Any:
        given.update(options, where=where)
        options["progress"](1, 0, 2, "a")
        return damaged()

    monkeypatch.setattr(syncscan.fleet, "analyze_fleet", analyze_fleet, raising=False)
    result = run("--max-memory", "1G", "fleet", "a", "s3://b/*.gz", "--jobs", "3", "--steps", "scope:it*")
    assert result.exit_code == 0
    assert "Traces left out\n  job/rank4.json.gz" in result.stdout
    del given["progress"]
    assert given == {
        "where": ("a", "s3://b/*.gz"), "jobs": 3, "scheduler": None, "max_memory": 10**9, "step_ms": None,
        "step_scope": "it*", "steps": "auto", "source_roots": (),
    }  # fmt: skip


def test_warnings_of_the_traces_are_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the ranks that have them."""
    from msgspec.structs import replace

    fleet = job_of(4)
    ranks = tuple(replace(r, of=replace(r.of, warnings=("No steps.",))) for r in fleet.ranks)
    monkeypatch.setattr(syncscan.fleet, "analyze_fleet", lambda *a, **k: replace(fleet, ranks=ranks), raising=False)
    assert run("fleet", "a").stderr == "warning: on 4 of 4: No steps.\n"


def test_progress_goes_on_a_line_where_nobody_watches(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Now and then, with the rate and the time left; nothing of what is over at once."""
    clock = iter([0.0, 1.0, 120.0, 240.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    with progress.counting("analyzing", "traces") as counted:
        counted(1, 0, 100, "a")
        counted(10, 1, 100, "b")
        counted(100, 1, 100, "c")
    text = "analyzing: 10 of 100 traces, 5.0 traces/min, 1 not read, 18 min left\n"
    assert capsys.readouterr().err == text


def test_check_takes_a_saved_job(saved: Path, tmp_path: Path) -> None:
    """Exit 1 where a limit isn't kept, 0 where all are; limits of a job alone are refused elsewhere."""
    assert run("check", saved).exit_code == 1
    passed = run("check", saved, "--syncs", "2", "--limit", "held-up=8%")
    assert passed.exit_code == 0
    assert "passed: job of 4 ranks" in passed.stdout
    failed = run("check", saved, "--limit", "held-up=5%", "--format", "json")
    assert json.loads(failed.stdout)["traces"][0]["violations"][0]["limit"]["held_up"] == 0.05
    assert isinstance(error("check", tmp_path / "x.json", "--limit", "held-up=5%"), UsageError)
    (one,) = json.loads(run("check", saved, "--format", "sarif").stdout)["runs"]
    assert {result["level"] for result in one["results"]} == {"error"}


def test_a_job_has_a_baseline(saved: Path, tmp_path: Path) -> None:
    """Written once it exempts all that there was; another file is never replaced."""
    baseline_file = tmp_path / "known.json"
    run("check", saved, "--baseline", baseline_file, "--update-baseline")
    assert run("check", saved, "--baseline", baseline_file).exit_code == 0
    baseline_file.write_text("mine")
    assert isinstance(error("check", saved, "--baseline", baseline_file, "--update-baseline"), UsageError)
    assert baseline_file.read_text() == "mine"


@pytest.mark.parametrize("words", [["--fleet"], []], ids=["flag", "name"])
def test_diff_takes_saved_jobs(saved: Path, tmp_path: Path, words: list[str]) -> None:
    """With --fail-on new a sync that came in is exit 1."""
    before = tmp_path / "even.fleet.json"
    before.write_text(document.render(even()))
    result = run("diff", before, saved, *words, "--fail-on", "new")
    assert result.exit_code == 1
    assert "2 syncs added" in result.stdout
    assert json.loads(run("diff", before, saved, "--format", "json").stdout)["schema"] == "syncscan.diff/2"
    assert "2 syncs added" in run("diff", before, saved, "--format", "html").stdout


def test_traces_become_jobs_by_the_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    """In `check` and `diff` alike, each state of its own."""
    requests: list[Callable[..., Any] | tuple[str, ...]] = []

    def fleet_from(where: tuple[str, ...], *rest: Any, **options: Any) -> Any:
        requests.append(where)
        return job_of()

    monkeypatch.setattr("syncscan.fleet.job.fleet_from", fleet_from)
    run("check", "a", "b", "--fleet", "--syncs", "9")
    run("diff", "--before", "a", "--after", "b", "--after", "c", "--fleet")
    assert requests == [("a", "b"), ("a",), ("b", "c")]
    assert job.is_saved(("a", "b")) is False
