"""Options that choose what of an analysis is listed, and never change what is said of its step."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from syncscan.cli import group
from syncscan.errors import UsageError
from tests.builder import TraceBuilder


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Steps of 1 ms with a nonzero that waits 400 µs, and twelve reads that wait for next to nothing."""
    t = TraceBuilder()
    for start in t.steps(3, lasts=1000):
        with t.scope("mask", start + 10, start + 500):
            t.launch("gemm", at=start + 12, lasts=400)
            t.sync("aten::nonzero", at=start + 20)
        for k in range(12):
            with t.scope(f"read {k}", start + 500 + 20 * k, start + 515 + 20 * k):
                t.sync("aten::item", at=start + 502 + 20 * k)
        t.launch("head", at=start + 900, lasts=50)
    return str(t.write(tmp_path_factory.mktemp("view") / "t.json"))


def run(*args: str) -> Result:
    return CliRunner().invoke(group, ["analyze", *args])


def rules(trace: str, *args: str) -> list[str]:
    return [f["rule"] for f in json.loads(run(trace, "--format", "json", *args).stdout)["findings"]]


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ((), 13),
        (("--select", "nonzero"), 1),
        (("--select", "non*,cpu"), 13),
        (("--select", "nonzero", "--select", "cpu"), 13),
        (("--ignore", "cpu"), 1),
        (("--min-saves", "5%"), 1),
        (("--min-saves", "20us"), 1),
        (("--min-saves", "0.02 ms"), 1),
        (("--top", "4"), 4),
    ],
)
def test_what_is_chosen_is_listed(trace: str, options: tuple[str, ...], count: int) -> None:
    """In JSON too."""
    assert len(rules(trace, *options)) == count


def test_what_is_said_of_the_step_covers_what_is_hidden() -> None:
    """A screen without the one change that gains doesn't say that removing syncs gains nothing."""
    trace = str(Path(__file__).parents[2] / "sample_traces" / "logged.pt.trace.json.gz")
    full, part = (json.loads(run(trace, "--format", "json", *o).stdout)["step"] for o in ((), ("--ignore", "item")))
    assert (part["verdict"], part["summary"]) == (full["verdict"], full["summary"])
    assert (len(full["advice"]), len(part["advice"])) == (2, 1)


def test_what_is_hidden_is_counted_and_the_step_is_the_same(trace: str) -> None:
    """In words, and for programs."""
    full, part = (json.loads(run(trace, "--format", "json", *o).stdout) for o in ((), ("--ignore", "cpu")))
    for step in (full["step"], part["step"]):
        step.pop("advice"), step.pop("summary")  # which are about the changes that are listed
    assert full["step"] == part["step"]
    assert (full["hidden"], part["hidden"]) == ([], [{"by": "--ignore", "findings": 12, "habits": 0}])
    for form in ("text", "markdown", "github", "junit"):
        assert "12 findings are hidden by --ignore." in run(trace, "--ignore", "cpu", "--format", form).stdout
    assert len(list(csv.DictReader(io.StringIO(run(trace, "--ignore", "cpu", "--format", "csv").stdout)))) == 1
    sarif = json.loads(run(trace, "--ignore", "cpu", "--format", "sarif").stdout)["runs"][0]
    assert (len(sarif["results"]), sarif["properties"]["hidden"]) == (1, "12 findings are hidden by --ignore.")


def test_the_table_stands_behind_v_with_all_rows_unless_asked(trace: str) -> None:
    """The first screen has changes alone; `--top` limits the table, and says so."""
    assert " cpu " not in run(trace).stdout
    assert run(trace, "-v").stdout.count(" cpu ") >= 12
    assert run(trace, "-v", "--top", "12").stdout.count(" cpu ") < run(trace, "-v").stdout.count(" cpu ")
    assert "1 finding is hidden by --top." in run(trace, "-v", "--top", "12").stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--select", "nonzer"), "nonzero"),
        (("--ignore", "launch-bond"), "launch-bound"),
        (("--select", "zzz*"), "syncscan explain"),
        (("--user-only",), "with_stack"),
        (("--evidence", "1", "--ignore", "cpu"), "Leave one"),
        (("-v", "--format", "json"), "--verbose"),
    ],
)
def test_what_cannot_be_is_a_usage_error(trace: str, options: tuple[str, ...], words: str) -> None:
    """A rule that there isn't, with the nearest that there is; a contradiction; an owner that nothing tells."""
    error = run(trace, *options).exception
    assert isinstance(error, UsageError)
    assert words in error.hint


@pytest.mark.parametrize("value", ["1", "5 kg", "-1us", "nan%"])
def test_a_saving_is_a_time_or_a_part(trace: str, value: str) -> None:
    """Anything else is refused with an example."""
    result = run(trace, "--min-saves", value)
    assert result.exit_code == 2
    assert "100us" in result.stderr


def test_several_traces_end_with_a_table(trace: str, tmp_path: Path) -> None:
    """One that can't be read has its row; JSON stays a list."""
    (tmp_path / "bad.json").write_text("no trace")
    result = run(trace, trace, str(tmp_path / "bad.json"))
    table = result.stdout.partition("\n3 traces\n")[2]
    assert table.count("t.json") == 2
    assert "torch.nonzero waits for the number of matches" in " ".join(table.split())
    assert "bad.json" in table
    assert run(trace, trace, "--format", "markdown").stdout.count("| `t.json`<br>") == 2
    assert len(json.loads(run(trace, trace, "--format", "json").stdout)) == 2
